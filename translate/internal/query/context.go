package query

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/read"
)

// ContextOf is the context that entries give on top of the outer one.
func ContextOf(entries []*policy.ContextEntry, outer read.Context) read.Context {
	if len(entries) == 0 {
		return outer
	}
	out := read.Context{Named: make(map[string][]*read.ContextVar, len(entries)), Size: outer.Size}
	for name := range outer.Named {
		for v := outer.Get(name); v != nil; v = v.Outer.Get(name) {
			out.Named[name] = slices.Insert(out.Named[name], 0, v)
		}
	}
	for _, e := range entries {
		out.Named[e.Name] = append(out.Named[e.Name], &read.ContextVar{Entry: e, Index: out.Size, Outer: read.Context{Named: out.Named, Size: out.Size}})
		out.Size++
	}
	return out
}

// contextValue is the value of an entry. While the old object is judged, Kyverno keeps what
// it loaded of the rule when it judged the new one (8.4).
func contextValue(l *read.Lowering, v *read.ContextVar) read.Operand {
	l = l.Inside()
	if l.OfOld() && slices.Contains(l.Rule.Context, v.Entry) {
		l.Environment = l.OfNewObject()
	}
	l.Context = v.Outer
	e := v.Entry
	l.SetPos(e.Pos)
	switch {
	case e.Variable != nil:
		return variableEntry(l, e.Variable)
	case e.ConfigMap != nil:
		return configMap(l, e)
	case e.APICall != nil:
		return apiCall(l, e)
	case e.ImageRegistry != nil && l.Opts.Library:
		return imageData(l, e)
	case e.GlobalReference != nil && l.Opts.Library:
		return globalData(l, e)
	case e.ImageRegistry != nil:
		panic(l.Refuse(diag.OutsideData, "the data of an image is in a registry"))
	case e.GlobalReference != nil:
		panic(l.Refuse(diag.OutsideData, "global context entries are outside the request"))
	}
	panic(l.Unsupported("this context entry"))
}

// maxEntries bounds how often variables are worked out for one target. Each use of
// one is, and of those in it: forty that use the one before twice never end.
const maxEntries = 2000

// variableEntry is a variable: its value, what a JMESPath expression gives, or
// the default where that is null or an error.
func variableEntry(l *read.Lowering, v *policy.VariableEntry) read.Operand {
	if l.Entries++; l.Entries > maxEntries {
		panic(read.TooLarge(l.Pos))
	}
	var out read.Operand
	switch {
	case v.Value != nil && v.JMESPath == nil: // the default is for a jmesPath only
		return whereFilledBy(l, v.Default, "default", required(l, valueNode(l, v.Value)))
	case v.Value != nil:
		value := valueNode(l, v.Value)
		// null is an error here even with a default
		out = required(l, read.InEach(value, func(j read.Operand) read.Operand { return eval(l, path(l, *v.JMESPath), &j) }))
		if v.Default == nil || out.Form == read.LitForm || read.Present(l, out).IsTrue() {
			return whereFilledBy(l, v.Default, "default", out)
		}
		panic(l.Unsupported("a variable with a value, a jmesPath and a default"))
	case v.JMESPath != nil:
		out = queried(l, path(l, *v.JMESPath), v.Default)
	default:
		return required(l, Node(l, v.Default))
	}
	if v.Default == nil || v.Default.Kind == policy.Null {
		return required(l, out)
	}
	def := required(l, Node(l, v.Default))
	out = read.Bounded(l, read.InEach(out.Softly(), func(j read.Operand) read.Operand {
		if j.Form == read.ErrorForm { // the default stands in for any error
			return def
		}
		return read.Choice(read.Present(l, j), j.PresentNow(), def)
	}))
	return whereFilledBy(l, v.Default, "default", out)
}

// queried is what a query gives. Where a default stands in for any error, those of
// functions are told beforehand: CEL cannot catch them.
func queried(l *read.Lowering, e *jmespath.Expr, def *policy.Node) read.Operand {
	if def == nil || def.Kind == policy.Null {
		return Outside(l, e)
	}
	out := Outside(l, e)
	d := out.Anyway()
	if d.Unsure {
		panic(l.Unsupported("a default for a jmesPath that may be an error"))
	}
	return read.Choice(d.All().Simplify(), out.Undemanding(), read.TypeError("jmesPath")).Demanding(read.Demands{Native: d.Native})
}

// constantText is a text that is known when compiling.
func constantText(l *read.Lowering, t policy.Text) (text string, ok bool) {
	j := Template(l, ParseTemplate(t.Value, t.Pos))
	text, ok = j.Lit.(string)
	return text, ok && j.Form == read.LitForm && j.Anyway().None()
}

func path(l *read.Lowering, t policy.Text) *jmespath.Expr {
	l.SetPos(t.Pos)
	if e := filledPath(l, t); e != nil {
		return e
	}
	s, ok := constantText(l, t)
	if !ok {
		panic(l.Unsupported("a jmesPath with variables"))
	}
	e, d := jmespath.Parse(s, t.Pos)
	if d != nil {
		panic(read.Refusal{Diagnostic: diag.Warnf(d.Pos, d.Code, "%s; the webhook will judge this rule", d.Message)})
	}
	return e
}
