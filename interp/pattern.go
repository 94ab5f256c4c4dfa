package interp

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/interp/internal/wildcard"
)

// A mismatch is why an object does not satisfy a pattern.
type mismatch struct {
	kind mismatchKind
	// direct is set for a skip that comes from an anchor itself, and not from the
	// map or list around it. A direct skip hides failures of anchors beside it.
	direct bool
	path   string
	text   string
}

type mismatchKind int

const (
	violated mismatchKind = iota // the value is not as the pattern wants it
	negated                      // a key is there that must not be
	skipped                      // a condition of the pattern does not hold
	aborted                      // a bound was hit; the rule errs
)

// A patternMatch is one walk of a pattern over an object.
type patternMatch struct {
	ctx context.Context
	reading
	seen   anchorLog
	budget int // of levels
}

// A patternOutcome is what matching a pattern came to.
type patternOutcome struct {
	status  Status
	kyverno Status // differs from status only by deviation 2
	path    string
	text    string
}

// matchPattern holds an object to a pattern.
func matchPattern(ctx context.Context, r reading, object, pattern any, depth int) patternOutcome {
	m := patternMatch{ctx: ctx, reading: r, seen: anchorLog{}, budget: depth}
	bad := m.value(object, pattern, "/", elsewhere)
	if bad == nil {
		return patternOutcome{status: Pass, kyverno: Pass}
	}
	o := patternOutcome{status: Fail, kyverno: Fail, path: bad.path, text: bad.text}
	switch {
	case bad.kind == skipped:
		o.status, o.kyverno = Skip, Skip
	case bad.kind == aborted || bad.kind == violated && bad.path == "":
		o.status, o.kyverno = Error, Error
	case bad.kind == violated && m.seen.incomplete():
		o.kyverno = Error
	}
	return o
}

func violation(path, format string, args ...any) *mismatch {
	return &mismatch{kind: violated, path: path, text: fmt.Sprintf(format, args...)}
}

// A mapPosition is where a map stands, as far as wildcards in keys depend on it: only
// in labels and annotations directly below a metadata are they wildcards.
type mapPosition int

const (
	elsewhere mapPosition = iota
	inMetadata
	inTags
)

// below is the place of a key's value.
func (p mapPosition) below(key string) mapPosition {
	switch {
	case p == inMetadata && (key == "labels" || key == "annotations"):
		return inTags
	case key == "metadata":
		return inMetadata
	}
	return elsewhere
}

// value matches any value.
func (m *patternMatch) value(value, pattern any, path string, at mapPosition) *mismatch {
	if m.budget--; m.budget < 0 {
		return &mismatch{kind: aborted, path: path, text: "the pattern is nested too deeply"}
	}
	defer func() { m.budget++ }()
	switch p := pattern.(type) {
	case given:
		return m.scalar(value, pattern, path)
	case map[string]any:
		v, ok := value.(map[string]any)
		if !ok {
			return violation(path, "pattern and resource have different structures: expected a map, found %s", datum.TypeName(value))
		}
		return m.object(v, p, path, at)
	case []any:
		v, ok := value.([]any)
		if !ok {
			return violation(path, "pattern and resource have different structures: expected a list, found %s", datum.TypeName(value))
		}
		return m.list(v, p, path)
	case nil, bool, int64, float64, string:
		return m.scalar(value, pattern, path)
	}
	return violation(path, "the pattern has a value of unknown type %T", pattern)
}

// scalar matches a value with a scalar; of a list, every element.
func (m *patternMatch) scalar(value, pattern any, path string) *mismatch {
	field := m.fieldAt(path)
	if list, ok := value.([]any); ok {
		field = expr.Below(field, expr.SomeElement)
		for _, v := range list {
			if !m.matchScalar(v, m.formats.of(field), pattern) {
				return mismatchedScalar(v, pattern, path)
			}
		}
		return nil
	}
	if !m.matchScalar(value, m.formats.of(field), pattern) {
		return mismatchedScalar(value, pattern, path)
	}
	return nil
}

// fieldAt is the field at a path.
func (m *patternMatch) fieldAt(path string) []string {
	if m.at == nil || m.formats == nil {
		return nil
	}
	return append(m.at[:len(m.at):len(m.at)], strings.FieldsFunc(path, func(r rune) bool { return r == '/' })...)
}

