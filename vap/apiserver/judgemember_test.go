package apiserver

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/vap"
)

func TestMembers(t *testing.T) {
	translation := vap.Translation{
		Members:     make([]vap.TranslatedMember, 2),
		Validations: []vap.TranslatedExpression{{Member: 0}, {Member: 1}, {Member: 0}},
	}
	outcomes := func(v Verdict) (out []Outcome) {
		for _, r := range v.Members(translation) {
			out = append(out, r.Outcome)
		}
		return out
	}
	for _, tt := range []struct {
		v    Verdict
		want []Outcome
	}{
		{Verdict{Outcome: NoMatch}, []Outcome{NoMatch, NoMatch}},
		{Verdict{Outcome: Error}, []Outcome{Error, Error}},
		{Verdict{Outcome: Deny, Results: []Result{{0, "", Allow, "", ""}, {1, "", Error, "", ""}, {2, "", Deny, "", ""}}}, []Outcome{Deny, Error}},
	} {
		if d := textdiff.Values(tt.want, outcomes(tt.v)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ name, kind, in, want string }{
		{"quantities", "Pod",
			`{"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":"1024Mi","cpu":0.5}}}]}}`,
			`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"500m","memory":"1Gi"}}}]}}`},
		{"nothing is added", "Pod",
			`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}`},
		{"what the source has stays", "Pod",
			`{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}}`},
		{"unknown and empty fields go", "ConfigMap",
			`{"metadata":{"name":"a","labels":{}},"data":{},"x":1}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`},
		{"options are as they are in Go", "PodExecOptions",
			`{"container":"c","stdin":false}`,
			`{"apiVersion":"v1","command":null,"container":"c","kind":"PodExecOptions"}`},
		{"a kind that is not built in", "Widget", `{"x":{},"y":1.5}`, `{"x":{},"y":1.5}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var in map[string]any
			if err := json.Unmarshal([]byte(tt.in), &in); err != nil {
				t.Fatal(err)
			}
			out, err := Canonical(in, schema.GroupVersionKind{Version: "v1", Kind: tt.kind})
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("\ngot  %s\nwant %s", got, tt.want)
			}
		})
	}
	if _, err := Canonical(map[string]any{"spec": "x"}, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}); err == nil {
		t.Error("a spec that is no object: no error")
	}
}
