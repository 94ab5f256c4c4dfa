package verify

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A Setting is what judges are made for.
type Setting struct {
	Translate translate.Options
	// Params are the ConfigMaps and other objects that rules look up. ConfigMaps
	// that are not there are made up.
	Params []*unstructured.Unstructured
	// Seed makes them.
	Seed uint64
	// Deployed are native objects that were made from the policies before: they judge
	// in place of the translation.
	Deployed judge.Deployed
	// Alter, where not nil, changes the objects before they judge, as tests do to
	// see that a broken translation is found.
	Alter func([]vap.Objects)
}

// Judges are both judges of one policy, with each of the sets of objects that its
// rules may look up.
type Judges struct {
	// Compiled is what the policy was translated to.
	Compiled compile.Result
	policy   *policy.Policy
	rules    []*compile.Form // all of them, as Kyverno reports them
	native   []*compile.Form // those that both judges judge
	defaults *defaulting.Defaulter
	worlds   []judgesOfWorld
}

// A judgesOfWorld is the judges with the objects that rules look up.
type judgesOfWorld struct {
	params []*unstructured.Unstructured
	*judge.Judges
}

// NewJudges compiles a policy, once for all worlds.
func NewJudges(p *policy.Policy, s Setting) (*Judges, error) {
	in := compile.Input{Policies: []*policy.Policy{p}, Exceptions: s.Translate.Exceptions}
	out := &Judges{policy: p, defaults: defaulting.New(s.Translate.Schemas)}
	out.Compiled = compile.Policies(in, compile.Options{Translate: s.Translate, Emit: vap.EmitOptions{ExcludeNamespaces: []string{}}})
	if s.Alter != nil {
		s.Alter(out.Compiled.Objects)
	}
	both, err := judge.New(out.Compiled, in.Exceptions, judge.ClusterState{Schemas: s.Translate.Schemas, Deployed: s.Deployed.From(p.FullName())})
	if err != nil {
		return nil, err
	}
	out.rules = slices.DeleteFunc(slices.Clone(both.Rules), func(f *compile.Form) bool { return f.Rule.Policy != p })
	for _, f := range both.Compared() {
		if isOf(f) {
			out.native = append(out.native, f)
		}
	}
	for _, params := range configMaps([]*policy.Policy{p}, s.Params, readHints(p.Source), s.Seed) {
		var objects []map[string]any
		for _, u := range params {
			objects = append(objects, u.Object)
		}
		in, err := both.In(judge.ClusterState{Objects: objects, Schemas: s.Translate.Schemas})
		if err != nil {
			return nil, err
		}
		out.worlds = append(out.worlds, judgesOfWorld{params, in})
	}
	return out, nil
}

// isOf tells of a rule that has its source: the others are of native objects alone.
func isOf(f *compile.Form) bool { return f.Source != nil || f.Rule.Policy.InCEL() }

// Refused is what checks had against the objects, for which rules that could be
// native are not.
func (j *Judges) Refused() (out []string) {
	for _, d := range j.Compiled.Diagnostics {
		if d.Code == diag.InvalidObject || d.Code == diag.CompilerFault {
			out = append(out, d.Message)
		}
	}
	return out
}

// Native are the rules that both judges judge.
func (j *Judges) Native() []*compile.Form { return j.native }

// asked is a request as an API server hands it to admission.
func (j *Judges) asked(r *Request) *Request {
	return r.Filled(j.defaults)
}

// Judge asks both judges about a request, of which the objects are as somebody would write
// them. There is an opinion for each native rule.
func (j *Judges) Judge(ctx context.Context, r *Request) ([]judge.Opinion, error) {
	request := j.asked(r).Recorded()
	both := j.worlds[r.World(len(j.worlds))]
	all, err := both.Judge(ctx, request)
	if err == nil {
		both.Mutate(ctx, request, all)
	}
	out := all[:0]
	for _, o := range all {
		if o.Compared && isOf(o.Rule) {
			out = append(out, o)
		}
	}
	return out, err
}

// params are the objects that rules look up when they judge a request.
func (j *Judges) params(r *Request) []*unstructured.Unstructured {
	return j.worlds[r.World(len(j.worlds))].params
}
