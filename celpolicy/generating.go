package celpolicy

import (
	"reflect"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/generating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// generating is the GeneratingPolicy of a draft. An error makes nothing, so there is no failure
// policy; and Kyverno's background scan has no part in it.
func (c *converter) generating(p *policy.Policy, d *generating.Draft) ([]Object, *diag.Diagnostic) {
	from, found := generating.Emit(d, vap.EmitOptions{})
	if found.HasErrors() {
		return nil, &found[0]
	}
	e := newExpressions(p, &d.Draft, d.Bindings[0])
	out := c.object(p, "GeneratingPolicy", from.Policy.Name, &d.Draft)
	out.mayErr = d.MayErr
	out.Spec = e.frame(from.Policy.Spec)
	out.Spec.FailurePolicy, out.Spec.Autogen = "", nil
	out.Spec.Evaluation, out.Spec.ServerSideApply = evaluationOf(d), d.ServerSideApply
	for _, entry := range from.Entries {
		out.Spec.Generate = append(out.Spec.Generate, Generation{e.text(entry, true)})
	}
	if d.Bindings[0].Param != nil {
		params := admissionregistrationv1.Variable{Name: e.named, Expression: e.params.Text(width)}
		out.Spec.Variables = slices.Insert(out.Spec.Variables, 0, params)
	}
	e.dropUnread(&out.Spec)
	return []Object{out}, e.why
}

// evaluationOf says when a policy generates; nil is Kyverno's default.
func evaluationOf(d *generating.Draft) *Evaluation {
	var out Evaluation
	on := func(is bool) *Switch {
		if !is {
			return nil
		}
		return &Switch{true}
	}
	out.Synchronize, out.GenerateExisting, out.Orphans = on(d.Synchronize), on(d.Existing), on(d.Orphans)
	if d.Idle {
		out.Admission = &Switch{}
	}
	if d.OwnRequests {
		out.SkipBackgroundRequests = new(bool)
	}
	if out == (Evaluation{}) {
		return nil
	}
	return &out
}

// joined are objects and others, in which policies that generate at the same time are one: as long as
// no entry may be an error, behind which Kyverno evaluates no other.
func joined(objects, others []Object) []Object {
	for _, other := range others {
		i := slices.IndexFunc(objects, func(o Object) bool { return o.joins(other) })
		if i < 0 {
			objects = append(objects, other)
			continue
		}
		into := &objects[i]
		into.Spec.Generate = append(slices.Clip(into.Spec.Generate), other.Spec.Generate...)
		into.mayErr = other.mayErr
		for _, v := range other.Spec.Variables {
			if !slices.Contains(into.Spec.Variables, v) {
				into.Spec.Variables = append(slices.Clip(into.Spec.Variables), v)
			}
		}
	}
	return objects
}

// joins tells that what another policy generates can come behind what this one does.
func (o Object) joins(other Object) bool {
	if len(o.Spec.Generate) == 0 || len(other.Spec.Generate) == 0 || o.mayErr {
		return false
	}
	for _, v := range o.Spec.Variables {
		if slices.ContainsFunc(other.Spec.Variables, func(w admissionregistrationv1.Variable) bool { return v.Name == w.Name && v != w }) {
			return false
		}
	}
	frame := func(s Spec) Spec {
		s.Generate, s.Variables = nil, nil
		return s
	}
	return o.Kind == other.Kind && reflect.DeepEqual(frame(o.Spec), frame(other.Spec))
}
