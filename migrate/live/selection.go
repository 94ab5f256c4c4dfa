package live

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// A Selection is which policies are meant: those that are named, as NAME or
// NAMESPACE/NAME, else those with the labels.
type Selection struct {
	Names     []string
	Namespace string // of policies that are named without one
	Every     bool   // namespace, where none is named
	Labels    labels.Selector
}

// Means tells whether a name is that of a policy.
func (s Selection) Means(wanted, namespace, name string) bool {
	return wanted == strings.TrimPrefix(namespace+"/"+name, "/") || wanted == name && namespace != "" && namespace == s.Namespace
}

// Takes tells whether a policy is meant.
func (s Selection) Takes(namespace, name string, of labels.Set) bool {
	if len(s.Names) > 0 {
		return slices.ContainsFunc(s.Names, func(wanted string) bool { return s.Means(wanted, namespace, name) })
	}
	return (s.Every || namespace == "" || namespace == s.Namespace) && s.Labels.Matches(of)
}

// Choose is which policies are meant, in order.
func (ws PolicyStates) Choose(s Selection) ([]string, error) {
	var out []string
	for name, w := range ws {
		of := labels.Set{}
		if w.Source != nil {
			of = w.Source.GetLabels()
		} else if w.Record == nil || len(s.Names) == 0 && !s.Labels.Empty() { // a policy of kvap.dev from the beginning; labels that nobody knows
			continue
		}
		if s.Takes(w.Ref.Namespace, w.Ref.Name, of) {
			out = append(out, name)
		}
	}
	for _, wanted := range s.Names {
		if !slices.ContainsFunc(out, func(name string) bool { return s.Means(wanted, ws[name].Ref.Namespace, ws[name].Ref.Name) }) {
			return nil, fmt.Errorf("the cluster has no policy %s, and no record of one; kvap status -A lists all", wanted)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the cluster has no such policy")
	}
	slices.SortFunc(out, func(a, b string) int {
		x, y := ws[a].Ref, ws[b].Ref
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name), cmp.Compare(a, b))
	})
	return out, nil
}
