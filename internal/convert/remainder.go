package convert

import (
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// What --remainder-kind may be.
const (
	RemainderKvap    = "kvap"
	RemainderKyverno = "kyverno"
)

// A leftPolicy is a policy with only those of its rules that stay behind, as YAML.
type leftPolicy struct {
	suffix string // of the file's name
	data   []byte
}

// remainder is the policy with only those of its rules that stay behind. Of kvap.dev are
// those that kvap's webhook carries out; what nothing but Kyverno does stays its own, in a
// file for itself. What has an error is in neither half: it is to be mended first.
func remainder(p *policy.Policy, rules []*compile.Rule, kind string) (out []leftPolicy) {
	ofKvap, stays := map[int]bool{}, map[int]bool{}
	group, _, _ := strings.Cut(p.APIVersion, "/")
	moves := kind == RemainderKvap && migrate.IsLegacy(v1alpha1.PolicyReference{Group: group, Kind: p.Kind})
	for _, r := range rules {
		if r.Target == translate.Native {
			continue
		}
		if r.Source == nil {
			if p.Invalid {
				return nil
			}
			return []leftPolicy{{data: policy.Marshal(appliable(p.Source))}}
		}
		to := stays
		if moves && r.Target == translate.Webhook && r.NotServed() == "" {
			to = ofKvap
		}
		to[r.Source.Index] = !r.Source.Invalid
	}
	if p.ApplyOne && len(stays) > 0 { // its rules cannot be told apart
		maps.Copy(stays, ofKvap)
		ofKvap = nil
	}
	if doc := p.Only(func(r *policy.Rule) bool { return ofKvap[r.Index] }); doc != nil {
		out = append(out, leftPolicy{data: policy.Marshal(asVersion(doc, v1alpha1.GroupVersion().String()))})
	}
	if doc := p.Only(func(r *policy.Rule) bool { return stays[r.Index] && !ofKvap[r.Index] }); doc != nil {
		one := leftPolicy{data: policy.Marshal(asVersion(doc, newest(p.APIVersion, "v1")))}
		if moves {
			one.suffix = ".kyverno"
		}
		out = append(out, one)
	}
	return out
}

// newest is the version in which a cluster of today takes what was written for v2beta1,
// and has the same meaning.
func newest(apiVersion, version string) string {
	if apiVersion == "kyverno.io/v2beta1" {
		return "kyverno.io/" + version
	}
	return apiVersion
}

// asVersion is a document of another apiVersion.
func asVersion(doc *policy.Node, version string) *policy.Node {
	changed := *doc
	changed.Fields = slices.Clone(doc.Fields)
	for i, f := range changed.Fields {
		if f.Key == "apiVersion" {
			changed.Fields[i].Value = &policy.Node{Kind: policy.String, Pos: f.Value.Pos, Str: version}
		}
	}
	return &changed
}

// rulesOf are the rules of each policy.
func (done *Compilation) rulesOf() map[*policy.Policy][]*compile.Rule {
	rules := make(map[*policy.Policy][]*compile.Rule, len(done.Policies))
	for _, r := range done.Rules {
		rules[r.Policy] = append(rules[r.Policy], r)
	}
	return rules
}

// exceptionsFrom are the exceptions that name one of the policies: what stays
// behind needs them as much as the native half did.
func (done *Compilation) exceptionsFrom(policies []*policy.Policy) []*policy.Exception {
	var list []*policy.Exception
	for _, e := range done.Exceptions {
		if slices.ContainsFunc(policies, e.IsFrom) && !e.Invalid {
			list = append(list, e)
		}
	}
	return list
}

// appliable is a document without what the API server wrote into it.
func appliable(doc *policy.Node) *policy.Node {
	doc = without(doc, "status")
	for i, f := range doc.Fields {
		if f.Key == "metadata" {
			doc.Fields[i].Value = without(f.Value, "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
		}
	}
	return doc
}

// without is a copy of a map that lacks some keys.
func without(n *policy.Node, keys ...string) *policy.Node {
	changed := *n
	changed.Fields = slices.DeleteFunc(slices.Clone(n.Fields), func(f policy.Field) bool {
		return slices.Contains(keys, f.Key)
	})
	return &changed
}
