package controller

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

const mutatingText = `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "m"}, "spec": {"rules": [{
  "name": "r", "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}, "mutate": {"patchStrategicMerge": {"data": {"a": "VALUE"}}}}]}}`

// What mutates is native where the cluster has a place for it and it may run twice, or nobody
// else runs it; and never in shadow.
func TestWhoMutates(t *testing.T) {
	const again = "b{{ request.object.data.a }}"
	for name, tt := range map[string]struct {
		value, mode string
		fallback    Fallback
		mutations   bool
		want        translate.Target
	}{
		"native":               {"b", v1alpha1.ModeEnforce, someFallback{}, true, translate.Native},
		"not served":           {"b", v1alpha1.ModeEnforce, someFallback{}, false, translate.Webhook},
		"in shadow":            {"b", v1alpha1.ModeShadow, someFallback{}, true, translate.Webhook},
		"not twice":            {again, v1alpha1.ModeEnforce, someFallback{}, true, translate.Webhook},
		"nobody else, so once": {again, v1alpha1.ModeEnforce, NoFallback{}, true, translate.Native},
	} {
		schemas, err := schema.Builtin("1.36")
		if err != nil {
			t.Fatal(err)
		}
		s := &policySource{mode: tt.mode, text: []byte(strings.Replace(mutatingText, "VALUE", tt.value, 1))}
		if s.policy, s.found = parsePolicy(s.ref, s.text); s.policy == nil {
			t.Fatal(s.found)
		}
		s.act(nil)
		c := &compiler{options: Options{Release: 36, Fallback: tt.fallback}, mutations: tt.mutations}
		result, err := c.compile(t.Context(), policyList{sources: []*policySource{s}}, schemas)
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Rules[0].Target; got != tt.want {
			t.Errorf("%s: %s: %v", name, got, result.Diagnostics)
		}
		compiled := &compileResult{result: result}
		natives, in := compiled.all(), 0
		for range compiled.of(result.Rules[0]) {
			in++
		}
		if (tt.want == translate.Native) != (len(natives) == 1 && mutates(natives[0].policy) && in == 1) {
			t.Errorf("%s: native are %v", name, natives)
		}
		if ok, err := mutationsOf(MutationsNative, tt.mutations, 36); ok != tt.mutations || (err == nil) != tt.mutations {
			t.Errorf("%s: mutations are native: %t, %v", name, ok, err)
		}
	}
	if ok, err := mutationsOf(MutationsAuto, true, 35); ok || err != nil {
		t.Errorf("for an older release mutations are native: %t, %v", ok, err)
	}
}

// someFallback is a webhook.
type someFallback struct{ NoFallback }
