package cluster

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// served is an API server with the groups of kvap and of metrics, that says nothing of
// one of them.
func served(t *testing.T, silent string) *httptest.Server {
	mux := http.NewServeMux()
	say := func(path string, what any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(what)
		})
	}
	say("/version", map[string]string{"major": "1", "minor": "36"})
	say("/api", metav1.APIVersions{})
	groups := metav1.APIGroupList{}
	for _, name := range []string{"kyverno.io", "metrics.k8s.io"} {
		version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
		groups.Groups = append(groups.Groups, metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		if name == silent {
			mux.HandleFunc("/apis/"+name+"/v1", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
			continue
		}
		say("/apis/"+name+"/v1", metav1.APIResourceList{GroupVersion: name + "/v1", APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing"}}})
	}
	say("/apis", groups)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// An API server that does not say what it serves of a group of policies is not taken for
// one without them. What others serve is not asked about.
func TestGroupOfWhichNothingIsSaid(t *testing.T) {
	for silent, want := range map[string]string{"": "", "metrics.k8s.io": "", "kyverno.io": "kyverno.io/v1"} {
		c, err := Connect(&rest.Config{Host: served(t, silent).URL}, "default")
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("silent of %q: %v", silent, err)
		}
		if err != nil {
			continue
		}
		if _, ok := c.Serves("kyverno.io", "Thing", "v1"); !ok {
			t.Errorf("silent of %q: the kind is not served", silent)
		}
	}
}
