package apiserver

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
)

// In parts or whole, an expression is found right or wrong alike, and has the same type.
func TestInParts(t *testing.T) {
	env, err := NewChecker(cel.Latest).env(reach{authorizer: true, variables: true})
	if err != nil {
		t.Fatal(err)
	}
	long := alternatives(20, labelled)
	loops := alternatives(20, looped)
	joined := "'a' + " + strings.ReplaceAll(alternatives(20, chosen), "||", "+")
	for _, text := range []string{
		long,
		loops,
		"(" + long + ") && (" + loops + ")",
		"(" + long + ") ? 1 : 2",
		"(" + long + ") ? 'a' : 'b'",
		"[" + long + ", 1 == 2]",
		"[" + long + ", 1]", // of two types
		"{'a': " + long + "}['a'] && true",
		"(" + long + ") + 1",
		"(" + long + ") == 1",
		"string(" + long + ") + 'x'",
		joined,
		joined + " + 1",
		joined + " == 1",
		"size(" + joined + ") + 1",
		"(" + joined + ").size() + 1",
		"'a'.matches(" + joined + ")",
		"(" + long + " ? '' : 1) == 1",
		"(" + long + " ? true : 1) || true",
		"((" + long + ") ? true : " + long + ") ? 1 : 2",
		"object.list.map(x, x.a + (" + long + " ? 1 : 2))",
		"object.list.exists(x, x == 'a' || " + strings.ReplaceAll(long, "object", "x") + ")",
		"object.list.exists(x, x == 'a') && (" + strings.ReplaceAll(long, "object", "x") + ")", // which is no x
		long + " || 1",
		long + " || object.dynamic",
		long + " || undeclared.a == 'a'",
		long + " || object.a.matches('(')",
		long + " || object.a.matches('[a-z]')",
		long + " || duration('x') > duration('1s')",
		long + " || size(1, 2) == 1",
		long + " ||",
		"'%d'.format([" + long + "]) == ''",
	} {
		_, literalsMatter := withoutLiterals(text)
		parts, ok := compileInParts(env, text, literalsMatter)
		tree, issues := env.Compile(text)
		if issues == nil && literalsMatter {
			_, err = env.Program(tree)
		} else {
			err = nil
		}
		if right := issues == nil && err == nil; ok != right {
			t.Errorf("%.60s…%.40s: in parts %v, whole %v %v", text, text[len(text)-40:], ok, issues, err)
		} else if ok && !parts.output.IsExactType(tree.OutputType()) {
			t.Errorf("%.60s: in parts %v, whole %v", text, parts.output, tree.OutputType())
		}
	}
}
