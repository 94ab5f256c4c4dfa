package vap

import (
	"encoding/json"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

func TestSelectorAnd(t *testing.T) {
	s := Selector{Labels: []Label{{"a", "1"}}, Expressions: []Requirement{{"k", "NotIn", []string{"x"}}}}
	got := s.And(Selector{Labels: []Label{{"a", "1"}, {"a", "2"}}, Expressions: []Requirement{{"k", "NotIn", []string{"x", "y"}}, {"k", "Exists", nil}}}).object()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"matchLabels":{"a":"1"},"matchExpressions":[{"key":"a","operator":"In","values":["2"]},{"key":"k","operator":"NotIn","values":["x","y"]},{"key":"k","operator":"Exists"}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestExcludedNamespaces(t *testing.T) {
	for _, tt := range []struct {
		name    string
		have    Selector
		exclude []string
		want    []string // of the NotIn
	}{
		{"default", Selector{}, nil, []string{"kube-system", "kube-public", "kube-node-lease"}},
		{"none", Selector{}, []string{}, nil},
		{"own", Selector{}, []string{"a"}, []string{"a"}},
		{"another namespace only", Selector{Labels: []Label{{namespaceName, "app"}}}, nil, nil},
		{"an excluded namespace only", Selector{Labels: []Label{{namespaceName, "kube-system"}}}, nil, []string{"kube-system"}},
		{"among several", Selector{Expressions: []Requirement{{namespaceName, "In", []string{"app", "kube-public"}}}}, nil, []string{"kube-public"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := teamDraft()
			d.Bindings[0].NamespaceSelector = tt.have
			m := emit(t, d, EmitOptions{ExcludeNamespaces: tt.exclude}).Bindings[0].Spec.MatchResources
			var got []string
			if m != nil {
				for _, r := range m.NamespaceSelector.MatchExpressions {
					if r.Operator == "NotIn" {
						got = r.Values
					}
				}
			}
			if d := textdiff.Values(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
