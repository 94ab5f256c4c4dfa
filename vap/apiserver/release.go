package apiserver

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
)

// A Difference is an expression that an API server of some release evaluates
// otherwise than one of a newer release, as a Judge does it.
type Difference struct {
	Field string // for instance spec.validations[0].expression
	Call  string // what means another thing
	Since cel.Release
}

// String says it in words.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s means one thing before Kubernetes %s and another since", d.Field, d.Call, d.Since)
}

// Differences are the expressions of p that do not mean the same in every release
// from oldest to the latest, which is that of a Judge. What does not parse has no
// meaning, and is none.
func Differences(p *admissionregistrationv1.ValidatingAdmissionPolicy, oldest cel.Release) []Difference {
	var out []Difference
	variables := map[string]cel.Value{}
	lookup := func(name string) (cel.Value, bool) {
		v, ok := variables[name]
		return v, ok
	}
	look := func(text, format string, args ...any) cel.Value {
		v, err := cel.Parse(text)
		if err != nil {
			return cel.Value{}
		}
		for _, c := range v.Changes(oldest, lookup) {
			out = append(out, Difference{fmt.Sprintf(format, args...), c.Call.String(), c.Since})
		}
		return v
	}
	for i, c := range p.Spec.MatchConditions {
		look(c.Expression, "spec.matchConditions[%d].expression", i)
	}
	for i, v := range p.Spec.Variables {
		if parsed := look(v.Expression, "spec.variables[%d].expression", i); !parsed.IsZero() {
			variables[v.Name] = parsed
		}
	}
	for i, v := range p.Spec.Validations {
		look(v.Expression, "spec.validations[%d].expression", i)
		look(v.MessageExpression, "spec.validations[%d].messageExpression", i)
	}
	for i, a := range p.Spec.AuditAnnotations {
		look(a.ValueExpression, "spec.auditAnnotations[%d].valueExpression", i)
	}
	return out
}
