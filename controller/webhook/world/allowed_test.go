package world

import (
	"testing"

	"k8s.io/client-go/rest"
)

// Whether some image of a pattern may be asked for is known without an image.
func TestMayAskAny(t *testing.T) {
	for _, tt := range []struct {
		pattern    string
		registries []string
		want       bool
	}{
		{"*", nil, false},
		{"*", []string{"ghcr.io"}, true},
		{"ghcr.io/*", []string{"ghcr.io"}, true},
		{"ghcr.io/*", []string{"ghcr.io/team"}, true},
		{"ghcr.io/team/app:*", []string{"ghcr.io/team"}, true},
		{"ghcr.io/other/*", []string{"ghcr.io/team"}, false},
		{"ghcr.io/*", []string{"quay.io"}, false},
		{"ghcr.io/*", []string{"*"}, true},
		{"a.registry.io/*", []string{"*.registry.io"}, true},
		{"registry.io/*", []string{"*.registry.io"}, false},
		{"localhost:5000/*", []string{"localhost:5000"}, true},
		{"library/nginx*", []string{"docker.io"}, true},
		{"library/nginx*", []string{"ghcr.io"}, false},
		{"nginx", []string{"docker.io"}, true},
		{"nginx", []string{"ghcr.io"}, false},
		{"ghcr.io/team/app:v?", []string{"ghcr.io/team/app"}, true},
	} {
		w, err := New(&rest.Config{Host: "https://127.0.0.1:1"}, Options{Registries: tt.registries})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.MayAskAny(tt.pattern); got != tt.want {
			t.Errorf("%s with %v: %t", tt.pattern, tt.registries, got)
		}
	}
}
