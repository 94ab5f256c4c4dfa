package merge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A resolver settles the anchors of a patch against an object. What is left is
// laid over the object as it is: conditions are gone, and so are maps that are
// empty, which a strategic merge of Kyverno's never writes.
type resolver struct {
	match  Matcher
	budget *budget
}

// A mismatch is a condition that does not hold.
type mismatch struct {
	global bool
	key    string
}

func (m mismatch) Error() string { return fmt.Sprintf("the condition %s does not hold", m.key) }

// mapping resolves a map against what the object has there, which may be anything.
func (r *resolver) mapping(patch map[string]any, value any) (map[string]any, error) {
	there, _ := value.(map[string]any)
	plain, conditions, err := r.sort(patch, there)
	if err != nil {
		return nil, err
	}
	for _, c := range conditions {
		content, err := r.condition(c, patch[c.raw], there)
		if err != nil {
			return nil, err
		}
		if _, has := plain[c.name]; content != nil && !has {
			plain[c.name] = content
		}
	}
	out := make(map[string]any, len(plain))
	for _, key := range sortedKeys(plain) {
		resolved, keep, err := r.value(plain[key], there[key])
		if err != nil {
			return nil, err
		}
		if keep {
			out[key] = resolved
		}
	}
	return out, nil
}

// sort splits a map into what is written and what is asked, globals first. Keys to
// add are written if the object does not have them; null counts as had.
func (r *resolver) sort(patch, there map[string]any) (plain map[string]any, conditions []anchor, err error) {
	if err := r.budget.spend(1 + len(patch)); err != nil {
		return nil, nil, err
	}
	plain = make(map[string]any, len(patch))
	var global, local []anchor
	for _, key := range sortedKeys(patch) {
		a, err := parseAnchor(key)
		if err != nil {
			return nil, nil, err
		}
		_, has := there[a.name]
		switch a.kind {
		case plainKey:
			plain[key] = patch[key]
		case addKey:
			if !has {
				plain[a.name] = patch[key]
			}
		case equalKey:
			// Kyverno writes such a key into the object as it stands.
			if has && isTree(patch[key]) {
				plain[a.name] = patch[key]
			} else if has {
				local = append(local, a)
			}
		case otherKey:
			// Null under a key that is not there changes nothing. Kyverno writes all
			// else into the object, with the anchor.
			if patch[key] != nil {
				return nil, nil, fmt.Errorf("the anchor of %s means nothing in a patch", key)
			}
		case globalKey:
			global = append(global, a)
		case conditionKey:
			local = append(local, a)
		}
	}
	return plain, append(global, local...), nil
}

// condition holds a value to a condition. Content is what the condition writes: a
// value that has keys to add is no test but of its key being there. Else nothing is
// written; Kyverno writes all of a condition that has no anchors of its own.
func (r *resolver) condition(c anchor, pattern any, there map[string]any) (content any, err error) {
	value, has := there[c.name]
	miss := mismatch{global: c.kind == globalKey, key: c.raw}
	if !has {
		return nil, miss
	}
	if p, ok := pattern.(map[string]any); ok {
		if rest, adds, err := withoutConditions(p); adds || err != nil {
			return rest, err
		}
	}
	ok, err := r.holds(value, pattern)
	if err != nil {
		return nil, fmt.Errorf("the condition %s: %w", c.raw, err)
	}
	if !ok {
		return nil, miss
	}
	return nil, nil
}

// holds compares scalars as texts: 5 is "5". A map or list has no text.
func (r *resolver) holds(value, pattern any) (bool, error) {
	if isTree(pattern) {
		return r.match(value, pattern)
	}
	if isTree(value) {
		return false, nil
	}
	return r.match(textOf(value), textOf(pattern))
}

// withoutConditions is a map without its conditions, and whether it has keys to
// add.
func withoutConditions(m map[string]any) (rest map[string]any, adds bool, err error) {
	rest = maps.Clone(m)
	for _, key := range sortedKeys(m) {
		a, err := parseAnchor(key)
		if err != nil {
			return nil, false, err
		}
		switch a.kind {
		case conditionKey, globalKey:
			delete(rest, key)
		case addKey:
			adds = true
		case plainKey, equalKey, otherKey:
		}
	}
	return rest, adds, nil
}

// value resolves any value; keep is false for what is not written.
func (r *resolver) value(patch, there any) (resolved any, keep bool, err error) {
	if err := r.budget.spend(1); err != nil {
		return nil, false, err
	}
	switch p := patch.(type) {
	case map[string]any:
		m, err := r.mapping(p, there)
		return m, len(m) > 0, err
	case []any:
		l, err := r.list(p, there)
		if err != nil {
			return nil, false, err
		}
		return l, len(p) == 0 || len(l.written)+len(l.instances) > 0, nil
	}
	return number(patch), true, nil
}

// number is a number as it comes through Kyverno: whole numbers of a patch are
// rounded to what a float64 holds.
func number(v any) any {
	if i, ok := v.(int64); ok && (i > 1<<53 || i < -1<<53) {
		if f := float64(i); f < 1<<63 {
			return int64(f)
		}
	}
	return v
}

func isTree(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// An anchorKind is what the form of a key makes of it.
type anchorKind int

const (
	plainKey     anchorKind = iota // k
	conditionKey                   // (k)
	globalKey                      // <(k)
	addKey                         // +(k)
	equalKey                       // =(k)
	otherKey                       // X(k) and ^(k), which patches do not have
)

// An anchor is a key of a patch, taken apart.
type anchor struct {
	kind anchorKind
	raw  string
	name string // the key of the object
}

// parseAnchor reads a key. Kyverno panics on blanks around an anchor.
func parseAnchor(raw string) (anchor, error) {
	key := strings.TrimSpace(raw)
	open := strings.IndexByte(key, '(')
	if open < 0 || open > 1 || !strings.HasSuffix(key, ")") || open+1 >= len(key)-1 {
		return anchor{raw: raw, name: raw}, nil
	}
	kind := conditionKey
	switch key[:open] {
	case "":
	case "<":
		kind = globalKey
	case "+":
		kind = addKey
	case "=":
		kind = equalKey
	case "X", "^":
		kind = otherKey
	default:
		return anchor{raw: raw, name: raw}, nil
	}
	if key != raw {
		return anchor{}, fmt.Errorf("the key %q has blanks around its anchor; remove them", raw)
	}
	return anchor{kind: kind, raw: raw, name: key[open+1 : len(key)-1]}, nil
}

// isMismatch tells whether an error is a condition that does not hold.
func isMismatch(err error) (m mismatch, ok bool) {
	ok = errors.As(err, &m)
	return m, ok
}
