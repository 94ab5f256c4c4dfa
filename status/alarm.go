package status

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/vap/apiserver"
)

// falseAlarms tells which warnings are false alarms of the cluster's type checker:
// those which the types that the API server publishes yield, and the types that
// values have at run time do not. There, for instance, resources.limits is a map of
// strings; what the API server publishes has no such field.
func (c Snapshot) falseAlarms(p *admissionregistrationv1.ValidatingAdmissionPolicy, warnings []apiserver.TypeWarning) []bool {
	out := make([]bool, len(warnings))
	if len(warnings) == 0 || c.Schemas == nil {
		return out
	}
	mapper := c.Schemas.RESTMapper()
	published := complaints(apiserver.TypeCheck(p, c.Schemas.StatusResolver(), mapper))
	atRuntime := complaints(apiserver.TypeCheck(p, c.Schemas.Resolver(), mapper))
	for i, w := range warnings {
		kinds := apiserver.WarnedKinds(w.Warning)
		out[i] = len(kinds) > 0
		for _, kind := range kinds {
			at := complaint{w.Field, kind}
			out[i] = out[i] && published[at] && !atRuntime[at]
		}
	}
	return out
}

// A complaint is about an expression on objects of a kind.
type complaint struct{ field, kind string }

func complaints(warnings []apiserver.TypeWarning) map[complaint]bool {
	out := map[complaint]bool{}
	for _, w := range warnings {
		for _, kind := range apiserver.WarnedKinds(w.Warning) {
			out[complaint{w.Field, kind}] = true
		}
	}
	return out
}
