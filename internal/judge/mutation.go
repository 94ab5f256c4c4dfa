package judge

import (
	"context"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// mutator makes the interpreter that mutates, which has all policies at once: each
// changes what the ones before made of an object. It is nil where none does.
func (j *Judges) mutator(world interp.World, keep func(*policy.Policy) bool) *interp.Interpreter {
	var mutating []*policy.Policy
	for i, f := range j.Rules {
		if mutates(f) && keep(f.Rule.Policy) && (i == 0 || len(mutating) == 0 || mutating[len(mutating)-1] != f.Rule.Policy) {
			mutating = append(mutating, f.Rule.Policy)
		}
	}
	if mutating == nil {
		return nil
	}
	return interp.New(mutating, j.exceptions, world, interp.Limits{})
}

// mutates tells of a rule that changes the object of a request.
func mutates(f *compile.Form) bool {
	return f.Rule.Mutates()
}

// Mutate lets the mutate rules change the object of a request, one after the other,
// and notes in the opinions, if there are any, what came of each. It is nil where
// there are no such rules.
func (j *Judges) Mutate(ctx context.Context, r *Request, opinions []Opinion) *interp.MutationResult {
	if j.mutation == nil {
		return nil
	}
	done := j.mutation.Mutate(ctx, j.asked(r.unnamed()))
	if opinions == nil {
		return done
	}
	places := map[string][]int{} // by policy and rule
	for i, f := range j.Rules {
		if mutates(f) {
			name := f.Rule.PolicyName() + "\n" + f.Name
			places[name] = append(places[name], i)
		}
	}
	for i := range done.Rules {
		res := &done.Rules[i]
		name := res.Policy + "\n" + res.Rule
		if res.Namespace != "" {
			name = res.Namespace + "/" + name
		}
		if list := places[name]; len(list) > 0 {
			opinions[list[0]].interpreted(res.RuleResult)
			opinions[list[0]].Mutation = res
			places[name] = list[1:]
		}
	}
	j.compareChanges(ctx, r, opinions)
	j.forget(r, opinions)
	return done
}

// ChangingBy are the same judges, but that Mutate lets only some policies change objects, and
// holds nothing against them that is native.
func (j *Judges) ChangingBy(keep func(*policy.Policy) bool) *Judges {
	other := *j
	other.mutation, other.changing = j.mutator(j.world, keep), nil
	return &other
}

// Object is the request's object, nil where it has none. It must not be changed.
func (r *Request) Object() map[string]any {
	object, _ := r.admission["object"].(map[string]any)
	return object
}

// With is the request with another object, in the form that the API server would
// hand on.
func (r *Request) With(object map[string]any) (*Request, error) {
	out := *r
	out.generated = ""
	if out.asked == nil {
		out.asked = r.unnamed().Object()
	}
	native := *r.native
	out.native = &native
	out.admission = map[string]any{}
	for k, v := range r.admission {
		out.admission[k] = v
	}
	out.admission["object"] = object
	return &out, out.readObjects()
}
