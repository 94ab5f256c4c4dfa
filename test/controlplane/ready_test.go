//go:build e2e

package controlplane

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// kube-controller-manager ends by itself where the API server is not healthy within
// ten seconds, and a busy one makes its roles after it has let requests through.
func TestServingMeansHealthy(t *testing.T) {
	health := http.StatusInternalServerError
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/healthz":
			w.WriteHeader(health)
		default:
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any"}}`))
		}
	}))
	defer server.Close()
	c := &ControlPlane{dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(c.certificate()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.certificate(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	admin := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if err := c.serving(t.Context(), admin); err == nil {
		t.Error("a server that is not healthy is taken for one that serves")
	}
	health = http.StatusOK
	if err := c.serving(t.Context(), admin); err != nil {
		t.Error(err)
	}
}
