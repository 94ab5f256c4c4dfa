package policy

import (
	"slices"
	"time"

	"github.com/kvap/kvap/diag"
)

// A CELException is the spec of a PolicyException of policies.kyverno.io, from policies
// that are written in CEL.
type CELException struct {
	Pos             diag.Pos
	Refs            []Ref
	MatchConditions []CEL // all must be true
	// Images and AllowedValues are for the policy's own expressions to ask for. An
	// exception that has neither is from the whole policy.
	Images, AllowedValues []string
	ReportResult          string    // skip (default) or pass
	ExpiresAt             time.Time // zero for never
	Labels                map[string]string
}

// A Ref names a policy, of any namespace.
type Ref struct {
	Pos        diag.Pos
	Kind, Name string
}

// IsFrom tells whether the exception names a policy.
func (e *CELException) IsFrom(p *Policy) bool {
	return slices.ContainsFunc(e.Refs, func(ref Ref) bool { return ref.Kind == p.Kind && ref.Name == p.Name })
}

// IsFrom tells whether the exception names a policy, of the group that it is for.
func (e *Exception) IsFrom(p *Policy) bool {
	if e.CEL != nil {
		return e.CEL.IsFrom(p)
	}
	return slices.ContainsFunc(e.Exceptions, func(ref ExceptionRef) bool { return ref.PolicyName == p.FullName() })
}

// RulesOf are the rules of a policy that the exception is from, with wildcards; none for all that
// the policy says.
func (e *Exception) RulesOf(p *Policy) (out []string) {
	for _, ref := range e.Exceptions {
		if ref.PolicyName == p.FullName() {
			out = append(out, ref.RuleNames...)
		}
	}
	return out
}

// Whole tells that the exception is from all that the policy says.
func (e *CELException) Whole() bool { return len(e.Images)+len(e.AllowedValues) == 0 }

// celException reads a PolicyException of policies.kyverno.io.
func (r *reader) celException(doc *Node) *Exception {
	o := r.object(doc, "an exception")
	e := &Exception{Pos: doc.Pos, Background: true, Source: doc, CEL: &CELException{Pos: doc.Pos, ReportResult: "skip"}}
	o.allow("apiVersion", "kind", "status")
	meta := r.metadata(o)
	e.Name, e.Namespace, e.CEL.Labels = meta.name, meta.namespace, meta.labels
	if e.Namespace == "" {
		e.Namespace = "default"
	}
	if spec := o.require("spec"); spec != nil {
		r.celExceptionSpec(e.CEL, spec)
	}
	o.end()
	return e
}

func (r *reader) celExceptionSpec(e *CELException, n *Node) {
	o := r.object(n, "an exception's spec")
	o.allow("properties", "evaluationMode")
	e.Refs = each(r.list(o.require("policyRefs")), func(n *Node) Ref {
		ref := r.object(n, "an entry of policyRefs")
		out := Ref{Pos: n.Pos, Kind: ref.needText("kind").Value, Name: ref.needText("name").Value}
		ref.end()
		return out
	})
	if e.Refs != nil && len(e.Refs) == 0 {
		r.fail(o.pos("policyRefs"), diag.Missing, "an exception needs at least one entry in policyRefs")
	}
	e.MatchConditions = each(o.list("matchConditions"), r.matchCondition)
	e.Images, e.AllowedValues = o.strings("images"), o.strings("allowedValues")
	if result := o.choice("reportResult", "skip", "pass"); result != "" {
		e.ReportResult = result
	}
	if end := o.text("expiresAt"); end.Value != "" {
		var err error
		if e.ExpiresAt, err = time.Parse(time.RFC3339, end.Value); err != nil {
			r.fail(end.Pos, diag.OutOfRange, "expiresAt must be a time such as 2027-01-31T00:00:00Z, not %q", end.Value)
		}
	}
	o.end()
}
