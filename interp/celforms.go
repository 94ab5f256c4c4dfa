package interp

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// A celForm is a policy in CEL as it is written, or as it is for the controllers of pods.
type celForm struct {
	name        string // as it is reported
	policy      *policy.Policy
	constraints *policy.MatchConstraints
	// rewrite makes an expression about pods one about what is matched here.
	rewrite  func(string) string
	tooLarge func() error
}

// validatingFormsOf are the forms of a ValidatingPolicy.
func validatingFormsOf(p *policy.Policy, tooLarge func() error) (out []*validatingForm) {
	for _, f := range celFormsOf(p, p.Validating.Autogen, inTemplate, tooLarge) {
		out = append(out, &validatingForm{celForm: f})
	}
	return out
}

// celFormsOf are the forms of a policy: as it is written, and, where it is about pods and
// nothing else, for their controllers. moved is an expression about what is in a template.
func celFormsOf(p *policy.Policy, controllers []string, moved func(expression, template string) string, tooLarge func() error) []celForm {
	asWritten := func(s string) string { return s }
	constraints := p.MatchConstraints()
	forms := []celForm{{name: p.Name, policy: p, constraints: constraints, rewrite: asWritten, tooLarge: tooLarge}}
	if !onlyPods(constraints) {
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
		matched := controllerRules(constraints, controllers, x.resources)
		if len(matched.Rules) == 0 {
			continue
		}
		forms = append(forms, celForm{
			name: x.prefix + "-" + p.Name, policy: p, constraints: matched, rewrite: func(s string) string { return moved(s, x.template) }, tooLarge: tooLarge,
		})
	}
	return forms
}

// onlyPods tells whether constraints have one rule, which is about pods, with no
// wildcard, no name, no label and nothing left out.
func onlyPods(m *policy.MatchConstraints) bool {
	if m == nil || len(m.Rules) != 1 || len(m.Exclude) > 0 || chooses(m.ObjectSelector) {
		return false
	}
	r := m.Rules[0]
	is := func(have []string, want string) bool { return len(have) == 1 && have[0] == want }
	return len(r.Names) == 0 && is(r.Groups, "") && is(r.Versions, "v1") && is(r.Resources, "pods")
}

func chooses(s *policy.Selector) bool {
	return s != nil && len(s.MatchLabels)+len(s.Expressions) > 0
}

// controllerRules match those of some controllers that the policy does not leave out,
// for the operations of its rule and in the namespaces that it selects.
func controllerRules(m *policy.MatchConstraints, controllers, resources []string) *policy.MatchConstraints {
	out := &policy.MatchConstraints{NamespaceSelector: m.NamespaceSelector}
	for _, resource := range resources {
		if controllers != nil && !slices.Contains(controllers, resource) {
			continue
		}
		group := "apps"
		if resource == "jobs" || resource == "cronjobs" {
			group = "batch"
		}
		out.Rules = append(out.Rules, policy.ResourceRule{
			Groups: []string{group}, Versions: []string{"v1"}, Resources: []string{resource},
			Operations: m.Rules[0].Operations, Scope: "*",
		})
	}
	return out
}

// inTemplate moves what an expression says of a pod to the template in a
// controller, but for a namespace. As upstream, it looks for text.
func inTemplate(expression, template string) string {
	for _, part := range []string{"spec", "metadata"} {
		for _, object := range []string{"object", "oldObject"} {
			expression = moved(expression, object+"."+part, object+"."+template+"."+part)
		}
	}
	return expression
}

// moved writes one text for another, except in front of .namespace.
func moved(in, from, to string) string {
	pieces := strings.Split(in, from)
	out := pieces[0]
	for _, after := range pieces[1:] {
		rest, isNamespace := strings.CutPrefix(after, ".namespace")
		if isNamespace && (rest == "" || !isNamePart(rest[0])) {
			out += from + after
		} else {
			out += to + after
		}
	}
	return out
}

func isNamePart(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
