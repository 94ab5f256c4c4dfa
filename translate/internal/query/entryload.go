package query

import (
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/translate/internal/read"
)

// loaded are the context entries that an expression names, each worked out once: an entry that
// names the one before twice, and so on, would be worked out without end. What is right of a
// pipe, or in a text, names an entry to Kyverno too.
func loaded(l *read.Lowering, e *jmespath.Expr) map[string]read.LoadedEntry {
	if l.Context.Size == 0 {
		return nil
	}
	l.Opts.Budget.Spend(l.Context.Size)
	out := map[string]read.LoadedEntry{}
	text := e.String()
	for _, name := range slices.Sorted(maps.Keys(l.Context.Named)) {
		_, scoped := l.Scope[name]
		if v := l.Context.Get(name); v != nil && !scoped && Mentions(text, name) {
			out[name] = load(l, name, v)
		}
	}
	return out
}

func load(l *read.Lowering, name string, v *read.ContextVar) read.LoadedEntry {
	if v.Outer.Get(name) != nil { // each of which Kyverno loads
		panic(l.Unsupported("a context with several entries of one name"))
	}
	value := contextValue(l, v)
	d := value.Anyway()
	loading := read.DemandToLoad(d.Hint, d.All()).And(read.Demands{Unsure: d.Unsure, Native: d.Native})
	return read.LoadedEntry{Value: value.Undemanding(), Loading: loading}
}

// entry is the value of a context entry, which has been loaded where the query names it.
func entry(l *read.Lowering, name string, v *read.ContextVar) read.Operand {
	if e, ok := l.Loaded[name]; ok {
		return e.Value
	}
	e := load(l, name, v)
	return e.Value.Demanding(e.Loading)
}

// whereLoaded is j, what a query gives, and an error where a context entry that it
// names is one. Kyverno loads those first, also for a side of || that is not needed.
func whereLoaded(l *read.Lowering, e *jmespath.Expr, j read.Operand) read.Operand {
	var loading []read.Demands
	for _, name := range slices.Sorted(maps.Keys(l.Loaded)) {
		entry := l.Loaded[name]
		loading = append(loading, entry.Loading)
		if namesFirst(e, name) && !j.Constant() {
			continue
		}
		if d, ok := read.DemandsOf(l, entry.Value); ok && !d.All().IsTrue() {
			if entry.Value.Form == read.ErrorForm && entry.Value.Hard {
				return read.TypeError(name)
			}
			j = read.Choice(d.All(), j, read.TypeError(name))
		}
	}
	return j.Demanding(loading...)
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

// Mentions tells whether a name stands somewhere in a text as a word, which no dot,
// letter or digit comes before.
func Mentions(text, name string) bool {
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
