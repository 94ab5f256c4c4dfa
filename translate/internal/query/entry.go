package query

import (
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/read"
)

// whereFilledBy is j, and an error of a context entry where a variable in a value is one.
func whereFilledBy(l *read.Lowering, n *policy.Node, name string, j read.Operand) read.Operand {
	noVariableKeys(l, n)
	d := Filling(l, n)
	if d.Unsure {
		panic(l.Unsupported("a variable that may be an error, where something else decides without it,"))
	}
	return read.Choice(d.All().Simplify(), j, read.TypeError(name))
}

// valueNode is a value, which is an error where a variable in it is one, whatever of it is
// read.
func valueNode(l *read.Lowering, n *policy.Node) read.Operand {
	value := Node(l, n)
	if value.Form != read.HashForm && value.Form != read.MultiForm {
		return value
	}
	return whereFilledBy(l, n, "value", value.Undemanding())
}

// noVariableKeys refuses a value with a variable in a key.
func noVariableKeys(l *read.Lowering, n *policy.Node) {
	if n == nil {
		return
	}
	for _, item := range n.Items {
		noVariableKeys(l, item)
	}
	for _, f := range n.Fields {
		if HasVariables(&policy.Node{Kind: policy.String, Str: f.Key, Pos: f.Pos}) {
			l.SetPos(f.Pos)
			panic(l.Unsupported("a variable in a key of a value"))
		}
		noVariableKeys(l, f.Value)
	}
}

// Filling is what the variables in the keys and texts of a value demand.
func Filling(l *read.Lowering, n *policy.Node) (d read.Demands) {
	switch {
	case n == nil:
		return d
	case n.Kind == policy.String:
		for _, part := range ParseTemplate(n.Str, n.Pos).Parts {
			if part.Var != nil {
				of, _ := read.DemandsOf(l, Variable(l, part.Var))
				d = d.And(of)
			}
		}
	}
	for _, item := range n.Items {
		d = d.And(Filling(l, item))
	}
	for _, f := range n.Fields {
		d = d.And(Filling(l, &policy.Node{Kind: policy.String, Str: f.Key, Pos: f.Pos}), Filling(l, f.Value))
	}
	return d
}

// required is j, an error where it is null too.
func required(l *read.Lowering, j read.Operand) read.Operand {
	return read.From(func(j read.Operand) read.Operand { return notNull(l, j) }, j)
}

func notNull(l *read.Lowering, j read.Operand) read.Operand {
	switch j.Form {
	case read.LitForm:
		if j.Lit == nil {
			return read.TypeError("value")
		}
	case read.ErrorForm:
		return read.TypeError(j.Hint)
	case read.PlaceForm:
		return requiredPlace(l, j)
	case read.SequenceForm:
		return read.Choice(j.S.Null(), read.TypeError("value"), j)
	case read.ChoiceForm:
		return j.With(required(l, *j.Then), required(l, *j.Els))
	}
	return j
}

func requiredPlace(l *read.Lowering, j read.Operand) read.Operand {
	switch {
	case j.V.Never:
		return read.TypeError("value")
	case j.V.Dynamic() && !j.Traits().Present: // and may be null
		return read.Choice(read.Present(l, j), j.PresentNow(), read.TypeError("value"))
	}
	guards := make([]read.Guard, len(j.V.Guards))
	for i, g := range j.V.Guards {
		g.Shape, g.Hard = false, true
		guards[i] = g
	}
	j.V.Guards = guards
	return j
}

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
