package world

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/test/testregistry"
)

// serveSecrets is an API server with pull secrets: by namespace/name, user:password by host.
func serveSecrets(secrets map[string]map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		namespace, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/secrets/")
		hosts, found := secrets[namespace+"/"+name]
		if !found {
			http.NotFound(w, r)
			return
		}
		auths := map[string]any{}
		for host, pair := range hosts {
			auths[host] = map[string]any{"auth": base64.StdEncoding.EncodeToString([]byte(pair))}
		}
		config, _ := json.Marshal(map[string]any{"auths": auths})
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Secret", "data": map[string]any{".dockerconfigjson": config}})
	}
}

// asksForCredentials makes a registry answer only those who have some; seen are those that it saw
// since the last time.
func asksForCredentials(r *testregistry.Registry) (seen func() []string) {
	var mu sync.Mutex
	var all []string
	r.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		user, password, ok := q.BasicAuth()
		if !ok {
			w.Header().Set("WWW-Authenticate", "Basic realm=x")
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		if pair := user + ":" + password; !slices.Contains(all, pair) {
			all = append(all, pair)
		}
		return false
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := all
		all = nil
		return out
	}
}

// What the API server says of a Pod's secret, and what becomes of the question.
func TestPodSecrets(t *testing.T) {
	status, body, asked := 200, "", []string(nil)
	w := world(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	ask := func(names ...string) (missing, err error) {
		_, missing, err = w.keychain(t.Context(), interp.Access{PodSecrets: names, PodNamespace: "team"})
		return missing, err
	}
	for _, tt := range []struct {
		status           int
		body             string
		missing, unknown bool
	}{
		{200, `{"data": {".dockerconfigjson": "e30="}}`, false, false},
		{200, `{"data": {".dockercfg": "e30="}}`, false, false},
		{200, `{"data": {".dockerconfigjson": "eA=="}}`, true, false},
		{200, `{"data": {".dockercfg": "eA=="}}`, true, false},
		{200, `{"data": {}}`, true, false},
		{200, `x`, true, false},
		{401, ``, true, false},
		{403, ``, true, false},
		{404, ``, true, false},
		{429, ``, false, true},
		{500, ``, false, true},
		{503, ``, false, true},
	} {
		status, body = tt.status, tt.body
		missing, err := ask("pull")
		if (missing != nil) != tt.missing || errors.Is(err, images.ErrUnreachable) != tt.unknown || err != nil && !tt.unknown {
			t.Errorf("%d %s: %v, %v", tt.status, tt.body, missing, err)
		}
	}
	if slices.ContainsFunc(asked, func(one string) bool { return one != "GET /api/v1/namespaces/team/secrets/pull" }) {
		t.Errorf("asked %v", asked)
	}
	status, asked = 404, nil
	for _, name := range []string{"../other", "a/b", "a%2fb", "a?b", ".."} {
		if missing, err := ask(name); missing == nil || err != nil {
			t.Errorf("%s: %v, %v", name, missing, err)
		}
	}
	for _, one := range asked {
		if !strings.HasPrefix(one, "GET /api/v1/namespaces/team/secrets/a%3Fb") {
			t.Errorf("asked %s", one)
		}
	}
	if _, err := ask(strings.Fields(strings.Repeat("a ", 11))...); !errors.Is(err, interp.ErrRefused) {
		t.Errorf("too many: %v", err)
	}
}

// Of several credentials for a registry those of the longest path count.
func TestPullSecretsByPath(t *testing.T) {
	secret, err := readSecret(map[string]any{"data": map[string]any{".dockerconfigjson": []byte(`{"auths": {
		"reg.test": {"username": "all"}, "https://reg.test/team/": {"username": "team"}, "reg.test/team/app": {"username": "app"}, "other.test/team/app/x": {"username": "other"}}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]string{
		"reg.test/x": "all", "reg.test/teams/x": "all", "reg.test/team/x": "team", "reg.test/team/app": "app", "reg.test/team/app/x": "app", "reg.test/team/apps": "team",
		"other.test/team/app/x": "other", "other.test/team/app": "", "evil.test/team/app": "", "reg.test:5000/team/app": "",
	} {
		ref, err := name.ParseReference(image)
		if err != nil {
			t.Fatal(err)
		}
		auth, err := secret.Resolve(ref.Context())
		if err != nil {
			t.Fatal(err)
		}
		if config, err := auth.Authorization(); err != nil || config.Username != want {
			t.Errorf("%s: %+v %v", image, config, err)
		}
	}
}
