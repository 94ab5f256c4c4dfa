package controller

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// typeWarnings are what the API server's type checker says of a policy, by the rule
// that it is about, as policy/rule. checked is false where it has not looked at the
// policy as it is now.
func typeWarnings(p *nativePolicy, schemas *schema.Set) (warnings map[string][]v1alpha1.RuleWarning, checked bool) {
	warnings = map[string][]v1alpha1.RuleWarning{}
	if p.Status.ObservedGeneration != p.Generation || p.Status.TypeChecking == nil {
		return warnings, false
	}
	source, ok, err := vap.TranslationOf(p.Annotations)
	if !ok || err != nil || len(p.Status.TypeChecking.ExpressionWarnings) == 0 {
		return warnings, true
	}
	known := falseAlarms(p, schemas)
	for _, w := range p.Status.TypeChecking.ExpressionWarnings {
		var i int
		if n, _ := fmt.Sscanf(w.FieldRef, "spec.validations[%d]", &i); n != 1 || i < 0 || i >= len(source.Validations) {
			continue
		}
		from := source.Validations[i]
		for _, i := range from.Members() {
			member := source.Members[i]
			rule := member.Policy + "/" + member.Rule
			warnings[rule] = append(warnings[rule], v1alpha1.RuleWarning{
				Object: p.Name, FieldRef: w.FieldRef, Warning: strings.TrimSpace(w.Warning), Known: known[w.FieldRef],
				Rule: member.Rule, Path: from.Path,
			})
		}
	}
	return warnings, true
}

// falseAlarms are the fields of a policy of which a cluster's type checker complains
// and need not: with the types that values have at run time there is nothing to say.
func falseAlarms(p *nativePolicy, schemas *schema.Set) map[string]bool {
	out := map[string]bool{}
	for _, w := range apiserver.TypeCheck(p, schemas.StatusResolver(), schemas.RESTMapper()) {
		out[w.Field] = true
	}
	for _, w := range apiserver.TypeCheck(p, schemas.Resolver(), schemas.RESTMapper()) {
		delete(out, w.Field)
	}
	return out
}
