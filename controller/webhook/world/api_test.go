package world

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
)

// world is one whose API server answers as handle says.
func world(t *testing.T, o Options, handle http.HandlerFunc) *World {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	w, err := New(&rest.Config{Host: server.URL}, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestLawfulPaths(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/namespaces/shop/configmaps?limit=5&fieldSelector=metadata.name%3Dx": true,
		"/apis/apps/v1/deployments":                           true,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/a:b": true,
		"/api/v1/namespaces/proxy/pods/exec":                  true,
		"/version":                                            true,
		"/api/v1/namespaces/shop/../other/secrets":            false,
		"/api/v1/namespaces/shop/%2e%2e/other/secrets":        false,
		"/api/v1/namespaces/shop%2fx/secrets":                 false,
		"/api/v1/namespaces/shop/services/db/proxy/admin":     false,
		"/api/v1/nodes/a/proxy/metrics":                       false,
		"/api/v1/namespaces/shop/pods/a/exec?command=ls":      false,
		"/api/v1/proxy/namespaces/shop/services/db":           false,
		"/api/v1/watch/secrets":                               false,
		"//evil.example.com/api":                              false,
		"https://evil.example.com/":                           false,
		"/api/v1/pods\r\nX-Header: a":                         false,
		"/api/v1/pods#fragment":                               false,
		"":                                                    false,
	} {
		if err := lawful(path); (err == nil) != want {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestAPI(t *testing.T) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/configmaps":
			_, _ = w.Write([]byte(`{"method":"` + r.Method + `","query":"` + r.URL.RawQuery + `"}`))
		case "/api/v1/secrets":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","message":"secrets is forbidden"}`))
		case "/api/v1/pods":
			_, _ = w.Write([]byte(strings.Repeat("x", 200)))
		case "/api/v1/nodes":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
	w := world(t, Options{MaxBytes: 100, Live: true}, serve)
	answer, err := w.API(t.Context(), "/api/v1/configmaps?limit=1", nil)
	if err != nil || string(answer) != `{"method":"GET","query":"limit=1"}` {
		t.Errorf("%s %v", answer, err)
	}
	if answer, err := w.API(t.Context(), "/api/v1/configmaps", []byte("{}")); err != nil || !strings.Contains(string(answer), "POST") {
		t.Errorf("%s %v", answer, err)
	}
	for path, want := range map[string]string{"/api/v1/configmaps": "dryRun=All", "/api/v1/configmaps?a=b": "a=b&dryRun=All"} {
		if answer, err := w.API(DryRun(t.Context()), path, []byte("{}")); err != nil || !strings.Contains(string(answer), `"query":"`+want+`"`) {
			t.Errorf("for a dry run: %s %v", answer, err)
		}
	}
	if answer, err := w.API(DryRun(t.Context()), "/api/v1/configmaps", nil); err != nil || !strings.Contains(string(answer), `"query":""`) {
		t.Errorf("a GET: %s %v", answer, err)
	}
	for path, want := range map[string]string{
		"/api/v1/secrets":  "failed to GET resource with raw url: /api/v1/secrets: permission denied: secrets is forbidden",
		"/api/v1/pods":     "more than 100 bytes",
		"/api/v1/services": "Not Found",
	} {
		if _, err := w.API(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	hasty := world(t, Options{Timeout: 100 * time.Millisecond, Live: true}, serve)
	if _, err := hasty.API(t.Context(), "/api/v1/nodes", nil); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("what takes too long: %v", err)
	}
	if _, err := w.ConfigMap(t.Context(), "a/../b", "c"); err == nil {
		t.Error("a namespace with a slash is taken")
	}
}

// A list that was asked for once is answered from what is watched, in the form of the
// API server, and follows the cluster.
func TestWatchedAnswers(t *testing.T) {
	at := apiPath{resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, namespace: "shop"}
	one := widget("b", "red")
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{at.resource: "WidgetList"}, one, widget("a", "blue"))
	w := newWatches(client)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.begin(ctx)
	if _, ok := w.answer(at); ok {
		t.Error("an answer to what was never asked")
	}
	// Items of a live answer without kinds: neither have those that are watched.
	w.consider(at, []byte(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}]}`))
	got := awaitAnswer(t, w, at, func(l list) bool { return len(l.Items) == 2 })
	if got.Kind != "WidgetList" || got.Items[0].Metadata.Name != "a" || got.Items[0].Kind != "" || got.Items[1].Spec.Colour != "red" {
		t.Errorf("got %+v", got)
	}
	if err := client.Resource(at.resource).Namespace("shop").Delete(ctx, "a", deleteNow()); err != nil {
		t.Fatal(err)
	}
	awaitAnswer(t, w, at, func(l list) bool { return len(l.Items) == 1 })

	named := at
	named.name = "b"
	w.consider(named, []byte(`{"kind":"Widget","metadata":{"name":"b"}}`))
	awaitAnswer(t, w, named, func(l list) bool { return l.Kind == "Widget" })

	secret := apiPath{resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}
	w.consider(secret, []byte(`{"items":[{}]}`))
	large := apiPath{resource: at.resource, namespace: "large"}
	w.consider(large, []byte(`{"items":[{"a":"`+strings.Repeat("x", maxWatched)+`"}]}`))
	if len(w.all) != 2 {
		t.Errorf("%d places are watched", len(w.all))
	}
}

func widget(name, colour string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "namespace": "shop"},
		"spec": map[string]any{"colour": colour},
	}}
}

type list struct {
	Kind  string
	Items []struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct{ Colour string }
	}
}

func awaitAnswer(t *testing.T, w *watches, at apiPath, good func(list) bool) list {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if data, ok := w.answer(at); ok {
			var got list
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if good(got) {
				return got
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("not in time")
		}
	}
}

// A list that outgrows its bound is written once more and not for each request, and is
// no longer held.
func TestOutgrown(t *testing.T) {
	at := apiPath{resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, namespace: "shop"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{at.resource: "WidgetList"}, widget("a", "blue"))
	w := newWatches(client)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.begin(ctx)
	w.consider(at, []byte(`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[{"metadata":{"name":"a"}}]}`))
	awaitAnswer(t, w, at, func(l list) bool { return len(l.Items) == 1 })
	held := w.all[at]
	if _, err := client.Resource(at.resource).Namespace("shop").Create(ctx, widget("b", strings.Repeat("x", 2*maxWatched)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, ok := w.answer(at); !ok {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a list beyond the bound is answered")
		}
	}
	if len(w.all) > 0 {
		t.Error("the list is still held")
	}
	held.version++
	if _, ok := held.list(); ok || held.answer != nil && held.asOf == held.version {
		t.Error("it is written again")
	}
}

// A call is made neither all the time nor without an end, whatever its entry says.
func TestRhythm(t *testing.T) {
	for interval, want := range map[string]time.Duration{"1ms": time.Second, "0s": 10 * time.Minute, "-1s": 10 * time.Minute, "x": 10 * time.Minute, "30s": 30 * time.Second} {
		if got, tries := rhythm(map[string]any{"refreshInterval": interval, "retryLimit": int64(1 << 40)}); got != want || tries != mostTries {
			t.Errorf("%s: %v, %d", interval, got, tries)
		}
	}
}
