package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/interp"
)

// What is written of a policy is looked at where it says something new, and by others than the
// program itself.
func TestPolicies(t *testing.T) {
	looked := 0
	s := New(Options{
		World: &interp.Offline{}, User: "system:serviceaccount:kvap-system:kvap",
		Policies: func(_ context.Context, object, before map[string]any) (refusals, warnings []string) {
			looked++
			if name := object["metadata"].(map[string]any)["name"]; name == "bad" {
				return slices.Repeat([]string{"it is bad"}, maxRefusals+2), []string{"it is late"}
			}
			return nil, []string{"it is late"}
		},
	})
	policy := func(name string, spec map[string]any, more map[string]any) map[string]any {
		meta := map[string]any{"name": name}
		for k, v := range more {
			meta[k] = v
		}
		return map[string]any{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": meta, "spec": spec}
	}
	one, two := map[string]any{"background": true}, map[string]any{"background": false}
	for _, c := range []struct {
		what, operation, user string
		object, old           map[string]any
		looks, allowed        bool
	}{
		{"a good one", "CREATE", "alice", policy("good", one, nil), nil, true, true},
		{"a bad one", "CREATE", "alice", policy("bad", one, nil), nil, true, false},
		{"a bad one of the program", "CREATE", "system:serviceaccount:kvap-system:kvap", policy("bad", one, nil), nil, false, true},
		{"an update", "UPDATE", "alice", policy("bad", two, nil), policy("bad", one, nil), true, false},
		{"a label", "UPDATE", "alice", policy("bad", one, map[string]any{"labels": map[string]any{"a": "b"}}), policy("bad", one, nil), false, true},
		{"what goes", "UPDATE", "alice", policy("bad", two, map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}), policy("bad", one, nil), false, true},
		{"a deletion", "DELETE", "alice", nil, policy("bad", one, nil), false, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			looked = 0
			response := askAboutPolicy(t, s, map[string]any{
				"uid": "1", "operation": c.operation, "kind": map[string]any{"group": "kyverno.io", "version": "v1", "kind": "ClusterPolicy"},
				"userInfo": map[string]any{"username": c.user}, "object": c.object, "oldObject": c.old,
			})
			if response.Allowed != c.allowed || (looked == 1) != c.looks {
				t.Errorf("allowed %v, looked at %d times: %+v", response.Allowed, looked, response)
			}
			if c.looks && !slices.Equal(response.Warnings, []string{"it is late"}) {
				t.Errorf("the warnings are %q", response.Warnings)
			}
			if !c.allowed && (response.Result == nil || response.Result.Code != http.StatusBadRequest || !strings.HasSuffix(response.Result.Message, "it is bad\nand 2 more")) {
				t.Errorf("the result is %+v", response.Result)
			}
		})
	}
}

// Where nobody looks at policies, and for what is no review, the answer is an error: the API
// server goes on.
func TestPoliciesUnasked(t *testing.T) {
	s := New(Options{World: &interp.Offline{}})
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, registration.PoliciesPath, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	if s.Handler().ServeHTTP(w, r); w.Code != http.StatusNotFound {
		t.Errorf("the status is %d", w.Code)
	}
	s = New(Options{World: &interp.Offline{}, Policies: func(context.Context, map[string]any, map[string]any) ([]string, []string) { panic("at a policy") }})
	data, _ := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "1", "operation": "CREATE", "kind": map[string]any{"kind": "ClusterPolicy"}, "object": map[string]any{"metadata": map[string]any{}},
	}})
	for _, body := range [][]byte{[]byte("{}"), data} {
		w = httptest.NewRecorder()
		r = httptest.NewRequest(http.MethodPost, registration.PoliciesPath, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if s.Handler().ServeHTTP(w, r); w.Code < 400 {
			t.Errorf("the status is %d: %s", w.Code, w.Body)
		}
	}
}

func askAboutPolicy(t *testing.T, s *Server, request map[string]any) *admissionv1.AdmissionResponse {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, registration.PoliciesPath+"?timeout=5s", bytes.NewReader(data))
	r.Header.Set("Content-Type", "application/json")
	s.Handler().ServeHTTP(w, r)
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Response == nil {
		t.Fatalf("%d: %s: %v", w.Code, w.Body, err)
	}
	return out.Response
}
