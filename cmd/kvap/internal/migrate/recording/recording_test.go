package recording

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/internal/cluster"
)

// record --remove says what it took away, and that there was nothing.
func TestRecordRemoveTells(t *testing.T) {
	for code, want := range map[int]string{http.StatusOK: "kvap-record was taken away", http.StatusNotFound: "there is no configuration kvap-record"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			reason := map[int]string{http.StatusNotFound: "NotFound"}[code]
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Status", "reason": "` + reason + `"}`))
		}))
		defer server.Close()
		var said strings.Builder
		r := New(&cluster.Connection{Config: &rest.Config{Host: server.URL}}, Options{Errs: &said})
		if err := r.TakeAway(t.Context()); err != nil || !strings.Contains(said.String(), want) {
			t.Errorf("%d: %v, %q; want %q", code, err, said.String(), want)
		}
	}
}
