package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/report"
)

// A Filter says what of a cluster is to be told. The zero value is everything.
type Filter struct {
	Names     []string        // of policies
	Namespace string          // of namespaced policies; those that have none are told as well
	Labels    labels.Selector // of the source, or where that is not there of what was made from it
}

func (f Filter) matches(name, namespace string, has map[string]string) bool {
	switch {
	case len(f.Names) > 0 && !slices.Contains(f.Names, name):
		return false
	case f.Namespace != "" && namespace != "" && namespace != f.Namespace:
		return false
	}
	return f.Labels == nil || f.Labels.Matches(labels.Set(has))
}

func (f Filter) policy(s *listedPolicy) bool {
	namespace, name, _ := s.title()
	if s.source != nil {
		return f.matches(name, namespace, s.source.Policy.Labels)
	}
	return slices.ContainsFunc(s.claims, func(c claim) bool { return f.matches(name, namespace, c.Labels) })
}

func (f Filter) native(n *nativePolicy) bool { return f.matches(n.Name, "", n.Labels) }

// lost tells of a name that only bindings know, which has no labels.
func (f Filter) lost(n report.NativeStatus) bool { return f.matches(n.Name, "", nil) }
