package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func joined(n int, separator string, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, separator)
}

// chain are variables that each read the one before.
func chain(n int, first, next string) string {
	return joined(n, "", func(i int) string {
		expression := first
		if i > 0 {
			expression = strings.ReplaceAll(next, "V", "variables.v"+strconv.Itoa(i-1))
		}
		return fmt.Sprintf("\n  - {name: v%d, expression: %q}", i, expression)
	})
}

// tooLarge are policies that are short, or at least no longer than an API server takes,
// and would keep whoever reads them for long, or take all memory.
func tooLarge() map[string]string {
	validating := func(variables, validation string) string {
		return "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  matchConstraints:\n    resourceRules:\n" +
			"    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}\n  variables: " + variables +
			"\n  validations:\n  - expression: " + strconv.Quote(validation) + "\n"
	}
	rules := func(rules string) string {
		return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  background: false\n  rules:\n" + rules
	}
	rule := func(more, validate string) string {
		return rules("  - name: r\n    match: {any: [{resources: {kinds: [ConfigMap]}}]}\n" + more + "    validate: {message: m, " + validate + "}\n")
	}
	denies := func(context, key string) string {
		return rule(context, fmt.Sprintf("deny: {conditions: {all: [{key: %q, operator: Equals, value: never}]}}", "{{ "+key+" }}"))
	}
	entries := func(n int, first, next string) string {
		return "    context:\n" + joined(n, "", func(i int) string {
			entry := fmt.Sprintf("jmesPath: %q", first)
			if i > 0 {
				entry = strings.ReplaceAll(next, "V", "v"+strconv.Itoa(i-1))
			}
			return fmt.Sprintf("    - {name: v%d, variable: {%s}}\n", i, entry)
		})
	}
	words := joined(3000, "|", func(i int) string { return fmt.Sprintf("%da{20}", i) })
	repetitions := strings.Repeat("(a{1000})", 900)
	name := "request.object.metadata.name"
	return map[string]string{
		"what a sum of variables is":  validating(chain(31, "object.metadata.name", "V + V"), "variables.v30 == ''"),
		"a list in each other's list": validating("[]", "[1]"+strings.Repeat(".map(x, [x, x])", 200)+".size() > 0"),
		"a list in each variable's":   validating(chain(200, "[1]", "[V].map(x, [x, x])"), "variables.v199.size() > 0"),
		"many variables":              validating(joined(5000, "", func(i int) string { return fmt.Sprintf("\n  - {name: v%d, expression: object.data.k%[1]d}", i) }), "true"),
		"alternatives":                validating("[]", "object.metadata.name.matches('"+words+"')"),
		"repetitions":                 validating(chain(10, "object.metadata.name.matches('"+repetitions+"')", "object.metadata.name.matches('"+repetitions+"')"), "variables.v9"),
		"many CEL rules": rules(joined(2000, "", func(i int) string {
			return fmt.Sprintf("  - {name: r%d, match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {message: m, cel: {expressions: [{expression: object.metadata.name != 'a%[1]d'}]}}}\n", i)
		})),
		"many CEL rules with variables": rules(joined(500, "", func(i int) string {
			return fmt.Sprintf("  - {name: r%d, match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {message: m, cel: {variables: [{name: n, expression: object.metadata.name}], expressions: [{expression: variables.n != 'a%[1]d'}]}}}\n", i)
		})),
		"what a sum in a CEL rule is": rule("", "cel: {variables: ["+strings.TrimPrefix(strings.ReplaceAll(chain(31, "object.metadata.name", "V + V"), "\n  - ", ", "), ", ")+"], expressions: [{expression: variables.v30 == ''}]}"),
		"repetitions in a query":      denies("", "regex_match('"+repetitions+"', "+name+")"),
		"what replaces nothing":       denies("", name+strings.Repeat(" | replace_all(@, '', 'aaaaaaaaaa')", 6)),
		"alternatives of a query":     denies("", "request.object.data.x"+strings.Repeat(" | (@ || @)", 40)),
		"lists in lists of a query":   denies("", "request.object.data.x"+strings.Repeat(" | [@, @]", 32)),
		"flat lists of lists":         denies("", "request.object.data.x"+strings.Repeat(" | [*].[@, @][]", 40)),
		"variables of lists":          denies(entries(40, "request.object.data", `jmesPath: "[V, V]"`), "v39"),
		"variables of texts":          denies(entries(31, name, `value: "{{ V }}{{ V }}"`), "v30"),
		"any of many patterns":        rule("", "anyPattern: ["+joined(2000, ", ", func(i int) string { return fmt.Sprintf("{metadata: {labels: {a%d: '?*'}}}", i) })+"]"),
		"many rules": rules(joined(4000, "", func(i int) string {
			return fmt.Sprintf("  - {name: r%d, match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {message: m, pattern: {metadata: {labels: {a%[1]d: '?*'}}}}}\n", i)
		})),
	}
}

