package query

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// call lowers a function. An argument that is missing is null to Kyverno, which
// most functions refuse as an error; the strict form of the argument is an error too.
func call(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	var d read.Demands
	out := called(l, e, func(i int) read.Operand {
		j, of := read.Argument(e.Func, i, eval(l, e.Args[i], cur)).Freed()
		d = d.And(of)
		return j
	})
	return out.Demanding(d)
}

// called is what a function gives of its arguments.
func called(l *read.Lowering, e *jmespath.Expr, given func(i int) read.Operand) read.Operand {
	strictArg := func(i int) read.Operand { return given(i).Over(unlessNever) }
	arg := func(i int) read.Operand { return given(i).Softly() }
	if e.Func == jmespath.FuncUnknown {
		d := policy.BadExpression(jmespath.Check(e)[0])
		d.Severity = diag.Error
		panic(read.Refusal{Diagnostic: d})
	}
	if !e.Func.Signature().Accepts(len(e.Args)) {
		return read.TypeError(e.Name)
	}
	switch e.Func {
	case jmespath.FuncStartsWith:
		return ofTwoTexts(l, strictArg(0), strictArg(1), func(a, b cel.Value) read.Operand { return read.BoolOf(a.StartsWith(b)) })
	case jmespath.FuncEndsWith:
		return ofTwoTexts(l, strictArg(0), strictArg(1), func(a, b cel.Value) read.Operand { return read.BoolOf(a.EndsWith(b)) })
	case jmespath.FuncToUpper, jmespath.FuncToLower:
		return changeCase(l, e.Func, strictArg(0))
	case jmespath.FuncRegexMatch:
		return regexMatch(l, strictArg(0), strictArg(1))
	case jmespath.FuncRegexReplaceAll:
		return regexReplaceAll(l, strictArg(0), strictArg(1), strictArg(2))
	case jmespath.FuncParseJSON:
		return read.InEach(strictArg(0), func(text read.Operand) read.Operand { return compare.ParseJSON(l, text) })
	case jmespath.FuncSplit:
		text := strictArg(0)
		return ofTwoTexts(l, text, strictArg(1), func(a, b cel.Value) read.Operand {
			return read.OperandAt(read.PlaceOf(a.Call(cel.FuncSplit, b), &schema.Type{Kind: schema.List, Elem: read.StringType()}).From(text.Origin()))
		})
	case jmespath.FuncContains:
		return read.InEach(arg(1), func(search read.Operand) read.Operand {
			return read.InEach(strictArg(0), func(in read.Operand) read.Operand { return compare.Contains(l, in, search) })
		})
	case jmespath.FuncLength:
		return read.InEach(strictArg(0), func(j read.Operand) read.Operand { return length(l, j) })
	case jmespath.FuncKeys, jmespath.FuncValues:
		return read.InEach(strictArg(0), func(j read.Operand) read.Operand { return keysOf(l, j, e.Func == jmespath.FuncValues) })
	case jmespath.FuncToArray:
		return read.InEach(arg(0), func(j read.Operand) read.Operand { return toArray(l, j) })
	case jmespath.FuncToString:
		return read.InEach(arg(0), func(j read.Operand) read.Operand { return toString(l, j) })
	case jmespath.FuncSort:
		return sorted(l, strictArg(0))
	case jmespath.FuncDivide, jmespath.FuncAdd, jmespath.FuncSubtract, jmespath.FuncMultiply:
		return unlessErrors(strictArg(0), strictArg(1), func(a, b read.Operand) read.Operand { return arithmetic(l, e.Func, a, b) })
	case jmespath.FuncToNumber:
		return read.InEach(arg(0), func(j read.Operand) read.Operand { return toNumber(l, j) })
	}
	if l.Opts.Library {
		if out, ok := libraryFunction(l, e.Func, strictArg); ok {
			return out
		}
	}
	panic(l.Refuse(diag.NoFunction, "the function %s has no native form", e.Name))
}

// unlessNever is an argument, and an error where nothing can be there: it is missing, or
// null.
func unlessNever(j read.Operand) read.Operand {
	if j.Form == read.ErrorForm || j.Form == read.PlaceForm && j.V.Never {
		return read.TypeError("argument")
	}
	return j
}

