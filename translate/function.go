package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// call lowers a function. An argument that is missing is null to Kyverno, which
// most functions refuse as an error; the strict form of the argument is an error too.
func (l *lowering) call(e *jmespath.Expr, cur *operand) operand {
	given := func(i int) operand { return l.argument(e.Func, i, l.eval(e.Args[i], cur)) }
	strictArg := func(i int) operand { return given(i).over(unlessNever) }
	arg := func(i int) operand { return given(i).softly() }
	if e.Func == jmespath.FuncUnknown {
		d := policy.BadExpression(jmespath.Check(e)[0])
		d.Severity = diag.Error
		panic(refusal{d})
	}
	if !e.Func.Signature().Accepts(len(e.Args)) {
		return typeError(e.Name)
	}
	if out, ofText := l.callOfText(e.Func, strictArg); ofText {
		return out
	}
	switch e.Func {
	case jmespath.FuncContains:
		return l.inEach(arg(1), func(search operand) operand {
			return l.inEach(strictArg(0), func(in operand) operand { return l.contains(in, search) })
		})
	case jmespath.FuncLength:
		return l.inEach(strictArg(0), l.length)
	case jmespath.FuncKeys, jmespath.FuncValues:
		return l.inEach(strictArg(0), func(j operand) operand { return l.keysOf(j, e.Func == jmespath.FuncValues) })
	case jmespath.FuncToArray:
		return l.inEach(arg(0), l.toArray)
	case jmespath.FuncToString:
		return l.inEach(arg(0), l.toString)
	case jmespath.FuncSort:
		return l.sorted(strictArg(0))
	case jmespath.FuncDivide, jmespath.FuncAdd, jmespath.FuncSubtract, jmespath.FuncMultiply:
		return unlessErrors(strictArg(0), strictArg(1), func(a, b operand) operand { return l.arithmetic(e.Func, a, b) })
	case jmespath.FuncToNumber:
		return l.inEach(arg(0), l.toNumber)
	}
	panic(l.refuse(diag.NoFunction, "the function %s has no native form", e.Name))
}

// unlessNever is an argument, and an error where nothing can be there: it is missing, or
// null.
func unlessNever(j operand) operand {
	if j.form == errorForm || j.form == placeForm && j.v.never {
		return typeError("argument")
	}
	return j
}

// callOfText calls a function whose first argument is a text; not ok for another.
func (l *lowering) callOfText(f jmespath.Func, arg func(i int) operand) (out operand, ok bool) {
	switch f {
	case jmespath.FuncStartsWith:
		return l.ofTwoTexts(arg(0), arg(1), func(a, b cel.Value) operand { return boolOf(a.StartsWith(b)) }), true
	case jmespath.FuncEndsWith:
		return l.ofTwoTexts(arg(0), arg(1), func(a, b cel.Value) operand { return boolOf(a.EndsWith(b)) }), true
	case jmespath.FuncToUpper, jmespath.FuncToLower:
		return l.changeCase(f, arg(0)), true
	case jmespath.FuncRegexMatch:
		return l.regexMatch(arg(0), arg(1)), true
	case jmespath.FuncRegexReplaceAll:
		return l.regexReplaceAll(arg(0), arg(1), arg(2)), true
	case jmespath.FuncParseJSON:
		return l.inEach(arg(0), l.parseJSON), true
	case jmespath.FuncSplit:
		text := arg(0)
		return l.ofTwoTexts(text, arg(1), func(a, b cel.Value) operand {
			return operandAt(placeOf(a.Call(cel.FuncSplit, b), &schema.Type{Kind: schema.List, Elem: stringType()}).from(text.origin()))
		}), true
	}
	return operand{}, false
}

// unlessErrors is f of two arguments where neither is an error.
func unlessErrors(a, b operand, f func(a, b operand) operand) operand {
	isError := func(j operand) bool { return j.form == errorForm }
	switch {
	case isError(a):
		return a
	case isError(b):
		return b
	case a.form == choiceForm && a.some(isError):
		return a.with(unlessErrors(*a.then, b, f), unlessErrors(*a.els, b, f))
	case b.form == choiceForm && b.some(isError):
		return b.with(unlessErrors(a, *b.then, f), unlessErrors(a, *b.els, f))
	}
	return f(a, b)
}

// ofTwoTexts is f of two strings; an argument that is no string is an error.
func (l *lowering) ofTwoTexts(a, b operand, f func(a, b cel.Value) operand) operand {
	return l.inEach(a, func(a operand) operand {
		return l.inEach(b, func(b operand) operand {
			x, ok := l.stringArg(a)
			y, ok2 := l.stringArg(b)
			if !ok || !ok2 {
				return typeError("argument")
			}
			return f(x, y)
		})
	})
}

// stringArg is an argument that must be a string: an error at run time where it
// may be something else, and false where it cannot be one.
func (l *lowering) stringArg(j operand) (cel.Value, bool) {
	switch {
	case j.form == litForm:
		s, ok := j.lit.(string)
		return cel.String(s), ok
	case j.form == errorForm || j.form == sequenceForm || j.form == multiForm: // nor need a list be there
		return cel.Value{}, false
	}
	v, ok := l.expr(j)
	if !ok {
		return v, false
	}
	switch kindOf(j.typ()) {
	case schema.String:
		l.need(j.v.shaped())
		return v, true
	case schema.Any, schema.IntOrString:
		l.need(isString(v))
		return v, true
	}
	return v, false
}

// stringOrNumberArg is for the functions that take numbers as text too.
func (l *lowering) stringOrNumberArg(j operand) (cel.Value, bool) {
	if f, ok := scalar.Float(j.lit); ok && j.form == litForm {
		return cel.String(scalar.NumberText(f)), true
	}
	if j.form == litForm {
		return l.stringArg(j)
	}
	switch kindOf(j.typ()) {
	case schema.Int:
		v, ok := l.expr(j)
		return cel.Func(cel.FuncString, v), ok
	case schema.IntOrString:
		v, ok := l.expr(j)
		return cel.Func(cel.FuncString, v), ok
	case schema.Any:
		if v, ok := l.expr(j); ok {
			v = l.once(variableName(j.v.expr.LastField(), "text"), v)
			return cel.Cond(isNumber(v), dyn(cel.Func(cel.FuncString, v)), dyn(v)), true
		}
	}
	return l.stringArg(j)
}

func (l *lowering) toString(j operand) operand {
	if j.form == litForm {
		return litOf(scalar.Text(j.lit))
	}
	return stringOf(l.text(j))
}

func (l *lowering) toNumber(j operand) operand {
	if j.form == litForm {
		if f, ok := scalar.Number(j.lit); ok {
			return litOf(f)
		}
		return litOf(nil)
	}
	v, ok := l.expr(j.settled())
	if !ok {
		return litOf(nil)
	}
	found := l.present(j)
	switch kindOf(j.typ()) {
	case schema.Int, schema.Number:
		return j
	case schema.String:
		number := valueOf(dyn(cel.Func(cel.FuncDouble, v)), &schema.Type{Kind: schema.Number})
		return choice(cel.And(found, v.Matches(decimalText)), number, litOf(nil))
	}
	panic(l.unsupported("to_number of a value whose type is not known"))
}