func mismatchedScalar(value, pattern any, path string) *mismatch {
	if g, ok := pattern.(given); ok {
		pattern = g.value
	}
	return violation(path, "resource value '%v' does not match '%v' at path %s", value, pattern, path)
}

// list matches a list. The first element of the pattern alone says how.
func (m *patternMatch) list(value, pattern []any, path string) *mismatch {
	if len(pattern) == 0 {
		return violation(path, "pattern Array empty")
	}
	switch first := pattern[0].(type) {
	case map[string]any:
		return m.each(value, func(int) any { return first }, len(value), path)
	case []any:
		if len(value) < len(pattern) {
			return violation("", "validate Array failed, array length mismatch, resource Array len is %d and pattern Array len is %d", len(value), len(pattern))
		}
		return m.each(value, func(i int) any { return pattern[i] }, len(pattern), path)
	default:
		return m.scalar(value, first, path)
	}
}

// each matches the first n elements of a list. An element that a condition
// skips does not count; when nothing else is left the whole list is skipped.
func (m *patternMatch) each(value []any, pattern func(i int) any, n int, path string) *mismatch {
	applied := false
	var skips skips
	for i, v := range value[:n] {
		if err := m.ctx.Err(); err != nil {
			return &mismatch{kind: aborted, path: path, text: err.Error()}
		}
		bad := m.value(v, pattern(i), path+strconv.Itoa(i)+"/", elsewhere)
		switch {
		case bad == nil:
			applied = true
		case bad.kind == skipped:
			skips = append(skips, bad)
		default:
			return bad
		}
	}
	if applied {
		return nil
	}
	return skips.joined()
}

// skips are what keeps parts of a pattern from applying.
type skips []*mismatch

// maxSkips bounds how many of them are told: a list may be long.
const maxSkips = 20

// joined tells of all of them as of one; nil where there are none.
func (s skips) joined() *mismatch {
	if len(s) == 0 {
		return nil
	}
	texts := make([]string, 0, maxSkips)
	for _, one := range s[:min(len(s), maxSkips)] {
		texts = append(texts, one.text)
	}
	return &mismatch{kind: skipped, path: s[len(s)-1].path, text: strings.Join(texts, "; ")}
}

// object matches a map: its conditions first, then the rest.
func (m *patternMatch) object(value, pattern map[string]any, path string, at mapPosition) *mismatch {
	if at == inTags {
		pattern = tagsPattern(pattern)
	}
	m.seen.record(pattern, value, at == inTags)
	conditions, rest := anchorsOf(pattern)
	if bad := m.conditions(conditions, value, pattern, path, at); bad != nil {
		return bad
	}
	for _, a := range rest {
		if bad := m.entry(a, value, pattern, path, at); bad != nil {
			return bad
		}
	}
	return nil
}

// tagsPattern is the part of a pattern for labels or annotations that counts:
// only strings do. Beside a key with wildcards, all do (deviation 3).
func tagsPattern(pattern map[string]any) map[string]any {
	texts := make(map[string]any, len(pattern))
	for k, p := range pattern {
		if wildcard.Has(parseAnchor(k).name) {
			return pattern
		}
		if g, ok := p.(given); ok {
			p = g.value
		}
		if _, ok := p.(string); ok {
			texts[k] = pattern[k]
		}
	}
	return texts
}

// conditions matches the anchored keys of a map. A failure beside a condition
// that does not hold is none; a condition that does not hold further down
// matters only if no other anchor applied.
func (m *patternMatch) conditions(anchors []anchor, value, pattern map[string]any, path string, at mapPosition) *mismatch {
	applied, direct := false, false
	var skips skips
	for _, a := range anchors {
		bad := m.entry(a, value, pattern, path, at)
		switch {
		case bad == nil:
			applied = true
		case bad.kind == skipped:
			skips = append(skips, bad)
			direct = direct || bad.direct
		case bad.kind == aborted || !direct:
			return bad
		}
	}
	if applied && !direct {
		return nil
	}
	return skips.joined()
}

// entry matches one key of a pattern.
func (m *patternMatch) entry(a anchor, value, pattern map[string]any, path string, at mapPosition) *mismatch {
	bad := m.matchEntry(a, value, pattern, path, at)
	observe(m.ctx, Observation{Path: path + a.raw + "/", Holds: bad == nil})
	return bad
}

