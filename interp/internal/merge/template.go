package merge

import "slices"

// A list of a patch is what it says of the elements of the object's list.
type list struct {
	written   []any // elements as written
	instances []instance
}

// An instance is what a template says of one element.
type instance struct {
	index   int // of the element in the object's list
	element map[string]any
}

// list resolves a list. Elements with anchors are templates, or tests; they are
// looked at only where the first element is a map.
func (r *resolver) list(patch []any, there any) (*list, error) {
	out := &list{}
	if len(patch) == 0 {
		return out, nil
	}
	_, maps := patch[0].(map[string]any)
	elements, isList := there.([]any)
	if maps && there != nil && !isList {
		return nil, wrongKind(there, patch)
	}
	if isList && elements == nil {
		elements = []any{}
	}
	for _, e := range patch {
		template, ok := e.(map[string]any)
		switch {
		case ok && anchored(template) && !maps, isAnchoredText(e):
			continue // as Kyverno drops it
		case ok && anchored(template):
			if err := r.template(template, elements, out); err != nil {
				return nil, err
			}
			continue
		}
		resolved, keep, err := r.value(e, nil)
		if err != nil {
			return nil, err
		}
		if keep {
			out.written = append(out.written, resolved)
		}
	}
	return out, nil
}

// template resolves an element with anchors against the elements of the object,
// which are nil where it has no such list.
// Each gets a patch of its own; Kyverno goes on with what it made of the template
// for the element before. A name that is written selects the element of that name;
// Kyverno patches all of them.
func (r *resolver) template(e map[string]any, elements []any, out *list) error {
	test := hasGlobal(e)
	name, _ := e["name"].(string)
	isNew := name != "" && !test && !hasNamed(elements, name)
	if elements == nil || isNew {
		return r.absent(e, isNew, out)
	}
	var missed error
	passed := false
	for i, element := range elements {
		if name != "" && nameOf(element) != name {
			continue
		}
		resolved, err := r.mapping(e, element)
		if m, ok := isMismatch(err); ok {
			if m.global {
				missed = err
			}
			continue
		}
		if err != nil {
			return err
		}
		passed = true
		if !test {
			out.add(i, element, resolved)
		}
	}
	if missed != nil && !passed {
		return missed
	}
	return nil
}

// absent resolves a template where there is no element for it. One with a name is
// a new element, if it has no conditions.
func (r *resolver) absent(e map[string]any, isNew bool, out *list) error {
	resolved, err := r.mapping(e, nil)
	if m, ok := isMismatch(err); ok && !m.global {
		return nil
	}
	if err == nil && isNew {
		out.written = append(out.written, resolved)
	}
	return err
}

func hasNamed(elements []any, name string) bool {
	return slices.ContainsFunc(elements, func(e any) bool { return nameOf(e) == name })
}

func nameOf(element any) string {
	m, _ := element.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// add keeps what a template says of an element. Elements go by their name; those
// without one are left alone.
func (l *list) add(index int, element any, patch map[string]any) {
	name := nameOf(element)
	if name == "" || len(patch) == 0 {
		return
	}
	patch["name"] = name
	l.instances = append(l.instances, instance{index, patch})
}

// anchored tells whether a value has an anchored key at any depth.
func anchored(v any) bool {
	return hasKey(v, func(k anchorKind) bool { return k != plainKey && k != otherKey })
}

// hasGlobal tells whether a value has a global condition at any depth.
func hasGlobal(v any) bool { return hasKey(v, func(k anchorKind) bool { return k == globalKey }) }

func hasKey(v any, is func(anchorKind) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if a, err := parseAnchor(key); err != nil || is(a.kind) || hasKey(item, is) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if hasKey(item, is) {
				return true
			}
		}
	}
	return false
}

// isAnchoredText tells of a text in a list that looks like a condition.
func isAnchoredText(v any) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	a, err := parseAnchor(s)
	return err == nil && (a.kind == conditionKey || a.kind == globalKey)
}
