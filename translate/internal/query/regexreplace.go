package query

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
)

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
