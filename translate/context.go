package translate

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// A contextVar is a context entry. It is lowered where it is used: what is never
// used has no errors, in Kyverno and here.
type contextVar struct {
	entry *policy.ContextEntry
	index int // among the entries of the context
	// outer is the context that the entry may use: the entries before it.
	outer context
}

// A context is the entries that may be used at a place. Contexts of one rule share
// what they have by name, and each sees the first so many of all entries.
type context struct {
	named map[string][]*contextVar // in order
	size  int
}

// contextOf is the context that entries give on top of the outer one.
func contextOf(entries []*policy.ContextEntry, outer context) context {
	if len(entries) == 0 {
		return outer
	}
	out := context{named: make(map[string][]*contextVar, len(entries)), size: outer.size}
	for name := range outer.named {
		for v := outer.get(name); v != nil; v = v.outer.get(name) {
			out.named[name] = slices.Insert(out.named[name], 0, v)
		}
	}
	for _, e := range entries {
		out.named[e.Name] = append(out.named[e.Name], &contextVar{entry: e, index: out.size, outer: context{out.named, out.size}})
		out.size++
	}
	return out
}

// get is the last entry of a name, or nil.
func (c context) get(name string) *contextVar {
	for _, v := range slices.Backward(c.named[name]) {
		if v.index < c.size {
			return v
		}
	}
	return nil
}

// loadedBefore is an entry of the rule while the old object is judged: Kyverno
// keeps what it loaded when it judged the new one (8.4).
func (l *lowering) loadedBefore(v *contextVar) operand {
	defer l.restore(l.environment)
	l.environment = l.ofNewObject()
	return l.contextValue(v)
}

// contextValue is the value of an entry.
func (l *lowering) contextValue(v *contextVar) operand {
	if l.now != nil && slices.Contains(l.rule.Context, v.entry) {
		return l.loadedBefore(v)
	}
	defer l.restore(l.environment)
	defer l.setPos(l.pos)
	l.context = v.outer
	e := v.entry
	l.setPos(e.Pos)
	switch {
	case e.Variable != nil:
		return l.variableEntry(e.Variable)
	case e.ConfigMap != nil:
		return l.configMap(e)
	case e.APICall != nil:
		return l.apiCall(e)
	case e.ImageRegistry != nil:
		panic(l.refuse(diag.OutsideData, "the data of an image is in a registry"))
	case e.GlobalReference != nil:
		panic(l.refuse(diag.OutsideData, "global context entries are outside the request"))
	}
	panic(l.unsupported("this context entry"))
}

// maxEntries bounds how often variables are worked out for one target. Each use of
// one is, and of those in it: forty that use the one before twice never end.
const maxEntries = 2000

// variableEntry is a variable: its value, what a JMESPath expression gives, or
// the default where that is null or an error.
func (l *lowering) variableEntry(v *policy.VariableEntry) operand {
	if l.entries++; l.entries > maxEntries {
		panic(tooLarge(l.pos))
	}
	var out operand
	switch {
	case v.Value != nil && v.JMESPath == nil: // the default is for a jmesPath only
		return l.whereFilledBy(v.Default, "default", l.required(l.valueNode(v.Value)))
	case v.Value != nil:
		value := l.valueNode(v.Value)
		// null is an error here even with a default
		out = l.required(l.inEach(value, func(j operand) operand { return l.eval(l.path(*v.JMESPath), &j) }))
		if v.Default == nil || !l.mayBeMissing(out) {
			return l.whereFilledBy(v.Default, "default", out)
		}
		panic(l.unsupported("a variable with a value, a jmesPath and a default"))
	case v.JMESPath != nil:
		out = l.queried(l.path(*v.JMESPath), v.Default)
	default:
		return l.required(l.node(v.Default))
	}
	if v.Default == nil || v.Default.Kind == policy.Null {
		return l.required(out)
	}
	def := l.required(l.node(v.Default))
	out = l.bounded(l.inEach(out.softly(), func(j operand) operand {
		if j.form == errorForm { // the default stands in for any error
			return def
		}
		return choice(l.present(j), j.presentNow(), def)
	}))
	return l.whereFilledBy(v.Default, "default", out)
}

// queried is what a query gives. Where a default stands in for any error, those of
// functions are told beforehand: CEL cannot catch them.
func (l *lowering) queried(e *jmespath.Expr, def *policy.Node) operand {
	if def == nil || def.Kind == policy.Null {
		return l.queryOutside(e)
	}
	var out operand
	n := l.collected(func() { out = l.queryOutside(e) })
	if n.unsure {
		panic(l.unsupported("a default for a jmesPath that may be an error"))
	}
	l.needs.native = l.needs.native || n.native
	return choice(n.all().Simplify(), out, typeError("jmesPath"))
}

func (l *lowering) path(t policy.Text) *jmespath.Expr {
	l.setPos(t.Pos)
	s, ok := l.template(l.parseTemplate(t.Value, t.Pos)).lit.(string)
	if !ok {
		panic(l.unsupported("a jmesPath with variables"))
	}
	e, d := jmespath.Parse(s, t.Pos)
	if d != nil {
		panic(refusal{diag.Warnf(d.Pos, diag.NoExpression, "%s; the webhook will judge this rule", d.Message)})
	}
	return e
}

func (l *lowering) mayBeMissing(j operand) bool {
	return j.form != litForm && !l.present(j).IsTrue()
}
