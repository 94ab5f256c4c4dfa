package mutating

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/vap"
)

// An Existing is a policy that changes objects that are there when a request triggers it. No API
// server has such policies: it is for Kyverno's kinds in CEL.
type Existing struct {
	// Draft is what other policies that mutate have too. Its conditions are about the request that
	// triggers it, and ask no variables; its variables and mutations are about an object that is
	// changed, which is object to them.
	Draft
	// Find gives the objects that are changed, with what triggers the policy as object.
	Find vap.Expression
	// Changed are the resources of these objects, of which the status is written where Status is set.
	Changed []vap.ResourceRule
	Status  bool
	// Of are conditions on an object that is changed, which may ask variables.
	Of []vap.Condition
	// Idle tells that no request triggers the policy: only what is there does, when the policy comes.
	Idle bool
	// OwnRequests tells that what Kyverno itself does triggers it too.
	OwnRequests bool
}

// ExistingObjects are the frame of a policy, as if it validated, and what it does to existing objects.
type ExistingObjects struct {
	vap.Objects
	Find      string
	Of        []admissionregistrationv1.MatchCondition
	Mutations []admissionregistrationv1.Mutation
}

// EmitExisting turns the trees of a draft into text. Where a diagnostic is an error there is none.
func EmitExisting(d *Existing, opts vap.EmitOptions) (ExistingObjects, diag.List) {
	body := []vap.Expression{d.Find}
	for _, c := range d.Of {
		body = append(body, vap.Expression{Pos: c.Pos, Expr: c.Expr.Value})
	}
	for _, m := range d.Mutations {
		body = append(body, vap.Expression{Pos: m.Pos, Expr: m.Expr})
	}
	frame, texts, found := vap.EmitWith(&d.Draft.Draft, body, opts)
	if found.HasErrors() {
		return ExistingObjects{}, found
	}
	out := ExistingObjects{Objects: frame, Find: texts[0]}
	for i, c := range d.Of {
		out.Of = append(out.Of, admissionregistrationv1.MatchCondition{Name: c.Name, Expression: texts[1+i]})
	}
	for i, m := range d.Mutations {
		out.Mutations = append(out.Mutations, m.object(texts[1+len(d.Of)+i]))
	}
	return out, found
}
