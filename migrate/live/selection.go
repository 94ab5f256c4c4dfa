package live

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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

// Choose is which policies are meant, in order.
func (ws PolicyStates) Choose(s Selection) ([]string, error) {
	var out []string
	found := map[string]bool{}
	for name, w := range ws {
		if w.Source == nil && w.Record == nil { // a policy of kvap.dev from the beginning
			continue
		}
		if len(s.Names) == 0 && (w.Ref.Namespace == "" || s.Every || w.Ref.Namespace == s.Namespace) &&
			(s.Labels.Empty() || w.Source != nil && s.Labels.Matches(labels.Set(w.Source.GetLabels()))) {
			out = append(out, name)
		}
		for _, wanted := range s.Names {
			if wanted == w.Ref.Name && (w.Ref.Namespace == "" || w.Ref.Namespace == s.Namespace) || wanted == w.Ref.Namespace+"/"+w.Ref.Name && w.Ref.Namespace != "" {
				out, found[wanted] = append(out, name), true
			}
		}
	}
	for _, wanted := range s.Names {
		if !found[wanted] {
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
	return slices.Compact(out), nil
}