// writtenTooLarge are admission policies that somebody wrote so.
func writtenTooLarge() map[string]string {
	written := func(variables string, validations ...string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec:\n  matchConstraints:\n    resourceRules:\n" +
			"    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}\n  variables: " + variables +
			"\n  validations:\n" + joined(len(validations), "", func(i int) string { return "  - expression: " + strconv.Quote(validations[i]) + "\n" })
	}
	validations := make([]string, 5000)
	for i := range validations {
		validations[i] = fmt.Sprintf("object.metadata.name != 'a%d'", i)
	}
	repetitions := "object.metadata.name.matches('" + strings.Repeat("(a{1000})", 900) + "')"
	return map[string]string{
		"a list in each other's list": written("[]", "[1]"+strings.Repeat(".map(x, [x, x])", 200)+".size() > 0"),
		"a list in each variable's":   written(chain(200, "[1]", "[V].map(x, [x, x])"), "variables.v199.size() > 0"),
		"what a sum of variables is":  written(chain(31, "object.metadata.name", "V + V"), "variables.v30 == ''"),
		"many variables":              written(joined(5000, "", func(i int) string { return fmt.Sprintf("\n  - {name: v%d, expression: object.data.k%[1]d}", i) }), "true"),
		"many validations":            written("[]", validations...),
		"repetitions":                 written(chain(10, repetitions, repetitions), "variables.v9"),
	}
}

// No policy takes more than a bound from those who read it. Bytes stand for work: they do
// not depend on what else the machine does.
func TestTooLarge(t *testing.T) {
	const most = 100 << 20
	larger := map[string]uint64{"any of many patterns": 200 << 20} // 6,000 questions
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	object := write("object.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: abcdefghij, namespace: default}\ndata: {x: text}\n")
	cost := func(args ...string) (said string, made uint64) {
		var out bytes.Buffer
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run(append([]string{"kvap"}, args...), strings.NewReader(""), &out, &out)
		runtime.ReadMemStats(&after)
		return out.String(), after.TotalAlloc - before.TotalAlloc
	}
	verbs := func(file string) map[string][]string {
		return map[string][]string{"convert": {"convert", file}, "check": {"check", file}, "eval": {"eval", file, "--resource", object}}
	}
	base := map[string]uint64{}
	for range 2 { // what is made once is not counted
		small := write("small.yaml", "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {message: m, pattern: {data: {x: text}}}}]}\n")
		for verb, args := range verbs(small) {
			_, base[verb] = cost(args...)
		}
	}
	// What is simplified on the way, an error in any case, or has no native form, is not large in
	// the end.
	cheap := map[string]bool{"alternatives of a query": true, "flat lists of lists": true, "what replaces nothing": true}
	for name, text := range tooLarge() {
		for verb, args := range verbs(write("policy.yaml", text)) {
			said, made := cost(args...)
			if made > base[verb]+max(most, larger[name]) {
				t.Errorf("%s: %s makes %d MB", name, verb, made>>20)
			}
			if verb == "convert" && strings.Contains(said, "[KV217]") == cheap[name] {
				t.Errorf("%s: convert ends with %.300s", name, said)
			}
			if verb == "eval" && (!strings.Contains(said, "1 request: ") || strings.Contains(said, "not judged")) {
				t.Errorf("%s: eval judges nothing: %.300s", name, said)
			}
		}
	}
	for name, text := range writtenTooLarge() {
		said, made := cost("check", write("written.yaml", text))
		if made > base["check"]+most {
			t.Errorf("%s, written by hand: check makes %d MB", name, made>>20)
		}
		if !strings.Contains(said, "[KV217]") {
			t.Errorf("%s, written by hand: check ends with %.300s", name, said)
		}
	}
}
