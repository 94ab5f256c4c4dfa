package translate

import (
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
)

// A loadedEntry is a context entry that a query names: its value, and what that needs.
type loadedEntry struct {
	value operand
	needs needs
	facts []cel.Bool // what was known to hold
}

// entry is the value of a context entry. A query that names it again has it already: an
// entry that names the one before twice, and so on, would be worked out without end.
func (l *lowering) entry(name string, v *contextVar) operand {
	if v.outer.get(name) != nil { // each of which Kyverno loads
		panic(l.unsupported("a context with several entries of one name"))
	}
	e, ok := l.loaded[name]
	if !ok || !e.holds(l) {
		e = loadedEntry{facts: l.facts}
		e.needs = l.collected(func() { e.value = l.contextValue(v) })
		if l.loaded != nil {
			l.loaded[name] = e
		}
	}
	l.load(e.needs.hint, e.needs.all())
	l.needAll(needs{hint: e.needs.hint, unsure: e.needs.unsure, native: e.needs.native})
	return e.value
}

// holds tells that the value would be the same here: nothing that was known to hold
// where it was worked out is not known now.
func (e loadedEntry) holds(l *lowering) bool {
	return !slices.ContainsFunc(e.facts, func(f cel.Bool) bool { return !l.knows(f) })
}

// whereLoaded is j, what a query gives, and an error where a context entry that it
// names is one. Kyverno loads those first, also for a side of || that is not needed.
func (l *lowering) whereLoaded(e *jmespath.Expr, j operand) operand {
	for _, name := range slices.Sorted(maps.Keys(l.loaded)) {
		if namesFirst(e, name) && !j.constant() {
			continue
		}
		entry := l.loaded[name]
		if c, ok := l.readable(entry.value); ok && !c.IsTrue() {
			if entry.value.form == errorForm && entry.value.hard {
				return typeError(name)
			}
			j = choice(c, j, typeError(name))
		}
	}
	return j
}

// constant tells of a value that is read from nowhere: a key of what is no map.
func (j operand) constant() bool {
	return j.form != errorForm && !j.some(func(j operand) bool {
		return j.form != litForm && j.form != errorForm && !(j.form == placeForm && j.v.never)
	})
}

// namesFirst tells that whatever evaluates the expression begins with the name, and
// that its errors are those of the expression.
func namesFirst(e *jmespath.Expr, name string) bool {
	switch e.Op {
	case jmespath.Flatten, jmespath.Filter, jmespath.ValueProjection:
		return false
	case jmespath.Sub, jmespath.Pipe, jmespath.Index, jmespath.Projection, jmespath.Or:
		return namesFirst(e.Args[0], name)
	}
	return e.Op == jmespath.Field && e.Name == name
}

// loadMentioned loads the context entries that an expression mentions and has not
// evaluated: what is right of a pipe, or in a text, names an entry to Kyverno too.
func (l *lowering) loadMentioned(e *jmespath.Expr) {
	if l.context.size == 0 {
		return
	}
	l.opts.Budget.Spend(l.context.size)
	text := e.String()
	for _, name := range slices.Sorted(maps.Keys(l.context.named)) {
		if _, ok := l.loaded[name]; !ok && l.context.get(name) != nil && mentions(text, name) {
			l.collected(func() { l.topLevel(name) })
		}
	}
}

// mentions tells whether a name stands somewhere in a text as a word, which no dot,
// letter or digit comes before.
func mentions(text, name string) bool {
	for at := 0; ; at++ {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(name)
		begins := at == 0 || text[at-1] != '.' && (text[at-1] == '_' || !isWordByte(text[at-1]))
		if begins && isWordByte(name[len(name)-1]) != (end < len(text) && isWordByte(text[end])) {
			return true
		}
	}
}

func isWordByte(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_'
}