// unlessErrors is f of two arguments where neither is an error.
func unlessErrors(a, b read.Operand, f func(a, b read.Operand) read.Operand) read.Operand {
	isError := func(j read.Operand) bool { return j.Form == read.ErrorForm }
	switch {
	case isError(a):
		return a
	case isError(b):
		return b
	case a.Form == read.ChoiceForm && a.Some(isError):
		return a.With(unlessErrors(*a.Then, b, f), unlessErrors(*a.Els, b, f))
	case b.Form == read.ChoiceForm && b.Some(isError):
		return b.With(unlessErrors(a, *b.Then, f), unlessErrors(a, *b.Els, f))
	}
	return f(a, b)
}

// ofTwoTexts is f of two strings; an argument that is no string is an error.
func ofTwoTexts(l *read.Lowering, a, b read.Operand, f func(a, b cel.Value) read.Operand) read.Operand {
	return read.InEach(a, func(a read.Operand) read.Operand {
		return read.InEach(b, func(b read.Operand) read.Operand {
			x, ofX, ok := stringArg(l, a)
			y, ofY, ok2 := stringArg(l, b)
			if !ok || !ok2 {
				return read.TypeError("argument")
			}
			return f(x, y).Demanding(ofX, ofY)
		})
	})
}

// stringArg is an argument that must be a string, and what that demands where it may be
// something else; false where it cannot be one.
func stringArg(l *read.Lowering, j read.Operand) (cel.Value, read.Demands, bool) {
	switch {
	case j.Form == read.LitForm:
		s, ok := j.Lit.(string)
		return cel.String(s), read.Demands{}, ok
	case j.Form == read.ErrorForm || j.Form == read.SequenceForm || j.Form == read.MultiForm: // nor need a list be there
		return cel.Value{}, read.Demands{}, false
	}
	v, d, ok := read.Strictly(l, j)
	if !ok {
		return v, d, false
	}
	switch read.KindOf(j.Typ()) {
	case schema.String:
		return v, d.And(read.Demand("", j.V.Shaped())), true
	case schema.Any, schema.IntOrString:
		return v, d.And(read.Demand("", read.IsString(v))), true
	}
	return v, d, false
}

// stringOrNumberArg is for the functions that take numbers as text too.
func stringOrNumberArg(l *read.Lowering, j read.Operand) (cel.Value, read.Demands, bool) {
	if f, ok := scalar.Float(j.Lit); ok {
		return cel.String(scalar.NumberText(f)), read.Demands{}, true
	}
	if j.Form == read.LitForm {
		return stringArg(l, j)
	}
	switch read.KindOf(j.Typ()) {
	case schema.Int, schema.IntOrString:
		v, d, ok := read.Strictly(l, j)
		return cel.Func(cel.FuncString, v), d, ok
	case schema.Any:
		if v, d, ok := read.Strictly(l, j); ok {
			v = compare.Once(l, compare.VariableName(j.V.Expr.LastField(), "text"), v)
			return cel.Cond(read.IsNumber(v), read.Dyn(cel.Func(cel.FuncString, v)), read.Dyn(v)), d, true
		}
	}
	return stringArg(l, j)
}

// toString is the text of j. That of a quantity or a duration still is one (deviation 15).
func toString(l *read.Lowering, j read.Operand) read.Operand {
	if j.Form == read.LitForm {
		return read.LitOf(scalar.Text(j.Lit))
	}
	if t := j.Typ(); j.Form == read.PlaceForm && (read.IsQuantityType(t) || read.IsDurationType(t)) {
		text := read.Choice(j.V.Shaped(), read.OperandAt(read.PlaceOf(j.V.Expr, t)), read.LitOf("null"))
		return text.Demanding(read.Demand("", j.V.KeysFound()))
	}
	return asText(l, j)
}

func toNumber(l *read.Lowering, j read.Operand) read.Operand {
	if j.Form == read.LitForm {
		if f, ok := scalar.Number(j.Lit); ok {
			return read.LitOf(f)
		}
		return read.LitOf(nil)
	}
	v, ok := read.Expr(l, j.Settled())
	if !ok {
		return read.LitOf(nil)
	}
	found := read.Present(l, j)
	switch read.KindOf(j.Typ()) {
	case schema.Int, schema.Number:
		return j
	case schema.String:
		number := read.ValueOf(read.Dyn(cel.Func(cel.FuncDouble, v)), &schema.Type{Kind: schema.Number})
		return read.Choice(cel.And(found, v.Matches(read.DecimalText)), number, read.LitOf(nil))
	}
	panic(l.Unsupported("to_number of a value whose type is not known"))
}

