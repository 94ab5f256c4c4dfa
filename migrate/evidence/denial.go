package evidence

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// A denial is what Kyverno answers to a request that it does not admit.
type denial struct {
	webhook string                       // its name
	rules   map[string]map[string]string // messages, by policy and rule
}

// parseDenial reads the message of a denial; nil where it is none of Kyverno's.
//
//	admission webhook "validate.kyverno.svc-fail" denied the request:
//
//	resource Pod/default/web was blocked due to the following policies
//
//	policy:
//	  rule: message
func parseDenial(message string) *denial {
	_, rest, ok := strings.Cut(message, `admission webhook "`)
	if !ok {
		return nil
	}
	name, rest, ok := strings.Cut(rest, `" denied the request:`)
	if !ok || !strings.Contains(name, "validate.kyverno.svc") {
		return nil
	}
	_, body, ok := strings.Cut(rest, "due to the following policies")
	if !ok {
		return nil
	}
	d := &denial{webhook: name}
	if err := yaml.Unmarshal([]byte(strings.TrimLeft(body, " ")), &d.rules); err != nil || len(d.rules) == 0 {
		return nil
	}
	return d
}
