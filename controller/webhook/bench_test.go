package webhook

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// BenchmarkValidate is the way of a request without its connection, by the policies
// of the measurement that `make bench-webhook` makes.
func BenchmarkValidate(b *testing.B) {
	text, err := os.ReadFile("../../test/benchwebhook/policies.yaml")
	if err != nil {
		b.Fatal(err)
	}
	f, ds := policy.Parse("policies.yaml", text)
	if ds.HasErrors() {
		b.Fatal(ds)
	}
	s := New(Options{World: &interp.Offline{Objects: []map[string]any{{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "kvap"},
		"data": map[string]any{"tiers": `["front"]`},
	}}}})
	s.Set(set(f.Policies))
	handler := s.Handler()
	body := creation(b, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","labels":{"team":"a","tier":"front"}},
		"spec":{"replicas":3,"template":{"metadata":{"labels":{"team":"a"}},"spec":{"securityContext":{"runAsNonRoot":true},"containers":[
		{"name":"web","image":"ghcr.io/acme/web:1","resources":{"limits":{"cpu":"1","memory":"1Gi"}},"livenessProbe":{"periodSeconds":10}},
		{"name":"two","image":"ghcr.io/acme/two:1","resources":{"limits":{"cpu":"1","memory":"1Gi"}},"livenessProbe":{"periodSeconds":10}}]}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/validate/fail", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"allowed":true`) {
			b.Fatal(w.Body)
		}
	}
}
