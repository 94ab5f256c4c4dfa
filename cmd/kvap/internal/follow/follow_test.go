package follow

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

var update = flag.Bool("update", false, "rewrite what docs/core.md shows")

const page = "../../../../docs/core.md"

// The examples of docs/core.md come out as the page says.
func TestPageShowsWhatIsPrinted(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown := string(data)
	for _, name := range []string{"pattern", "condition"} {
		source := between(t, shown, "<!-- source of the "+name+" -->\n```yaml\n", "```\n")
		var out bytes.Buffer
		_, found, err := Rules(&out, name+".yaml", []byte(source))
		if err != nil || found.HasErrors() {
			t.Fatal(err, found)
		}
		steps, _, _ := strings.Cut(out.String(), "  rule r, of pods/ephemeralcontainers")
		before := between(t, shown, "<!-- steps of the "+name+" -->\n```text\n", "```\n")
		switch {
		case before == steps:
		case *update:
			shown = strings.Replace(shown, "```text\n"+before, "```text\n"+steps, 1)
		default:
			t.Errorf("docs/core.md shows other steps of the %s; go test ./internal/follow -update rewrites them:\n%s", name, steps)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(shown), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// To follow a policy changes nothing of what becomes of it.
func TestFollowingChangesNothing(t *testing.T) {
	types, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fixtures.All() {
		became := func(trace func(translate.Step)) string {
			file, found := policy.Parse("policy.yaml", f.Policy)
			done := compile.Policies(compile.Input{Policies: file.Policies, Exceptions: file.Exceptions, Found: found}, compile.Options{
				Translate: translate.Options{Release: cel.Default, Schemas: types, Mutations: true, Trace: trace},
			})
			var objects []any
			for _, o := range done.Objects {
				objects = append(objects, o.All()...)
			}
			for _, o := range done.Mutating {
				objects = append(objects, o.All()...)
			}
			text, err := vap.Marshal(objects...)
			if err != nil {
				t.Fatal(err)
			}
			return string(text) + fmt.Sprint(done.Diagnostics)
		}
		var steps atomic.Int64
		if d := textdiff.Diff(became(nil), became(func(translate.Step) { steps.Add(1) })); d != "" {
			t.Errorf("%s (-alone +followed, %d steps):\n%s", f.Name, steps.Load(), d)
		}
	}
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	out, _, closed := strings.Cut(rest, to)
	if !ok || !closed {
		t.Fatalf("docs/core.md has no %q", from)
	}
	return out
}

// Every rule of a file is followed, also those that the webhook judges, up to where they are
// refused, and a step that is taken again is told once.
func TestRules(t *testing.T) {
	var out bytes.Buffer
	_, found, err := Rules(&out, "p.yaml", []byte(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: first
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
    validate: {message: m, foreach: [{list: "request.object.data.*", deny: {conditions: {any: [{key: "{{ element }}", operator: Equals, value: bad}]}}}]}
  - name: second
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
    validate: {message: m, deny: {conditions: {any: [{key: "{{ random('a') }}", operator: Equals, value: bad}]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Error("nothing says that the second rule has no native form")
	}
	text := out.String()
	for _, want := range []string{
		"  rule first, of configmaps on CREATE\n", "line 8, list\n        each value of the map object.data where has(object.data) (null else)\n",
		"line 8, key Equals value\n", "line 8, the rule holds where\n",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%d times %q in\n%s", strings.Count(text, want), want, text)
		}
	}
}
