package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
)

// libraryFunction is a function that is lowered for Kyverno's CEL library alone, where it is mostly asked
// of what the library reads (Options.Library); false of another.
func libraryFunction(l *read.Lowering, f jmespath.Func, arg func(i int) read.Operand) (read.Operand, bool) {
	switch f {
	case jmespath.FuncLabelMatch:
		return read.InEach(arg(0), func(selector read.Operand) read.Operand {
			return read.InEach(arg(1), func(labels read.Operand) read.Operand { return labelMatch(l, selector, labels) })
		}), true
	case jmespath.FuncSum:
		return read.InEach(arg(0), func(j read.Operand) read.Operand { return sum(l, j) }), true
	}
	return read.Operand{}, false
}

// sum is the sum of a list of integers, of which there must be one. Of texts it may be that of quantities.
func sum(l *read.Lowering, j read.Operand) read.Operand {
	s := read.AsSequence(l, j)
	if s == nil || j.Form == read.LitForm || read.KindOf(s.Elem()) != schema.Int {
		panic(l.Refuse(diag.NoFunction, "the sum of what may be no integers has no native form"))
	}
	list, ok := s.List(l, false)
	if !ok {
		panic(l.Unsupported("the sum of a list of lists"))
	}
	some := s.Quantify(l, cel.ForSome, false, func(read.Operand) cel.Bool { return cel.True() })
	total := l.Binders.Map(list, "number", func(x cel.Value) cel.Value { return cel.Func(cel.FuncInt, x) }).Call(cel.FuncSum)
	return read.IntOf(total).Demanding(read.Demand("", cel.Not(s.Null())), read.Demand("", some))
}

// labelMatch is: labels have all pairs of a selector. What is no map is an error.
func labelMatch(l *read.Lowering, selector, labels read.Operand) read.Operand {
	ofSelector, d, ok := mapArg(l, selector)
	ofLabels, d2, ok2 := mapArg(l, labels)
	if !ok || !ok2 {
		return read.TypeError("argument")
	}
	matches := l.Binders.All(ofSelector, "label", func(x cel.Value) cel.Bool {
		return cel.And(x.In(ofLabels), ofSelector.Index(x).Eq(ofLabels.Index(x)))
	})
	return read.BoolOf(matches).Demanding(d, d2)
}

// mapArg is an argument that must be a map, and what that demands; false where it is none.
func mapArg(l *read.Lowering, j read.Operand) (cel.Value, read.Demands, bool) {
	if j.Form != read.PlaceForm {
		if _, isMap := j.Lit.(map[string]any); !isMap || j.Form != read.LitForm {
			return cel.Value{}, read.Demands{}, false
		}
	}
	v, d, ok := read.Strictly(l, j.Settled())
	if j.Form == read.PlaceForm {
		d = d.And(read.Demand("", j.V.Found()))
	}
	switch read.KindOf(j.Typ()) {
	case schema.Map:
		return v, d, ok
	case schema.Any:
		if j.Form == read.PlaceForm {
			return v, d.And(read.Demand("", read.IsMap(v))), ok
		}
		return v, d, ok
	}
	return v, d, false
}
