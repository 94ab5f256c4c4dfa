package merge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// list merges a list, as the table says lists of its place are.
func (m *merger) list(old any, p *list, s *mergeSchema) (any, error) {
	elements, isList := old.([]any)
	if old != nil && !isList {
		return nil, wrongKind(old, p)
	}
	written, directive, err := withoutDirective(p.written)
	switch {
	case err != nil:
		return nil, err
	case directive == "delete":
		return removal{}, nil
	case directive == "replace":
		return m.fresh(written, s)
	case s != nil && s.set:
		return union(elements, written), nil
	case s != nil && len(s.keys) > 0:
		return m.keyed(elements, written, p.instances, s)
	case len(p.instances) == 0:
		return m.fresh(written, nil)
	case len(written) > 0:
		return nil, fmt.Errorf("elements with and without anchors are mixed in a list that is replaced as a whole; use one kind of them")
	}
	return m.inPlace(elements, p.instances, s)
}

// withoutDirective takes the element that is nothing but a directive for the whole
// list out of a list.
func withoutDirective(written []any) (rest []any, directive string, err error) {
	for _, e := range written {
		p, ok := e.(map[string]any)
		if !ok || len(p) != 1 {
			rest = append(rest, e)
			continue
		}
		d, has, bad := directiveOf(p)
		switch {
		case bad != nil:
			return nil, "", bad
		case has:
			directive = d
		default:
			rest = append(rest, e)
		}
	}
	return rest, directive, nil
}

// fresh is a list that takes the place of what was there.
func (m *merger) fresh(written []any, s *mergeSchema) (any, error) {
	out := make([]any, 0, len(written))
	for _, e := range written {
		value, err := m.raw(e, s.elements())
		if err != nil {
			return nil, err
		}
		if _, gone := value.(removal); !gone {
			out = append(out, value)
		}
	}
	return out, nil
}

// raw is an element of a list that is replaced. A null in a list stays.
func (m *merger) raw(e any, s *mergeSchema) (any, error) {
	if e == nil {
		return nil, nil
	}
	return m.value(nil, e, s)
}

// union puts the elements of a patch in front of those that it does not have.
func union(elements, written []any) []any {
	out := make([]any, 0, len(elements)+len(written))
	seen := map[string]bool{}
	for _, e := range append(slices.Clone(written), elements...) {
		if text := textOf(e); isTree(e) || !seen[text] {
			seen[text] = true
			out = append(out, e)
		}
	}
	return out
}

