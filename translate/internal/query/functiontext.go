package query

import (
	"regexp"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/translate/internal/read"
)

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
