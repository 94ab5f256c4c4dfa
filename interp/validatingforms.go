package interp

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// formsOf are the forms of a ValidatingPolicy: as it is written, and, where it is
// about pods and nothing else, for their controllers.
func formsOf(p *policy.Policy) []*validatingForm {
	asWritten := func(s string) string { return s }
	v := p.Validating
	forms := []*validatingForm{{name: p.Name, policy: p, constraints: v.MatchConstraints, rewrite: asWritten}}
	if !onlyPods(v.MatchConstraints) {
		return forms
	}
	for _, x := range []struct {
		prefix    string
		template  string
		resources []string
	}{
		{"autogen", "spec.template", []string{"daemonsets", "deployments", "jobs", "replicasets", "statefulsets"}},
		{"autogen-cronjob", "spec.jobTemplate.spec.template", []string{"cronjobs"}},
	} {
		matched := controllerRules(v, x.resources)
		if len(matched.Rules) == 0 {
			continue
		}
		forms = append(forms, &validatingForm{
			name: x.prefix + "-" + p.Name, policy: p, constraints: matched, rewrite: func(s string) string { return inTemplate(s, x.template) },
		})
	}
	return forms
}

// onlyPods tells whether constraints match pods and nothing else, by no name and no
// label.
func onlyPods(m *policy.MatchConstraints) bool {
	if m == nil || len(m.Rules) == 0 || chooses(m.NamespaceSelector) || chooses(m.ObjectSelector) {
		return false
	}
	return !slices.ContainsFunc(m.Rules, func(r policy.ResourceRule) bool {
		return len(r.Names) > 0 || len(r.Resources) != 1 || r.Resources[0] != "pods"
	})
}

func chooses(s *policy.Selector) bool {
	return s != nil && len(s.MatchLabels)+len(s.Expressions) > 0
}

// controllerRules match those of the controllers that the policy does not leave out,
// for the operations of its first rule.
func controllerRules(v *policy.Validating, resources []string) *policy.MatchConstraints {
	out := &policy.MatchConstraints{}
	for _, resource := range resources {
		if v.Autogen != nil && !slices.Contains(v.Autogen, resource) {
			continue
		}
		group := "apps"
		if resource == "jobs" || resource == "cronjobs" {
			group = "batch"
		}
		out.Rules = append(out.Rules, policy.ResourceRule{
			Groups: []string{group}, Versions: []string{"v1"}, Resources: []string{resource},
			Operations: v.MatchConstraints.Rules[0].Operations, Scope: "*",
		})
	}
	return out
}

// inTemplate moves what an expression says of a pod to the template in a
// controller. As upstream, it looks for text.
func inTemplate(expression, template string) string {
	for _, part := range []string{"spec", "metadata"} {
		for _, object := range []string{"object", "oldObject"} {
			expression = strings.ReplaceAll(expression, object+"."+part, object+"."+template+"."+part)
		}
	}
	return expression
}