func changeCase(l *read.Lowering, f jmespath.Func, a read.Operand) read.Operand {
	if !isASCII(a) && !l.HasNoted(diag.ASCIICase) {
		l.Note(diag.ASCIICase, "%s changes only ASCII letters here", f)
	}
	method, change := cel.FuncLowerASCII, strings.ToLower
	if f == jmespath.FuncToUpper {
		method, change = cel.FuncUpperASCII, strings.ToUpper
	}
	return read.InEach(a, func(j read.Operand) read.Operand {
		if s, ok := j.Lit.(string); ok && j.Form == read.LitForm {
			return read.LitOf(change(s))
		}
		x, d, ok := stringArg(l, j)
		if !ok {
			return read.TypeError(f.String())
		}
		return read.StringOf(x.Call(method)).Demanding(d)
	})
}

// isASCII tells of a text whose letters are all of ASCII: the API server takes no others in it.
func isASCII(j read.Operand) bool {
	switch j.Form {
	case read.ChoiceForm:
		return isASCII(*j.Then) && isASCII(*j.Els)
	case read.LitForm:
		return true // of which Go makes what Kyverno does
	case read.PlaceForm:
		path, ok := j.V.Expr.Path()
		return ok && len(path) > 2 && path[1] == "metadata" && (path[2] == "namespace" || path[2] == "labels") || read.IsPlain(j.Typ())
	}
	return false
}

func regexMatch(l *read.Lowering, re, text read.Operand) read.Operand {
	want, ok := re.Lit.(string)
	if re.Form != read.LitForm || !ok {
		panic(l.Refuse(diag.NoFunction, "regex_match with an expression that is a variable has no native form"))
	}
	l.Opts.Budget.Spend(budget.OfRegexp(want))
	if _, err := regexp.Compile(want); err != nil {
		return read.TypeError("regex")
	}
	return read.InEach(text, func(j read.Operand) read.Operand {
		if s, ok := j.Lit.(string); ok && j.Form == read.LitForm {
			return read.LitOf(regexp.MustCompile(want).MatchString(s))
		}
		x, d, ok := stringOrNumberArg(l, j)
		if !ok {
			return read.TypeError("regex_match")
		}
		return read.BoolOf(x.Matches(want)).Demanding(d)
	})
}

// arithmetic lowers add, subtract, multiply and divide for the operands whose
// kind is known when compiling: numbers, and texts that are quantities.
func arithmetic(l *read.Lowering, f jmespath.Func, a, b read.Operand) read.Operand {
	x, xk, ofX := operand(l, a)
	y, yk, ofY := operand(l, b)
	d := ofX.And(ofY)
	switch {
	case f == jmespath.FuncDivide && xk == quantityOperand && yk == quantityOperand:
		divisor, _ := b.Lit.(string) // of the policy
		if q, known := scalar.Quantity(divisor); !known || q.IsZero() {
			d = d.And(read.Demand("", cel.Func(cel.FuncSign, y).Ne(cel.Int(0)))) // a zero divisor is an error to Kyverno, where CEL gives infinity
		}
		quotient := x.Call(cel.FuncAsApproximateFloat).Binary(cel.Over, y.Call(cel.FuncAsApproximateFloat))
		return read.ValueOf(read.Dyn(quotient), &schema.Type{Kind: schema.Number}).Demanding(d) // a double may be compared with an int only as dyn
	case xk == numberOperand && yk == numberOperand && f != jmespath.FuncDivide:
		op := map[jmespath.Func]cel.Operator{jmespath.FuncAdd: cel.Plus, jmespath.FuncSubtract: cel.Minus, jmespath.FuncMultiply: cel.Times}[f]
		return read.IntOf(x.Binary(op, y)).Demanding(d)
	}
	panic(l.Refuse(diag.NoFunction, "the function %s of these operands has no native form", f))
}

type operandKind int

const (
	noOperand operandKind = iota
	numberOperand
	quantityOperand
)

