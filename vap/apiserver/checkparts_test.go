package apiserver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

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
		long + " || string(dyn([" + strings.Repeat("1, ", 80) + "1])) == 'a'", // of a list
		long + " || string(dyn('a" + strings.Repeat("' + 'b", 80) + "')) == 'a'",
		long + " ||",
		"'%d'.format([" + long + "]) == ''",
		someOf("object.list", "x", long),
		someOf("[object.a]", "x", long),
		someOf("[object.a ? dyn(1) : dyn('a')]", "x", someOf("[dyn(x)]", "y", "x.a == y || "+long)),
		someOf("[dyn(1)]", "x", someOf("['a']", "x", long)),
		someOf("['a']", "x", someOf("[dyn(1)]", "x", long)),
		someOf("['a']", "x", "x + 1 == 2 || "+long),
		someOf("['a']", "x", "x.b || "+long),
		someOf("[]", "x", "x + 1 == 2 || "+long),
		someOf("[dyn('a')]", "x", "x + 1 == 2 || "+long),
		someOf("object.list", "object", long),
		someOf("['a']", "object", long),
		someOf("object.list", "x", someOf("['a']", "object", long)),
		someOf("{'a': 1}", "x", "x == 1 || "+long),
		someOf("[[1, 2]]", "x", someOf("x", "y", "y == 'a' || "+long)),
		someOf("object.list.map(x, x.a)", "x", long),
		someOf("object.list.filter(x, "+long+")", "x", long),
		someOf("object.list", "x", long) + " ? 1 : 2",
		"object.list.map(x, " + long + ")",
		"object.list.all(i, x, x == 'a' || " + strings.ReplaceAll(long, "object", "x") + ")",
		"object.list.exists_one(x, " + strings.ReplaceAll(long, "object", "x") + ") ? 1 : 'a'",
		"object.list.all(x, " + long + " ? 1 : 2)",
		"duration(dyn('x')) == object.a || " + long,
		"object.a.matches(dyn('(')) || " + long,
		"string(dyn(['a'])) == object.a || " + long,
		"int(dyn(type(1))) == object.a || " + long,
		"int(dyn(string)) == object.a || " + long,
		"int(dyn({'a': 1})) == object.a || " + long,
		someOf("object.list", "sets", "sets.contains('a') || "+long), // which is the function of that name
		someOf("object.list", "sets", "sets.contains(object.list, ['a']) || "+long),
		"[object].all(x, " + strings.ReplaceAll(joined, "object", "x") + ")",
		"object.list.map(x, ['a'].map(object, x))", // a list of dyn
	} {
		sameInParts(t, env, text)
	}
	for n := range 10 { // so that some are cut here, and some there
		short := alternatives(n+1, labelled)
		sameInParts(t, env, "("+short+" ? 'a' : object.b) + 1 == 2")
		sameInParts(t, env, "("+short+" ? object.b : 'a') + 1 == 2")
		sameInParts(t, env, "("+short+" ? ['a'] : [object.b]).exists(x, x + 1 == 2)")
	}
}

// someOf is a loop, in which a condition on the object is asked of the variable.
func someOf(list, name, condition string) string {
	return list + ".exists(" + name + ", " + strings.ReplaceAll(condition, "object", name) + ")"
}

// sameInParts tells whether an expression is right, and that parts of it are alike.
func sameInParts(t *testing.T, env *celgo.Env, text string) (right bool) {
	t.Helper()
	_, literalsMatter := withoutLiterals(text)
	parts, ok := compileInParts(env, text, literalsMatter)
	tree, issues := env.Compile(text)
	right = issues == nil
	if right && literalsMatter {
		_, err := env.Program(tree)
		right = err == nil
	}
	if ok && !right {
		t.Errorf("%.60s…%.40s: wrong only as a whole: %v", text, text[max(0, len(text)-40):], issues)
	} else if ok && !parts.output.IsExactType(tree.OutputType()) {
		t.Errorf("%.60s: in parts %v, whole %v", text, parts.output, tree.OutputType())
	} else if !ok && right && !strings.Contains(text, "(object,") {
		t.Errorf("%.60s…%.40s: wrong only in parts", text, text[max(0, len(text)-40):])
	}
	return right
}

// What the fixtures have, and what is like it with a mistake, is found right or wrong in
// parts as it is as a whole.
func TestFixturesInParts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../fixtures/*/want.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checker := NewChecker(cel.Latest)
	env, err := checker.env(reach{authorizer: true, params: true})
	if err != nil {
		t.Fatal(err)
	}
	mistakes := []*strings.Replacer{
		strings.NewReplacer("==", "+"), strings.NewReplacer("'", "1"), strings.NewReplacer("string(", "size("),
		strings.NewReplacer("dyn(", "int("), strings.NewReplacer("exists(", "map("), strings.NewReplacer("true", "1"),
		strings.NewReplacer(".matches('^", ".matches('("),
	}
	right, wrong := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(data), "\n---\n") {
			var p admissionregistrationv1.ValidatingAdmissionPolicy
			if err := yaml.Unmarshal([]byte(document), &p); err != nil {
				t.Fatal(err)
			}
			for _, written := range longTexts(p.Spec) {
				for _, text := range append([]string{written}, changed(written, mistakes)...) {
					if sameInParts(t, env, text) {
						right++
					} else {
						wrong++
					}
				}
			}
		}
	}
	if right < 40 || wrong < 150 {
		t.Errorf("%d right, %d wrong", right, wrong)
	}
}

// longTexts are the conditions that are long enough for parts and read no variables.
func longTexts(of admissionregistrationv1.ValidatingAdmissionPolicySpec) (out []string) {
	for _, c := range of.MatchConditions {
		out = append(out, c.Expression)
	}
	for _, v := range of.Validations {
		out = append(out, v.Expression)
	}
	return slices.DeleteFunc(out, func(text string) bool { return len(text) < 700 || strings.Contains(text, "variables.") })
}

// changed are a text with each of some replacements, in its first half and in its second.
func changed(text string, by []*strings.Replacer) (out []string) {
	half := strings.IndexByte(text[len(text)/2:], '\n') + len(text)/2
	for _, r := range by {
		for _, next := range []string{r.Replace(text[:half]) + text[half:], text[:half] + r.Replace(text[half:])} {
			if next != text {
				out = append(out, next)
			}
		}
	}
	return out
}
