package pattern

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// runtimeLeaf is a leaf that stands for a variable's text. Around the variable there
// may be words and wildcards, but no operators.
func runtimeLeaf(l *read.Lowering, p *policy.Node, t *jmespath.Template, j read.Operand) *policy.Node {
	has := func(chars string) bool {
		return slices.ContainsFunc(t.Parts, func(part jmespath.Part) bool { return strings.ContainsAny(part.Text, chars) })
	}
	if has("|&<>! \t\r\n") || !compare.IsPlainText(j) {
		panic(compare.UnknownPattern(l, p))
	}
	stands := read.RuntimeText{Text: j.V.Expr, Typ: j.Typ(), Alone: t.Single() != nil}
	if has("*?") {
		stands = wildText(l, p, t)
	}
	compare.NoteSame(l, j, j)
	leaf := &policy.Node{Kind: policy.String, Pos: p.Pos}
	l.RuntimeTexts[leaf] = stands
	return leaf
}

// wildText is a text with a * at one end.
func wildText(l *read.Lowering, p *policy.Node, t *jmespath.Template) read.RuntimeText {
	plain := *t
	plain.Parts = slices.Clone(t.Parts)
	first, last := &plain.Parts[0], &plain.Parts[len(plain.Parts)-1]
	before := strings.HasPrefix(first.Text, "*")
	if before {
		first.Text = first.Text[1:]
	} else {
		last.Text = strings.TrimSuffix(last.Text, "*")
	}
	if slices.ContainsFunc(plain.Parts, func(part jmespath.Part) bool { return scalar.IsWild(part.Text) }) {
		panic(compare.UnknownPattern(l, p))
	}
	text, _ := query.Text(l, filledText(l, &plain)) // of which the whole demands as much
	out := read.RuntimeText{Text: text, Typ: read.StringType()}
	out.Match = func(x cel.Value) cel.Bool {
		if before {
			return x.EndsWith(out.Text)
		}
		return x.StartsWith(out.Text)
	}
	return out
}