// operand is an operand, its kind, and what reading it demands. A text that may also be a duration, or
// neither, is an error in Kyverno or another kind of arithmetic; quantity() errs
// on all of those.
func operand(l *read.Lowering, j read.Operand) (cel.Value, operandKind, read.Demands) {
	if j.Form == read.LitForm {
		switch v := j.Lit.(type) {
		case float64:
			if v == float64(int64(v)) {
				return cel.Int(int64(v)), numberOperand, read.Demands{}
			}
		case string:
			if _, ok := scalar.Quantity(v); ok {
				return cel.Func(cel.FuncQuantity, cel.String(v)), quantityOperand, read.Demands{}
			}
		}
		return cel.Value{}, noOperand, read.Demands{}
	}
	v, d, ok := read.Strictly(l, j)
	switch k := read.KindOf(j.Typ()); {
	case ok && k == schema.Int && j.Form != read.ChoiceForm:
		return v, numberOperand, d
	case ok && k == schema.String:
		if !read.IsQuantityType(j.Typ()) { // what else it may be is an error in Kyverno, or a duration
			d = d.And(read.Demand("", read.IsQuantity(v)))
			d.Unsure = true
		}
		return cel.Func(cel.FuncQuantity, v), quantityOperand, d
	}
	return v, noOperand, d
}

// CEL replaces by no regular expression, but it finds what a text begins with. So there is a
// form for what rules do with images: another beginning in place of one that may be there.
//
//	regex_replace_all('^(a/|b/)?(.*)$', x, 'c/$2')
//
//	x.contains('\n') ? x : 'c/' + x.substring(x.find('^(?:a/|b/)').size())

// regexReplaceAll is a text with what matches an expression replaced.
func regexReplaceAll(l *read.Lowering, re, text, with read.Operand) read.Operand {
	want, ok := re.Lit.(string)
	by, ok2 := with.Lit.(string)
	if re.Form != read.LitForm || with.Form != read.LitForm || !ok || !ok2 {
		panic(l.Refuse(diag.NoFunction, "regex_replace_all with an expression or a replacement that is a variable has no native form"))
	}
	l.Opts.Budget.Spend(budget.OfRegexp(want))
	compiled, err := regexp.Compile(want)
	if err != nil {
		return read.TypeError("regex")
	}
	front, isFront := optionalFront(want)
	before, isRest := beforeRest(by)
	return read.InEach(text, func(j read.Operand) read.Operand {
		if s, ok := j.Lit.(string); ok && j.Form == read.LitForm {
			return read.LitOf(compiled.ReplaceAllString(s, by))
		}
		if !isFront || !isRest || read.KindOf(j.Typ()) != schema.String {
			panic(l.Refuse(diag.NoFunction, "regex_replace_all has a native form only where it replaces the beginning of a text, as in '^(a/)?(.*)$' by 'b/$2'"))
		}
		x, d, ok := stringArg(l, j)
		if !ok {
			return read.TypeError("regex_replace_all")
		}
		rest := x.Call(cel.FuncSubstring, x.Call(cel.FuncFind, cel.String(front)).Size())
		return read.StringOf(cel.Cond(x.Contains(cel.String("\n")), x, cel.String(before).Plus(rest))).Demanding(d)
	})
}

// optionalFront is the expression of what a text may begin with, of one as ^(front)?(.*)$.
func optionalFront(re string) (front string, ok bool) {
	parsed, err := syntax.Parse(re, syntax.Perl)
	if err != nil || parsed.Op != syntax.OpConcat || len(parsed.Sub) != 4 {
		return "", false
	}
	is := func(x *syntax.Regexp, op syntax.Op) bool {
		return x.Op == op && x.Flags&(syntax.NonGreedy|syntax.FoldCase) == 0
	}
	begin, quest, rest, end := parsed.Sub[0], parsed.Sub[1], parsed.Sub[2], parsed.Sub[3]
	switch {
	case !is(begin, syntax.OpBeginText) || !is(end, syntax.OpEndText),
		!is(quest, syntax.OpQuest) || !is(quest.Sub[0], syntax.OpCapture) || quest.Sub[0].Cap != 1,
		!is(rest, syntax.OpCapture) || rest.Cap != 2 || !is(rest.Sub[0], syntax.OpStar) || !is(rest.Sub[0].Sub[0], syntax.OpAnyCharNotNL):
		return "", false
	}
	return "^(?:" + quest.Sub[0].Sub[0].String() + ")", true
}

// beforeRest is what stands before the second group, which ends a replacement.
func beforeRest(by string) (before string, ok bool) {
	for _, group := range []string{"$2", "${2}"} {
		if before, ok = strings.CutSuffix(by, group); ok && !strings.Contains(before, "$") {
			return before, true
		}
	}
	return "", false
}
