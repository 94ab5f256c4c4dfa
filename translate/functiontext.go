package translate

import (
	"regexp"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/jmespath"
)

func (l *lowering) changeCase(f jmespath.Func, a operand) operand {
	l.note(diag.ASCIICase, "%s changes only ASCII letters here", f)
	method := cel.FuncLowerASCII
	if f == jmespath.FuncToUpper {
		method = cel.FuncUpperASCII
	}
	return l.inEach(a, func(j operand) operand {
		if s, ok := j.lit.(string); ok && j.form == litForm {
			return litOf(changeCase(f, s))
		}
		x, ok := l.stringArg(j)
		if !ok {
			return typeError(f.String())
		}
		return stringOf(x.Call(method))
	})
}

func (l *lowering) regexMatch(re, text operand) operand {
	want, ok := re.lit.(string)
	if re.form != litForm || !ok {
		panic(l.refuse(diag.NoFunction, "regex_match with an expression that is a variable has no native form"))
	}
	l.opts.Budget.Spend(budget.OfRegexp(want))
	if _, err := regexp.Compile(want); err != nil {
		return typeError("regex")
	}
	return l.inEach(text, func(j operand) operand {
		if s, ok := j.lit.(string); ok && j.form == litForm {
			return litOf(regexp.MustCompile(want).MatchString(s))
		}
		x, ok := l.stringOrNumberArg(j)
		if !ok {
			return typeError("regex_match")
		}
		return boolOf(x.Matches(want))
	})
}
