package world

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/interp"
)

func deleteNow() metav1.DeleteOptions { return metav1.DeleteOptions{} }

func nothing(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }

// Services are asked where the list allows it, also behind a redirect.
func TestServices(t *testing.T) {
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) }))
	defer secret.Close()
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/open/go":
			http.Redirect(w, r, secret.URL, http.StatusFound)
		case "/open/large":
			_, _ = w.Write([]byte(strings.Repeat("x", 200)))
		case "/open/broken":
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte("a secret"))
		default:
			_, _ = w.Write([]byte(r.Method + " " + r.Header.Get("Authorization")))
		}
	}))
	defer service.Close()
	w := world(t, Options{Services: []string{service.URL + "/open"}, MaxBytes: 100}, nothing)
	bundle := pemOf(service)
	ask := func(path string) (string, error) {
		answer, err := w.Service(t.Context(), interp.ServiceCall{Method: "GET", URL: path, CABundle: bundle, Headers: map[string]string{"Authorization": "me"}})
		if err != nil {
			return "", err
		}
		body, err := answer.Success()
		return string(body), err
	}
	if got, err := ask(service.URL + "/open/door?x=1"); err != nil || got != "GET me" {
		t.Errorf("%q %v", got, err)
	}
	for path, want := range map[string]string{
		service.URL + "/closed":             "is not allowed",
		service.URL + "/opener":             "is not allowed",
		service.URL + "/open/../closed":     "is not allowed",
		service.URL + "/open/%2e%2e/closed": "is not allowed",
		secret.URL:                          "is not allowed",
		"https://me@" + strings.TrimPrefix(service.URL, "https://") + "/open": "is not allowed",
		"file:///etc/passwd":         "is not allowed",
		service.URL + "/open/go":     "redirects",
		service.URL + "/open/large":  "more than 100 bytes",
		service.URL + "/open/broken": "HTTP 418",
	} {
		if got, err := ask(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "a secret") {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	if _, err := w.Service(t.Context(), interp.ServiceCall{Method: "GET", URL: service.URL + "/open", CABundle: "rubbish"}); err == nil {
		t.Error("a bundle of rubbish is taken")
	}
	if _, err := world(t, Options{}, nothing).Service(t.Context(), interp.ServiceCall{Method: "GET", URL: service.URL}); err == nil {
		t.Error("without a list a service is asked")
	}
}

// Data of images are fetched from no address of this machine or its link, wherever a name or a
// redirect leads, unless that is allowed.
func TestImagesOfThisMachine(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	w := world(t, Options{Registries: []string{"*"}, Timeout: 2 * time.Second}, nothing)
	for _, reference := range []string{host + "/app:v1", "localhost" + host[strings.LastIndexByte(host, ':'):] + "/app:v1", "169.254.169.254/app:v1", "[::1]:6443/app:v1"} {
		for _, insecure := range []bool{false, true} {
			_, err := w.Image(t.Context(), reference, interp.Access{Credentials: map[string]any{"allowInsecureRegistry": insecure}})
			if err == nil || !strings.Contains(err.Error(), "of this machine or its link") {
				t.Errorf("%s: %v", reference, err)
			}
		}
	}
	if asked > 0 {
		t.Errorf("asked %d times", asked)
	}
}

// The data of an image come from a registry that the list allows.
func TestImages(t *testing.T) {
	asked := 0
	handler := registry.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	reference := host + "/team/app:v1"
	push(t, reference, "1001")
	w := world(t, Options{Registries: []string{host + "/team"}, LocalRegistries: true}, nothing)
	got, err := w.Image(t.Context(), reference, interp.Access{})
	if err != nil {
		t.Fatal(err)
	}
	config := got["configData"].(map[string]any)["config"].(map[string]any)
	if config["User"] != "1001" || got["registry"] != host || got["repository"] != "team/app" || got["identifier"] != "v1" ||
		!strings.HasPrefix(got["resolvedImage"].(string), host+"/team/app@sha256:") || got["manifest"] == nil {
		t.Errorf("got %v", got)
	}
	before := asked
	if _, err := w.Image(t.Context(), reference, interp.Access{}); err != nil || asked != before {
		t.Errorf("asked again %d times: %v", asked-before, err)
	}
	for reference, want := range map[string]string{
		host + "/other/app:v1":   "not allowed",
		host + "/teamwork:v1":    "not allowed",
		"nginx":                  "not allowed",
		host + "/team/lacks:v1":  "failed to fetch image reference",
		"https://" + host + "/x": "failed to parse image reference",
	} {
		if _, err := w.Image(t.Context(), reference, interp.Access{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", reference, err)
		}
	}
	if _, err := w.Image(t.Context(), host+"/team/app:v1", interp.Access{Credentials: map[string]any{"secrets": []any{"pull"}}}); err == nil {
		t.Error("a pull secret that is not available is passed over")
	}
}

func push(t *testing.T, reference, user string) {
	t.Helper()
	image := empty.Image
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.User = user
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
}

func TestMayAsk(t *testing.T) {
	for _, test := range []struct {
		entry, reference string
		want             bool
	}{
		{"docker.io", "nginx", true}, {"docker.io/library", "nginx", true}, {"docker.io/team", "nginx", false},
		{"*", "ghcr.io/a/b", true}, {"*.example.com", "eu.example.com/a", true}, {"*.example.com", "example.com/a", false},
		{"ghcr.io/team/", "ghcr.io/team/a/b:v1", true}, {"ghcr.io/team", "ghcr.io/teams/a", false},
	} {
		ref, err := name.ParseReference(test.reference)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&World{options: Options{Registries: []string{test.entry}}}).mayAsk(ref); got != test.want {
			t.Errorf("%s, %s: %v", test.entry, test.reference, got)
		}
	}
}

func TestPullSecrets(t *testing.T) {
	secret, err := readSecret(map[string]any{"data": map[string]any{
		// {"auths":{"https://index.docker.io/v1/":{"username":"me","password":"you"}}}
		".dockerconfigjson": "eyJhdXRocyI6eyJodHRwczovL2luZGV4LmRvY2tlci5pby92MS8iOnsidXNlcm5hbWUiOiJtZSIsInBhc3N3b3JkIjoieW91In19fQ==",
	}})
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := name.ParseReference("nginx")
	auth, err := secret.Resolve(ref.Context())
	if err != nil {
		t.Fatal(err)
	}
	if config, err := auth.Authorization(); err != nil || config.Username != "me" || config.Password != "you" {
		t.Errorf("%+v %v", config, err)
	}
}

// Roles are found by user, group and service account; a cluster role that is bound in
// a namespace counts there.
func TestRoles(t *testing.T) {
	binding := func(namespace, kind, role string, subject rbacv1.Subject) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role + subject.Name}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{Kind: kind, Name: role},
		}
	}
	b := newBindings(fake.NewClientset(
		binding("shop", "Role", "seller", rbacv1.Subject{Kind: "User", Name: "alice"}),
		binding("shop", "ClusterRole", "view", rbacv1.Subject{Kind: "Group", Name: "dev"}),
		binding("other", "ClusterRole", "edit", rbacv1.Subject{Kind: "Group", Name: "dev"}),
		binding("other", "Role", "robot", rbacv1.Subject{Kind: "ServiceAccount", Name: "bot", Namespace: "ci"}),
		binding("ci", "Role", "local", rbacv1.Subject{Kind: "ServiceAccount", Name: "bot"}),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"},
		},
	))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.start(ctx)
	b.factory.WaitForCacheSync(ctx.Done())
	for _, test := range []struct {
		user, namespace     string
		groups              []string
		roles, clusterRoles string
	}{
		{"alice", "shop", []string{"dev"}, "shop:seller", "admin view"},
		{"alice", "", nil, "shop:seller", "admin"},
		{"bob", "other", []string{"dev"}, "", "edit"},
		{"system:serviceaccount:ci:bot", "ci", nil, "ci:local other:robot", ""},
		{"system:serviceaccount:x:bot", "ci", nil, "", ""},
		{"bot", "ci", nil, "", ""},
	} {
		roles, clusterRoles := b.of(test.user, test.groups, test.namespace)
		if strings.Join(roles, " ") != test.roles || strings.Join(clusterRoles, " ") != test.clusterRoles {
			t.Errorf("%s in %s: %v %v", test.user, test.namespace, roles, clusterRoles)
		}
	}
}

