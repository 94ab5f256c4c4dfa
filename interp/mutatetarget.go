package interp

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/interp/internal/wildcard"
	"github.com/kvap/kvap/policy"
)

// A mutateTarget is an entry of mutate.targets, read once: which existing objects a rule
// changes.
type mutateTarget struct {
	apiVersion, kind, namespace, name *text
	selector                          *template
	entries                           []*contextEntry
	preconditions                     *conditions
}

func readTarget(p *policy.Policy, t *policy.MutateTarget) *mutateTarget {
	read := func(t policy.Text) *text { return readText(t.Value, t.Pos) }
	return &mutateTarget{
		apiVersion: read(t.APIVersion), kind: read(t.Kind), namespace: read(t.Namespace), name: read(t.Name),
		selector: readDocument(t.SelectorNode), entries: readEntries(p, t.Context),
		preconditions: readConditions(t.Preconditions, denying),
	}
}

// A selection is what a target selects, with its variables filled in.
type selection struct {
	apiVersion, kind, subresource string
	namespace, name               string // patterns
	selector                      labels.Selector
}

// selection fills a target in. A target of a namespaced policy is in its namespace.
func (t *mutateTarget) selection(v *vars, p *policy.Policy) (s selection, err error) {
	err = v.fillAll(filling{&s.apiVersion, t.apiVersion}, filling{&s.kind, t.kind}, filling{&s.namespace, t.namespace}, filling{&s.name, t.name})
	if err != nil {
		return s, err
	}
	s.kind, s.subresource, _ = strings.Cut(s.kind, "/")
	if p.Namespaced() {
		s.namespace = p.Namespace
	}
	s.selector, err = v.fillSelector(t.selector)
	return s, err
}

// fillSelector is a label selector with its variables filled in; one that is not
// there selects everything.
func (v *vars) fillSelector(d *template) (labels.Selector, error) {
	filled, err := v.fill(d)
	if err != nil || filled.Data == nil {
		return labels.Everything(), err
	}
	text, err := json.Marshal(filled.Data)
	if err != nil {
		return nil, err
	}
	var selector metav1.LabelSelector
	if err := json.Unmarshal(text, &selector); err != nil {
		return nil, fmt.Errorf("the selector is none: %w", err)
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

// find finds the objects that are selected. One that is named exactly must be
// there; of the others, none is not an error. What is of any version is listed.
func (s selection) find(v *vars, objects ObjectReader) ([]map[string]any, error) {
	named := s.namespace != "" && s.name != "" && !wildcard.Has(s.namespace) && !wildcard.Has(s.name)
	absent := fmt.Errorf("there is no %s %s/%s", s.kind, s.namespace, s.name)
	if named && !wildcard.Has(s.apiVersion) {
		object, found, err := objects.Get(v.ctx, s.apiVersion, s.kind, s.namespace, s.name)
		if err == nil && !found {
			err = absent
		}
		return []map[string]any{object}, err
	}
	selector := s.selector
	if named { // it is this one, whatever its labels
		selector = labels.Everything()
	}
	in := s.namespace
	if wildcard.Has(in) {
		in = ""
	}
	list, err := objects.List(v.ctx, s.apiVersion, s.kind, in, selector)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, object := range list {
		if like(s.namespace, metaText(object, "namespace")) && like(s.name, metaText(object, "name")) {
			out = append(out, object)
		}
	}
	if named && len(out) == 0 {
		return nil, absent
	}
	return out, nil
}

// like holds a text to a pattern; an empty one takes everything.
func like(pattern, text string) bool { return pattern == "" || wildcard.Match(pattern, text) }
