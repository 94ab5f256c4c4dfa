package compile_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/translate"
)

// documents are n policies of the simple kinds that most are of, each with words of
// its own.
func documents(n int) string {
	rules := []string{
		`pattern: {metadata: {labels: {"app%[1]d": "?*"}}}`,
		`pattern: {spec: {containers: [{image: "!*:latest%[1]d"}]}}`,
		`pattern: {spec: {containers: [{image: "registry%[1]d.example.com/*"}]}}`,
		`pattern: {spec: {"=(hostNetwork)": false, "=(priority)": "<%[1]d"}}`,
		`deny: {conditions: {any: [{key: "{{ request.object.metadata.labels.team || '' }}", operator: Equals, value: team%[1]d}]}}`,
	}
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p%d}\nspec:\n  rules:\n  - name: r\n"+
			"    match: {any: [{resources: {kinds: [Pod]}}]}\n    validate:\n      message: of %[1]d\n      "+rules[i%len(rules)]+"\n", i)
	}
	return b.String()
}

// What a document costs does not depend on how many there are, but for the halves of what is too
// much for one object. Allocations stand for work: they do not depend on what else the machine does.
func TestLinearGrowth(t *testing.T) {
	for _, pack := range []translate.Pack{translate.PackPolicy, translate.PackMatch} {
		o := options(t)
		o.Translate.Pack = pack
		work := func(n int) float64 {
			in := read(t, documents(n))
			return testing.AllocsPerRun(1, func() { compile.Policies(in, o) })
		}
		few, many := work(40), work(160)
		if many > 4.8*few {
			t.Errorf("%s: 40 documents take %.0f allocations, and four times as many %.1f times that", pack, few, many/few)
		}
	}
}

// allocated is how many bytes a function allocates, those that are free again too.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// What a variable costs does not depend on how many there are.
func TestVariablesGrowLinearly(t *testing.T) {
	for kind, write := range map[string]func(n int) string{
		"context": func(n int) string {
			return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - name: r\n    match: {any: [{resources: {kinds: [ConfigMap]}}]}\n    " +
				"validate: {deny: {conditions: {all: [{key: \"{{ v0 }}\", operator: Equals, value: b}]}}}\n    context:\n" +
				times(n, "\n", func(i int) string { return fmt.Sprintf("    - {name: v%d, variable: {value: a%[1]d}}", i) })
		},
		"ValidatingPolicy": func(n int) string {
			return validating(times(n, "\n", func(i int) string { return fmt.Sprintf("  - {name: v%d, expression: object.data.k%[1]d}", i) }), "variables.v0 == 'b'")
		},
	} {
		o := options(t)
		work := func(n int) int64 {
			in := read(t, write(n))
			return allocated(func() { compile.Policies(in, o) })
		}
		work(1) // what is made once
		few, many := work(200), work(800)
		if many > 5*few {
			t.Errorf("%s: 200 variables take %d kB, and four times as many %.1f times that", kind, few>>10, float64(many)/float64(few))
		}
	}
}

// validating is a ValidatingPolicy.
func validating(variables, validation string) string {
	return "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  matchConstraints:\n    resourceRules:\n" +
		"    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}\n  variables:\n" + variables +
		"\n  validations:\n  - expression: " + strconv.Quote(validation) + "\n"
}

// What is kept of a policy until all are written is a multiple of its objects, and not
// the trees for each kind of controller, which say the same.
func TestKeptOfADocument(t *testing.T) {
	const n = 200
	o := options(t)
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	compile.Policies(read(t, documents(n)), o) // what is made once
	in := read(t, documents(n))
	before := inUse()
	result := compile.Policies(in, o)
	if kept := (inUse() - before) / n; kept > 68<<10 {
		t.Errorf("%d bytes are kept of each document", kept)
	}
	runtime.KeepAlive(result)
}

// BenchmarkGrowth compiles a thousand documents, and five thousand.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range []int{1_000, 5_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in, o := read(b, documents(n)), options(b)
			b.ReportAllocs()
			for b.Loop() {
				compile.Policies(in, o)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/document")
		})
	}
}
