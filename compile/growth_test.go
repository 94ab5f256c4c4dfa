package compile_test

import (
	"fmt"
	"runtime"
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

// What a document costs does not depend on how many there are. Allocations stand for
// work: they do not depend on what else the machine does.
func TestLinearGrowth(t *testing.T) {
	for _, pack := range []translate.Pack{translate.PackPolicy, translate.PackMatch} {
		o := options(t)
		o.Translate.Pack = pack
		work := func(n int) float64 {
			in := read(t, documents(n))
			return testing.AllocsPerRun(1, func() { compile.Policies(in, o) })
		}
		few, many := work(40), work(160)
		if many > 4.6*few {
			t.Errorf("%s: 40 documents take %.0f allocations, and four times as many %.1f times that", pack, few, many/few)
		}
	}
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
