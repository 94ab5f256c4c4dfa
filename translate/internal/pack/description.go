package pack

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// Describe gives an object what its policies say about themselves to people: title,
// category, severity and description, and the labels of whoever owns them. Of
// several policies only what they all say holds for the object.
func Describe(d *vap.Draft, policies ...*policy.Policy) {
	d.Annotations, d.Labels = nil, nil
	for i, p := range policies {
		annotations, labels := pick(p.Annotations, describes), pick(p.Labels, owns)
		for k, v := range labels {
			if len(validation.IsQualifiedName(k))+len(validation.IsValidLabelValue(v)) > 0 { // which no cluster takes
				delete(labels, k)
			}
		}
		if i == 0 {
			d.Annotations, d.Labels = annotations, labels
			continue
		}
		d.Annotations, d.Labels = common(d.Annotations, annotations), common(d.Labels, labels)
	}
}

// describes tells of the annotations that Kyverno's documentation gives policies, and of the one
// that accepts what is found of a policy and of what is made of it.
func describes(key string) bool {
	switch key {
	case "policies.kyverno.io/title", "policies.kyverno.io/category", "policies.kyverno.io/severity", "policies.kyverno.io/description", "kvap.dev/ignore":
		return true
	}
	return false
}

// owns tells of labels that say whose an object is. Those by which a tool knows
// what it has applied itself are not: it would take the objects for its own, and
// may delete them.
func owns(key string) bool {
	switch key {
	case "app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/chart":
		return false
	}
	domain, _, _ := strings.Cut(key, "/")
	for _, tool := range []string{"argoproj.io", "fluxcd.io", "cattle.io", "kvap.dev", "kyverno.io", "kpt.dev", "k14s.io"} {
		if domain == tool || strings.HasSuffix(domain, "."+tool) {
			return false
		}
	}
	return true
}

func pick(m map[string]string, keep func(string) bool) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if keep(k) {
			out[k] = v
		}
	}
	return out
}

// common is what a and b both say.
func common(a, b map[string]string) map[string]string {
	return pick(a, func(k string) bool { v, ok := b[k]; return ok && v == a[k] })
}