// Entries of the global context follow the cluster: objects as a list, calls as they
// are answered, projections of both.
func TestGlobals(t *testing.T) {
	entries := schema.GroupVersionResource{Group: "kyverno.io", Version: "v2beta1", Resource: "globalcontextentries"}
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	entry := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kyverno.io/v2beta1", "kind": "GlobalContextEntry", "metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{entries: "GlobalContextEntryList", widgets: "WidgetList"},
		widget("a", "blue"),
		entry("widgets", map[string]any{
			"kubernetesResource": map[string]any{"group": "example.com", "version": "v1", "resource": "widgets"},
			"projections":        []any{map[string]any{"name": "names", "jmesPath": "[].metadata.name"}},
		}),
		entry("version", map[string]any{"apiCall": map[string]any{"urlPath": "/version"}}),
		entry("broken", map[string]any{"apiCall": map[string]any{"urlPath": "/lacks"}}),
	)
	w := world(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"minor":"36"}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	w.watches = newWatches(client)
	w.served.current.Store(&registration.Table{{Group: "kyverno.io", Version: "v2beta1", Kind: "GlobalContextEntry", Plural: "globalcontextentries"}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.globals.run(ctx)
	awaitGlobal(t, w, "widgets.names", func(v any) bool { return len(v.([]any)) == 1 })
	awaitGlobal(t, w, "widgets", func(v any) bool { return v.([]any)[0].(map[string]any)["kind"] == "Widget" })
	awaitGlobal(t, w, "version", func(v any) bool { return v.(map[string]any)["minor"] == "36" })
	if _, err := client.Resource(widgets).Namespace("shop").Create(ctx, widget("b", "red"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGlobal(t, w, "widgets.names", func(v any) bool { return len(v.([]any)) == 2 })
	for _, name := range []string{"lacks", "widgets.lacks", "broken"} {
		if v, err := w.Global(ctx, name); err == nil || errors.Is(err, interp.ErrNotFound) != (name == "lacks") {
			t.Errorf("%s: %v %v", name, v, err)
		}
	}
	if err := client.Resource(entries).Delete(ctx, "version", deleteNow()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := w.Global(ctx, "version"); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("an entry that is gone is still there")
		}
	}
}

func awaitGlobal(t *testing.T, w *World, name string, good func(any) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		v, err := w.Global(t.Context(), name)
		if err == nil && good(v) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v %v", name, v, err)
		}
	}
}

// The pull secrets of a policy of a namespace are there, and nowhere else.
func TestPullSecretsOfANamespace(t *testing.T) {
	var asked []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer api.Close()
	w, err := New(&rest.Config{Host: api.URL}, Options{RegistrySecrets: "kvap"})
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]any{"secrets": []any{"pull"}}
	for namespace, want := range map[string]string{"": "/api/v1/namespaces/kvap/secrets/pull", "team": "/api/v1/namespaces/team/secrets/pull"} {
		asked = nil
		if _, _, err := w.keychain(t.Context(), interp.Access{Credentials: wanted, Namespace: namespace}); err == nil || !slices.Contains(asked, want) || len(asked) != 1 {
			t.Errorf("%q: %v, asked %v", namespace, err, asked)
		}
	}
}
