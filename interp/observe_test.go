package interp

import (
	"context"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
)

func TestObserved(t *testing.T) {
	file, found := policy.Parse("p.yaml", []byte(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    preconditions:
      all:
      - {key: "{{ request.operation }}", operator: Equals, value: CREATE}
    validate:
      pattern: {data: {(a): x, b: z}}
  - name: s
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {deny: {}}
`))
	if found.HasErrors() {
		t.Fatal(found)
	}
	request, err := ParseAdmission([]byte(`{"operation": "CREATE", "kind": {"version": "v1", "kind": "ConfigMap"},
		"object": {"metadata": {"name": "m"}, "data": {"a": "x", "b": "y"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	ctx := Observed(context.Background(), func(o Observation) {
		switch {
		case o.Rule != "":
			got = append(got, "rule "+o.Rule+map[bool]string{true: " applies", false: " does not apply"}[o.Holds])
		case o.Path != "":
			got = append(got, o.Path+map[bool]string{true: " holds", false: " fails"}[o.Holds])
		default:
			got = append(got, o.Pos.Path+map[bool]string{true: " holds", false: " fails"}[o.Holds])
		}
	})
	New(file.Policies, nil, &Offline{}, Limits{}).Judge(ctx, &Request{Admission: request})
	want := []string{"rule r applies", "spec.rules[0].preconditions.all[0] holds", "/data/(a)/ holds", "/data/b/ fails", "/data/ fails", "rule s does not apply"}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("observations (-want +got):\n%s", d)
	}
}
