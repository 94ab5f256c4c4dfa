package translate

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/schema"
)

// CEL replaces by no regular expression, but it finds what a text begins with. So there is a
// form for what rules do with images: another beginning in place of one that may be there.
//
//	regex_replace_all('^(a/|b/)?(.*)$', x, 'c/$2')
//
//	x.contains('\n') ? x : 'c/' + x.substring(x.find('^(?:a/|b/)').size())

// regexReplaceAll is a text with what matches an expression replaced.
func (l *lowering) regexReplaceAll(re, text, with operand) operand {
	want, ok := re.lit.(string)
	by, ok2 := with.lit.(string)
	if re.form != litForm || with.form != litForm || !ok || !ok2 {
		panic(l.refuse(diag.NoFunction, "regex_replace_all with an expression or a replacement that is a variable has no native form"))
	}
	l.opts.Budget.Spend(budget.OfRegexp(want))
	compiled, err := regexp.Compile(want)
	if err != nil {
		return typeError("regex")
	}
	front, isFront := optionalFront(want)
	before, isRest := beforeRest(by)
	return l.inEach(text, func(j operand) operand {
		if s, ok := j.lit.(string); ok && j.form == litForm {
			return litOf(compiled.ReplaceAllString(s, by))
		}
		if !isFront || !isRest || kindOf(j.typ()) != schema.String {
			panic(l.refuse(diag.NoFunction, "regex_replace_all has a native form only where it replaces the beginning of a text, as in '^(a/)?(.*)$' by 'b/$2'"))
		}
		x, ok := l.stringArg(j)
		if !ok {
			return typeError("regex_replace_all")
		}
		rest := x.Call(cel.FuncSubstring, x.Call(cel.FuncFind, cel.String(front)).Size())
		return stringOf(cel.Cond(x.Contains(cel.String("\n")), x, cel.String(before).Plus(rest)))
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
