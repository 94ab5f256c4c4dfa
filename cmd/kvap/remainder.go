package main

import (
	"slices"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// remainder is the policy with only those of its rules that stay behind, as YAML; nil
// when none does. What has an error is in neither half: it is to be mended first.
func remainder(p *policy.Policy, rules []*compile.Rule) []byte {
	stays := map[int]bool{}
	for _, r := range rules {
		if r.Target == translate.Native {
			continue
		}
		if r.Source == nil {
			if p.Invalid {
				return nil
			}
			return policy.Marshal(appliable(p.Source))
		}
		stays[r.Source.Index] = !r.Source.Invalid
	}
	doc := p.Only(func(r *policy.Rule) bool { return stays[r.Index] })
	if doc == nil {
		return nil
	}
	return policy.Marshal(doc)
}

// rulesOf are the rules of each policy.
func (done *compilation) rulesOf() map[*policy.Policy][]*compile.Rule {
	rules := make(map[*policy.Policy][]*compile.Rule, len(done.policies))
	for _, r := range done.rules {
		rules[r.Policy] = append(rules[r.Policy], r)
	}
	return rules
}

// exceptionsFrom are the exceptions that name one of the policies: what stays
// behind needs them as much as the native half did.
func (done *compilation) exceptionsFrom(policies []*policy.Policy) []*policy.Exception {
	var list []*policy.Exception
	for _, e := range done.exceptions {
		named := slices.ContainsFunc(policies, func(p *policy.Policy) bool {
			return slices.ContainsFunc(e.Exceptions, func(ref policy.ExceptionRef) bool { return ref.PolicyName == p.FullName() })
		})
		if named && !e.Invalid {
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