func (m *patternMatch) matchEntry(a anchor, value, pattern map[string]any, path string, at mapPosition) *mismatch {
	p := pattern[a.raw]
	if at == inTags && wildcard.Has(a.name) {
		return m.wildEntry(a, value, p, path)
	}
	v, present := value[a.name]
	return m.keyed(a, v, present, p, path, at.below(a.name))
}

// wildEntry matches a key with wildcards (deviation 3). Where keys match it, an equality
// anchor wants all of their values to do, and a negation none to be there; else one that
// does is enough. Kyverno looks at one of them, whichever comes first.
func (m *patternMatch) wildEntry(a anchor, value map[string]any, p any, path string) *mismatch {
	keys := keysLike(value, a.name)
	if len(keys) == 0 {
		return m.keyed(a, nil, false, p, path, elsewhere)
	}
	var first *mismatch
	for _, k := range keys {
		one := anchor{kind: a.kind, raw: a.raw, name: k}
		bad := m.keyed(one, value[k], true, p, path, elsewhere)
		enough := a.kind == equalityKey != (bad == nil)
		if enough || bad != nil && bad.kind == aborted {
			return bad
		}
		if first == nil {
			first = bad
		}
	}
	return first
}

// keyed matches the value of one key as its anchor says.
func (m *patternMatch) keyed(a anchor, v any, present bool, p any, path string, below mapPosition) *mismatch {
	path, parent := path+a.name+"/", path
	switch a.kind {
	case conditionalKey:
		if !present {
			return conditionMismatch(path, "conditional", "field %s is missing", a.name)
		}
		return asSkip(m.value(v, p, path, below), "conditional")
	case equalityKey:
		if !present {
			return nil
		}
		return m.value(v, p, path, below)
	case negationKey:
		if !present {
			return nil
		}
		return &mismatch{kind: negated, path: path, text: fmt.Sprintf("negation anchor matched in resource: %s is not allowed", path)}
	case existenceKey:
		if !present {
			return nil
		}
		return m.existence(v, p, path)
	case globalKey:
		if !present {
			return nil
		}
		return asSkip(m.value(v, p, path, below), "global")
	default:
		if p != "*" {
			return m.value(v, p, path, below)
		}
		if v == nil {
			return violation(parent, "field %s not found", a.name)
		}
		return nil
	}
}

func conditionMismatch(path, anchor, format string, args ...any) *mismatch {
	return &mismatch{kind: skipped, direct: true, path: path, text: anchor + " anchor mismatch: " + fmt.Sprintf(format, args...)}
}

// asSkip makes any mismatch of a condition the reason for a skip.
func asSkip(bad *mismatch, anchor string) *mismatch {
	if bad == nil || bad.kind == aborted {
		return bad
	}
	return conditionMismatch(bad.path, anchor, "%s", bad.text)
}

// existence wants, for each map of the pattern, an element that satisfies it.
func (m *patternMatch) existence(value, pattern any, path string) *mismatch {
	values, ok := value.([]any)
	if !ok {
		return violation(path, "invalid resource type %s: an existence anchor needs a list", datum.TypeName(value))
	}
	patterns, ok := pattern.([]any)
	if !ok {
		return violation(path, "invalid pattern type %s: an existence anchor needs a list of maps", datum.TypeName(pattern))
	}
	for _, p := range patterns {
		if _, ok := p.(map[string]any); !ok {
			return violation(path, "invalid pattern type %s: an existence anchor needs maps", datum.TypeName(p))
		}
		found, bad := m.some(values, p, path)
		if bad != nil {
			return bad
		}
		if !found {
			return violation(path, "existence anchor validation failed at path %s", path)
		}
	}
	return nil
}

func (m *patternMatch) some(values []any, p any, path string) (found bool, bad *mismatch) {
	for i, v := range values {
		if err := m.ctx.Err(); err != nil {
			return false, &mismatch{kind: aborted, path: path, text: err.Error()}
		}
		bad := m.value(v, p, path+strconv.Itoa(i)+"/", elsewhere)
		if bad == nil {
			return true, nil
		}
		if bad.kind == aborted {
			return false, bad
		}
	}
	return false, nil
}