// inPlace merges what templates say into the elements, where these stand. Kyverno
// puts what the templates say in the place of the elements.
func (m *merger) inPlace(elements []any, instances []instance, s *mergeSchema) (any, error) {
	out := slices.Clone(elements)
	gone := map[int]bool{}
	for _, i := range instances {
		if i.index >= len(out) || gone[i.index] {
			continue
		}
		value, err := m.value(out[i.index], i.element, s.elements())
		if err != nil {
			return nil, err
		}
		if _, removed := value.(removal); removed {
			gone[i.index] = true
			continue
		}
		out[i.index] = value
	}
	kept := out[:0]
	for i, e := range out {
		if !gone[i] {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// keyed merges a list whose elements are told apart by keys.
func (m *merger) keyed(elements, written []any, instances []instance, s *mergeSchema) (any, error) {
	k := &keyedMerge{merger: m, shape: s, rest: slices.Clone(elements), taken: map[string]int{}}
	k.find(elements)
	for _, e := range written {
		p, ok := e.(map[string]any)
		if !ok || len(keyFields(p, s.keys)) == 0 {
			// Kyverno drops such an element, and all of the object's with it.
			return nil, fmt.Errorf("an element of a list has no %s, which tells its elements apart", s.keys[0])
		}
		if err := k.put(p, false); err != nil {
			return nil, err
		}
	}
	var keyless []instance
	for _, i := range instances {
		if len(keyFields(i.element, s.keys)) == 0 {
			keyless = append(keyless, i)
			continue
		}
		if err := k.put(i.element, true); err != nil {
			return nil, err
		}
	}
	if len(keyless) > 0 {
		if len(k.taken) > 0 {
			return nil, fmt.Errorf("elements that are found by name are mixed with others in a list that goes by %s", s.keys[0])
		}
		return m.inPlace(k.list(), keyless, s)
	}
	return k.list(), nil
}

// A keyedMerge is the merge of one keyed list. What is new stands in front; where
// the list has a single key, so does what was merged.
type keyedMerge struct {
	*merger
	shape  *mergeSchema
	front  []any
	rest   []any            // removal{} where an element has gone to the front, or away
	places map[string][]int // of the elements in rest, by key
	taken  map[string]int   // the place in front by key; -1 for what was removed
}

func (k *keyedMerge) find(elements []any) {
	k.places = make(map[string][]int, len(elements))
	for i, e := range elements {
		if m, ok := e.(map[string]any); ok && len(keyFields(m, k.shape.keys)) > 0 {
			id := identity(m, k.shape.keys)
			k.places[id] = append(k.places[id], i)
		}
	}
}

// put merges one element of the patch. Of several with one key the first counts;
// what templates say adds up.
func (k *keyedMerge) put(p map[string]any, again bool) error {
	id := identity(p, k.shape.keys)
	if at, ok := k.taken[id]; ok {
		if !again || at < 0 {
			return nil
		}
		return k.replace(&k.front[at], p)
	}
	places := k.places[id]
	single := len(k.shape.keys) == 1
	var e any
	switch {
	case len(places) > 1:
		// The last of the object's elements is what remains of them.
		k.toFront(id, k.rest[places[len(places)-1]])
		k.remove(places)
		return nil
	case len(places) == 1 && !single:
		return k.replace(&k.rest[places[0]], p)
	case len(places) == 1:
		e = k.rest[places[0]]
		k.remove(places)
	case !single:
		if skip, err := k.ambiguous(p); skip || err != nil {
			return err
		}
	}
	if err := k.replace(&e, p); err != nil {
		return err
	}
	k.toFront(id, e)
	return nil
}

// remove takes elements out of the rest.
func (k *keyedMerge) remove(places []int) {
	for _, i := range places {
		k.rest[i] = removal{}
	}
}

// replace merges a patch into an element.
func (k *keyedMerge) replace(e *any, p map[string]any) error {
	value, err := k.value(*e, p, k.shape.elements())
	*e = value
	return err
}

// toFront adds an element to the front, unless it was removed.
func (k *keyedMerge) toFront(id string, e any) {
	if _, gone := e.(removal); gone {
		k.taken[id] = -1
		return
	}
	k.taken[id] = len(k.front)
	k.front = append(k.front, e)
}

// ambiguous tells whether an element of the object has some of the keys as the
// patch has them, and not all: neither merges then, nor is added.
func (k *keyedMerge) ambiguous(p map[string]any) (bool, error) {
	if err := k.budget.spend(len(k.rest)); err != nil {
		return false, err
	}
	fields := keyFields(p, k.shape.keys)
	return slices.ContainsFunc(k.rest, func(e any) bool {
		m, ok := e.(map[string]any)
		return ok && overlap(fields, keyFields(m, k.shape.keys))
	}), nil
}

// overlap tells whether one has some of the keys of the other, with their values,
// and not as many.
func overlap(a, b map[string]string) bool {
	shared := false
	for key, text := range a {
		have, has := b[key]
		if has && have != text {
			return false
		}
		shared = shared || has
	}
	return shared && len(a) != len(b)
}

// list is what came of the merge.
func (k *keyedMerge) list() []any {
	out := make([]any, 0, len(k.front)+len(k.rest))
	for _, e := range append(k.front, k.rest...) {
		if _, gone := e.(removal); !gone {
			out = append(out, e)
		}
	}
	return out
}

// keyFields are the keys that an element has, as texts.
func keyFields(e map[string]any, keys []string) map[string]string {
	out := make(map[string]string, len(keys))
	for _, key := range keys {
		if v := e[key]; v != nil && !isTree(v) {
			out[key] = textOf(v)
		}
	}
	return out
}

// identity is a text that elements with the same keys have in common.
func identity(e map[string]any, keys []string) string {
	fields := keyFields(e, keys)
	var id string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		id += strconv.Quote(key) + strconv.Quote(fields[key])
	}
	return id
}
