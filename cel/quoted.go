package cel

import (
	"regexp/syntax"
	"strings"
)

// Texts of the request inside of a regular expression, taken literally.

// isRegex tells of what can be matched: a literal, or a text that is quoted between
// two literals.
func isRegex(n *node) bool {
	if n.op == opString {
		_, err := syntax.Parse(n.lit.(string), syntax.Perl)
		return err == nil
	}
	if n.operator() != Plus || n.args[0].operator() != Plus {
		return false
	}
	begin, quoted, end := n.args[0].args[0], n.args[0].args[1], n.args[1]
	if begin.op != opString || end.op != opString {
		return false
	}
	before, after := begin.lit.(string), end.lit.(string)
	return strings.HasSuffix(before, `\Q`) && strings.HasPrefix(after, `\E`) && quoted.isQuoted() && isRegex(String(before+after).n)
}

// isQuoted tells of a text that stands between \Q and \E, and in which no backslash
// of its own ends that: each is taken out of the quotes. Wildcards may be too, each
// kind once: what is put in their place has no other, but another replacement of the
// same would meet it.
func (n *node) isQuoted() bool {
	left := map[string]string{"*": `\E.*\Q`, "?": `\E.\Q`}
	for n.function() == FuncReplace && len(n.args) == 3 {
		from, to := n.args[1], n.args[2]
		if from.op != opString || to.op != opString {
			return false
		}
		if from.lit == `\` {
			return to.lit == `\E\\\Q`
		}
		if out, ok := left[from.lit.(string)]; !ok || to.lit != out {
			return false
		}
		delete(left, from.lit.(string))
		n = n.args[0]
	}
	return false
}
