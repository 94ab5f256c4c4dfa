package vap

import (
	"fmt"
	"slices"

	"github.com/kvap/kvap/cel"
)

// What an object of several rules is about can be in several places of a request. Trees call
// it by one name, which stands for one of these in what is emitted:
//
//	object  object == null ? oldObject : object  where a rule says the same of what is made
//	        and of what is deleted
//	pod     dyn(object.spec).?template.orValue(object)  where a rule says the same of Pods and
//	        of the templates of their controllers; with CronJobs among these it is
//	        dyn(object.spec).?jobTemplate.orValue(object).spec.?template.orValue(object)
//
// To validations these are variables. Match conditions have no variables: there it is written
// out where it is read once, and else the one element of a list. They need no dyn() either, for
// no API server checks their types.

// The names of these variables.
const (
	subjectName = "subject"
	versionName = "o" // in match conditions: the object, or the old one
	PodName     = "pod"
	OldPodName  = "oldPod"
)

// subjectOf is the object, or what a DELETE removes.
func subjectOf() cel.Value {
	return cel.Cond(cel.Ident("object").Eq(cel.Null()), cel.Ident("oldObject"), cel.Ident("object"))
}

// podOf is a Pod, or the template that its controller makes Pods of: a Pod's spec has no
// jobTemplate and no template. No type checker knows its type.
func (d *Draft) podOf(object cel.Value) cel.Value {
	spec := cel.Func(cel.FuncDyn, object.Field("spec"))
	if d.CronJobs {
		spec = spec.Optional("jobTemplate").OrValue(object).Field("spec")
	}
	return spec.Optional("template").OrValue(object)
}

// condition is a match condition about what is in several places.
func (e *emitter) condition(b cel.Bool, sound bool) cel.Value {
	v := e.untypedCondition(b)
	if e.draft.Pods {
		if old := untyped(e.draft.podOf(cel.Ident("oldObject"))); e.draft.creates() { // nothing was there before
			v = v.Substitute(OldPodName, old)
		} else {
			v = inCondition(v, OldPodName, OldPodName, old, sound)
		}
		v = inCondition(v, PodName, PodName, untyped(e.draft.podOf(cel.Ident("object"))), sound)
	}
	if e.draft.Deletes {
		v = inCondition(v, "object", versionName, subjectOf(), sound)
	}
	return v
}

// guardCondition is the guard. Where it asks of the old object too, the object violates the
// rule and the old one did not:
//
//	[object, oldObject].map(o, o == null || has(o.spec.tls)) == [false, true]
//
// Of what is deleted, it is the old object that violates the rule, and the object is null:
//
//	[object, oldObject].map(...) == [object == null, object != null]
func (e *emitter) guardCondition() cel.Value {
	d := e.draft
	if d.Before.IsZero() {
		return e.condition(d.Guard, true)
	}
	holds := e.untypedCondition(cel.Implies(d.Before, cel.Not(d.Guard)).Simplify())
	object, old, o := cel.Ident("object"), cel.Ident("oldObject"), cel.Ident(versionName)
	holds = holds.Substitute("object", o)
	if d.Pods {
		holds = inCondition(holds, PodName, PodName, untyped(d.podOf(o)), true)
	}
	holds = cel.Or(o.Eq(cel.Null()), holds.AsBool()).Value
	violated := cel.List(cel.Lit(false).Value, cel.Lit(true).Value)
	if d.Deletes {
		violated = cel.List(object.Eq(cel.Null()).Value, cel.Not(object.Eq(cel.Null())).Value)
	}
	return cel.List(object, old).Macro(cel.MacroMap, o, holds).Eq(violated).Value
}

// untypedCondition is a condition in the form for match conditions.
func (e *emitter) untypedCondition(b cel.Bool) cel.Value { return untyped(e.short(b.Value)) }

// untyped needs no dyn() around what is in objects.
func untyped(v cel.Value) cel.Value {
	return v.WithoutDyn("object", "oldObject", versionName, PodName, OldPodName)
}

// untyped needs no dyn() for what is in a Pod that stands in several places.
func (e *emitter) untyped(v cel.Value) cel.Value {
	if !e.draft.Pods {
		return v
	}
	return v.WithoutDyn(PodName, OldPodName)
}

// creates tells that the draft is about requests without an old object.
func (d *Draft) creates() bool {
	return slices.ContainsFunc(d.Constraints.Rules, func(r ResourceRule) bool {
		return !slices.Equal(r.Operations, []string{"DELETE"}) && !slices.Equal(r.Operations, []string{"UPDATE"})
	})
}

// inCondition puts what stands for name into a match condition. What is read once is written
// where it is read; else the condition calls it so, or what all that it reads has in common,
// whichever is shorter. A sound condition, which is never an error, reads fields that it adds up
// in turn.
//
//	[object == null ? oldObject : object].exists(o, !has(o.spec.a) || o.spec.a == o.spec.b)
//	[(...).?metadata.?labels].exists(labels, labels.?app != labels.?team)
func inCondition(v cel.Value, name, called string, what cel.Value, sound bool) cel.Value {
	switch v.Count(name) {
	case 0:
		return v
	case 1:
		return v.Substitute(name, what)
	}
	if w := v.ByName(name); sound && w.Count(name) == 1 {
		return w.Substitute(name, what)
	}
	x := cel.Ident(called)
	whole := cel.ForSome.Of(cel.List(what), x, v.Substitute(name, x).AsBool())
	path, last := v.Common(name)
	if last == name {
		return whole.Value
	}
	scope := &cel.Scope{}
	scope.Reserve(v.Idents()...)
	x = cel.Ident(scope.Fresh(last))
	part := cel.ForSome.Of(cel.List(path.Substitute(name, what)), x, v.SubstituteCommon(path, x).AsBool())
	if len(part.String()) < len(whole.String()) {
		return part.Value
	}
	return whole.Value
}

// body is an expression of what is behind the match conditions.
func (e *emitter) body(v cel.Value) cel.Value {
	v = e.untyped(v)
	for _, s := range e.standIns {
		v = v.Substitute(s.name, cel.Ident("variables").Field(s.variable))
	}
	return v
}

// A standIn is a name in trees, and the variable that is it.
type standIn struct{ name, variable string }

// declareStandIns adds these variables, which are left out where nothing reads them.
func (e *emitter) declareStandIns() {
	if e.draft.Deletes {
		e.declare("object", subjectName, subjectOf())
	}
	if e.draft.Pods {
		e.declare(PodName, PodName, e.body(e.draft.podOf(cel.Ident("object"))))
		e.declare(OldPodName, OldPodName, e.draft.podOf(cel.Ident("oldObject")))
	}
}

func (e *emitter) declare(name, called string, what cel.Value) {
	fresh := called
	for i := 2; slices.ContainsFunc(e.draft.Variables, func(v Variable) bool { return v.Name == fresh }); i++ {
		fresh = fmt.Sprint(called, i)
	}
	e.standIns = append(e.standIns, standIn{name, fresh})
	e.vars = append(e.vars, variable{Variable{Pos: e.pos(), Name: fresh, Expr: what}, e.print(e.pos(), what)})
}
