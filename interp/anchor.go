package interp

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/wildcard"
)

// An anchorKind is what the form of a pattern's key makes of it.
type anchorKind int

const (
	plainKey       anchorKind = iota // k
	conditionalKey                   // (k)
	equalityKey                      // =(k)
	negationKey                      // X(k)
	existenceKey                     // ^(k)
	globalKey                        // <(k)
)

// An anchor is a pattern's key, taken apart.
type anchor struct {
	kind anchorKind
	raw  string // as written
	name string // the key of the object that it is about
}

// parseAnchor reads a key. Spaces around an anchor do not count; +(k) belongs to
// mutations and is plain text here.
func parseAnchor(raw string) anchor {
	key := strings.TrimSpace(raw)
	if !strings.HasSuffix(key, ")") {
		return anchor{raw: raw, name: raw}
	}
	kind := plainKey
	switch {
	case strings.HasPrefix(key, "("):
		kind = conditionalKey
	case strings.HasPrefix(key, "=("):
		kind = equalityKey
	case strings.HasPrefix(key, "X("):
		kind = negationKey
	case strings.HasPrefix(key, "^("):
		kind = existenceKey
	case strings.HasPrefix(key, "<("):
		kind = globalKey
	}
	open := strings.IndexByte(key, '(')
	if kind == plainKey || open+1 >= len(key)-1 {
		return anchor{raw: raw, name: raw}
	}
	return anchor{kind: kind, raw: raw, name: key[open+1 : len(key)-1]}
}

// anchorsOf splits the keys of a pattern map into those whose anchors decide
// whether the map applies and what may be there, in the order of their text, and
// the rest in the order in which they are looked at: keys with anchors below
// them from the last to the first, in front of those without.
func anchorsOf(pattern map[string]any) (conditions, rest []anchor) {
	keys := make([]string, 0, len(pattern))
	for k := range pattern {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var front []anchor
	for _, k := range keys {
		a := parseAnchor(k)
		switch {
		case a.kind != plainKey && a.kind != globalKey:
			conditions = append(conditions, a)
		case a.kind == globalKey || hasAnchors(pattern[k]):
			front = append(front, a)
		default:
			rest = append(rest, a)
		}
	}
	slices.Reverse(front)
	return conditions, append(front, rest...)
}

// hasAnchors tells whether a pattern has an anchored key at any depth.
func hasAnchors(pattern any) bool {
	switch p := pattern.(type) {
	case map[string]any:
		for k, v := range p {
			if parseAnchor(k).kind != plainKey || hasAnchors(v) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(p, hasAnchors)
	}
	return false
}

// An anchorLog holds, for each conditional and existence anchor met on the way
// through one object, whether its key was present in any map it was held to.
type anchorLog map[string]bool

// record notes the keys of one pattern map against one map of the object.
func (l anchorLog) record(pattern, value map[string]any, wild bool) {
	for k := range pattern {
		a := parseAnchor(k)
		if a.kind != conditionalKey && a.kind != existenceKey {
			continue
		}
		if !l[k] {
			l[k] = hasKey(value, a.name, wild)
		}
	}
}

// incomplete tells whether some anchor's key occurred nowhere.
func (l anchorLog) incomplete() bool {
	for _, seen := range l {
		if !seen {
			return true
		}
	}
	return false
}

// hasKey tells whether a map has a key, or one that matches it where keys may
// hold wildcards.
func hasKey(value map[string]any, name string, wild bool) bool {
	if wild && wildcard.Has(name) {
		return len(keysLike(value, name)) > 0
	}
	_, ok := value[name]
	return ok
}

// keysLike lists the keys of a map that match a pattern, sorted.
func keysLike(value map[string]any, pattern string) []string {
	var keys []string
	for k := range value {
		if wildcard.Match(pattern, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
