package translate

import (
	"regexp"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

func (l *lowering) changeCase(f jmespath.Func, a operand) operand {
	l.note(diag.ASCIICase, "%s changes only ASCII letters here", f)
	method := cel.FuncLowerASCII
	if f == jmespath.FuncToUpper {
		method = cel.FuncUpperASCII
	}
	return a.over(func(j operand) operand {
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

// equalFold compares with a literal through a regular expression, whose folding
// is the one of Go's EqualFold.
func (l *lowering) equalFold(a, b operand) operand {
	if a.form == litForm {
		a, b = b, a
	}
	want, ok := b.lit.(string)
	if b.form != litForm || !ok {
		panic(l.refuse(diag.NoFunction, "the function equal_fold of two variables has no native form"))
	}
	return a.over(func(a operand) operand {
		x, ok := l.stringArg(a)
		if !ok {
			return typeError("equal_fold")
		}
		return boolOf(x.Matches("(?i)^" + regexp.QuoteMeta(want) + "$"))
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
	return text.over(func(j operand) operand {
		if s, ok := j.lit.(string); ok && j.form == litForm {
			return litOf(regexp.MustCompile(want).MatchString(s))
		}
		if j.form == jsonForm {
			return litOf(l.jsonMatches(j, want))
		}
		x, ok := l.stringOrNumberArg(j)
		if !ok {
			return typeError("regex_match")
		}
		return boolOf(x.Matches(want))
	})
}

func (l *lowering) patternMatch(p, text operand) operand {
	want, ok := p.lit.(string)
	if p.form != litForm || !ok {
		panic(l.refuse(diag.NoFunction, "pattern_match with a pattern that is a variable has no native form"))
	}
	return text.over(func(j operand) operand {
		x, ok := l.stringOrNumberArg(j)
		if !ok {
			return typeError("pattern_match")
		}
		return boolOf(native.Matches(x, want))
	})
}

func (l *lowering) replaceAll(text, from, to operand) operand {
	return unlessErrors(from, to, func(from, to operand) operand { return l.replaced(text, from, to) })
}

func (l *lowering) replaced(text, from, to operand) operand {
	f, ok := l.stringArg(from)
	t, ok2 := l.stringArg(to)
	if !ok || !ok2 {
		return typeError("replace_all")
	}
	return text.over(func(j operand) operand {
		x, ok := l.stringArg(j)
		if !ok {
			return typeError("replace_all")
		}
		out := x.Call(cel.FuncReplace, f, t)
		const step = 64 // bytes of text
		l.opts.Budget.Spend(cel.SizeOf(out, nil) / step)
		return stringOf(out)
	})
}

func (l *lowering) trimPrefix(text, prefix operand) operand {
	return l.ofTwoTexts(text, prefix, func(x, p cel.Value) operand {
		return stringOf(cel.Cond(x.StartsWith(p), x.Call(cel.FuncSubstring, p.Size()), x))
	})
}

// trim is a text without the characters of a set at its two ends.
func (l *lowering) trim(text, cutset operand) operand {
	set, ok := cutset.lit.(string)
	switch {
	case cutset.form != litForm:
		panic(l.refuse(diag.NoFunction, "trim with characters that are a variable has no native form"))
	case !ok:
		return typeError("trim")
	case set == "":
		return l.ofText(text, func(_, whole cel.Value) operand { return stringOf(whole) })
	}
	return l.ofTwoTexts(text, cutset, func(x, _ cel.Value) operand { return stringOf(found(x, betweenAny(set))) })
}

// betweenAny is a regular expression of what is left of a text without the characters
// of a set at its two ends.
func betweenAny(set string) string {
	var class strings.Builder
	for _, r := range set {
		if strings.ContainsRune(`\]^-[`, r) {
			class.WriteByte('\\')
		}
		class.WriteRune(r)
	}
	other := "[^" + class.String() + "]"
	return "(?s)" + other + "(.*" + other + ")?"
}

// truncate is the first n characters of a text.
func (l *lowering) truncate(text, n operand) operand {
	length, ok := n.lit.(float64)
	switch {
	case n.form != litForm:
		panic(l.refuse(diag.NoFunction, "truncate to a length that is a variable has no native form"))
	case !ok:
		return typeError("truncate")
	case length > maxLength:
		panic(l.refuse(diag.NoFunction, "truncate to a length of that many characters has no native form"))
	}
	longest := cel.Int(max(0, int64(length)))
	return l.ofText(text, func(x, whole cel.Value) operand {
		return stringOf(cel.Cond(x.Size().Compare(cel.Greater, longest), x.Call(cel.FuncSubstring, cel.Int(0), longest), whole))
	})
}

// ofText is a function of a text that may give it back whole, which is an error where it
// is no text.
func (l *lowering) ofText(text operand, f func(x, whole cel.Value) operand) operand {
	return text.over(func(j operand) operand {
		x, ok := l.stringArg(j)
		switch {
		case !ok:
			return typeError("argument")
		case j.form == litForm || kindOf(j.typ()) == schema.String:
			return f(x, x)
		}
		return f(x, x.Plus(cel.String("")))
	})
}

// maxLength is more characters than a request has.
const maxLength = 1 << 31
