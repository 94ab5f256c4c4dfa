package compare

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/migrate/evidence"
	"github.com/kvap/kvap/migrate/live"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A Setting is what is compared, as of one moment: policies, the native
// objects in their place, and what both look up.
type Setting struct {
	Policies   []*policy.Policy
	Exceptions []*policy.Exception
	Found      diag.List // of reading them
	Deployed   judge.Deployed
	Mutations  judge.DeployedMutations
	Known      []map[string]any
	Schemas    *schema.Set

	elsewhere []*policy.Policy // of other namespaces, where none was named

	natives  []evidence.Native
	seen     map[string]time.Time // since when native policies were seen to be judged by, by name
	compared []comparedPolicy     // those of a cluster
	silent   string               // since when Kyverno is, where it is not alive
	givenUp  string               // why it judges by none of kyverno.io
	whole    bool                 // no policy that changes objects was left out
	mark     string               // another one where policies or native objects are others
}

// A comparedPolicy is a policy of a cluster whose comparison is recorded.
type comparedPolicy struct {
	name   string // with its namespace
	object unstructured.Unstructured
	digest string // of it, and of what is around it
	unread error  // why the latter is not known
}

// judges compiles what is compared.
func (s *Setting) judges(o Options) (*judge.Judges, error) {
	o.Rewrite(s.Policies)
	return judge.Compile(compile.Input{Policies: s.Policies, Exceptions: s.Exceptions, Found: s.Found},
		compile.Options{Translate: o.Translate}, judge.ClusterState{Objects: s.Known, Deployed: s.Deployed, Mutations: s.Mutations})
}

// takes tells whether a policy is compared.
func takes(s live.Selection, p *policy.Policy) bool {
	return s.Takes(namespaceOf(p), p.Name, labelsOf(p))
}

func namespaceOf(p *policy.Policy) string {
	if p.Namespaced() {
		return p.Namespace
	}
	return ""
}

func labelsOf(p *policy.Policy) labels.Set {
	out := labels.Set{}
	if node := p.Source.Get("metadata").Get("labels"); node != nil {
		values, _ := node.Value().(map[string]any)
		for key, value := range values {
			out[key], _ = value.(string)
		}
	}
	return out
}

// limit leaves only the policies of a selection, and their native objects.
func (s *Setting) limit(to live.Selection) error {
	for _, name := range to.Names {
		if !slices.ContainsFunc(s.Policies, func(p *policy.Policy) bool { return to.Means(name, namespaceOf(p), p.Name) }) {
			return fmt.Errorf("there is no policy %s; policies are named as NAME or NAMESPACE/NAME", name)
		}
	}
	kept := map[string]bool{}
	s.whole = !slices.ContainsFunc(s.Policies, func(p *policy.Policy) bool { return changes(p, takes(to, p)) })
	every := to
	every.Every = true
	s.Policies = slices.DeleteFunc(s.Policies, func(p *policy.Policy) bool {
		if !takes(to, p) && takes(every, p) {
			s.elsewhere = append(s.elsewhere, p)
		}
		kept[p.FullName()] = kept[p.FullName()] || takes(to, p)
		return !takes(to, p)
	})
	s.compared = slices.DeleteFunc(s.compared, func(p comparedPolicy) bool { return !kept[p.name] })
	if len(s.Policies) == 0 {
		return errors.New("no policy is chosen; -A takes those of all namespaces")
	}
	return nil
}

// changes tells of a policy by which Kyverno may change objects in a way that no rule
// which is compared explains: it gives images their digests.
func changes(p *policy.Policy, taken bool) bool {
	return p.PinsImages() && p.InCEL() || slices.ContainsFunc(p.Rules, func(r *policy.Rule) bool { return r.Mutate != nil && !taken || r.VerifyImages != nil })
}

// ownNatives leaves only native objects that were made from the policies: those of
// others have nothing to be held against. They are kept as natives, for the log speaks
// of what is in the cluster.
func (s *Setting) ownNatives() {
	var own judge.Deployed
	for _, p := range s.Deployed.Policies {
		written := []time.Time{evidence.LastWritten(p)}
		for _, b := range s.Deployed.Bindings {
			if b.Spec.PolicyName == p.Name {
				written = append(written, evidence.LastWritten(b))
			}
		}
		native := evidence.Native{Policy: p, LeftOut: s.Deployed.LeftOut(p.Name), Since: s.since(p.Name, written...)}
		s.natives = append(s.natives, native)
		if !slices.ContainsFunc(s.Policies, func(source *policy.Policy) bool { return slices.Contains(s.Deployed.Sources(p), source.FullName()) }) {
			continue
		}
		own.Policies = append(own.Policies, p)
		for _, b := range s.Deployed.Bindings {
			if b.Spec.PolicyName == p.Name {
				own.Bindings = append(own.Bindings, b)
			}
		}
	}
	s.Deployed = own
}
