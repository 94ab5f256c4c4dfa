package interp_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A function that does not exist is known before anything is judged, in rules of any type.
func TestBroken(t *testing.T) {
	for body, want := range map[string]string{
		`validate: {message: m, deny: {conditions: {all: [{key: "{{ startWith(request.object.metadata.name, 'a') }}", operator: Equals, value: true}]}}}`: "there is no function startWith() (did you mean starts_with()?)",
		`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ to_uper(request.object.metadata.name) }}"}}}}`:                                         "there is no function to_uper() (did you mean to_upper()?)",
		`validate: {cel: {expressions: [{expression: "objct.metadata.name == 'x'"}]}}`:                                                                    "undeclared reference to 'objct'",
		`validate: {message: m, pattern: {metadata: {name: "{{ to_upper('a') }}"}}}`:                                                                      "",
	} {
		f, found := policy.Parse("p.yaml", []byte("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n"+
			"    - name: r\n      match: {any: [{resources: {kinds: [ConfigMap]}}]}\n      "+body+"\n"))
		if found.HasErrors() {
			t.Fatal(found)
		}
		err := interp.New(f.Policies, nil, nil, interp.Limits{}).Broken(t.Context())
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", body, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
