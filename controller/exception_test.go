package controller

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
)

// exceptions are one in each of two namespaces, with an annotation on the first.
func exceptions(t *testing.T, annotation string) []client.Object {
	t.Helper()
	var out []client.Object
	for _, namespace := range []string{"trusted", "anybodys"} {
		o := &unstructured.Unstructured{}
		err := yaml.Unmarshal([]byte(`apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: but, namespace: `+namespace+`, annotations: {`+annotation+`}}
spec:
  exceptions: [{policyName: p, ruleNames: [a]}]
  match: {any: [{resources: {kinds: [Pod]}}]}
`), &o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out, annotation = append(out, o), ""
	}
	return out
}

// Who may make exceptions in a namespace of his own switches nothing off: they count
// where it was said that they do, and a policy that they name says so.
func TestExceptionNamespaces(t *testing.T) {
	for trusted, want := range map[string]int{"": 0, "trusted": 1, "other": 0, "trusted,anybodys": 2, "*": 2} {
		c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(append(exceptions(t, ""), object(t, ""))...).Build()
		l := &policyLister{client: c, mode: "enforce"}
		if trusted != "" {
			l.trusted = strings.Split(trusted, ",")
		}
		in := shelfOf(t, l)
		if len(in.exceptions) != want || len(in.ignored) != 2-want {
			t.Errorf("%q: %d count and %d do not", trusted, len(in.exceptions), len(in.ignored))
		}
		status := (&passResult{active: in.counting, ignored: in.ignored}).statusOf(in.sources[0], v1alpha1.PolicyTranslationStatus{})
		if len(status.IgnoredExceptions) != 2-want {
			t.Errorf("%q: the status says %v", trusted, status.IgnoredExceptions)
		}
		if len(status.Exceptions) != want || want > 0 && (status.Exceptions[0].Name != "but" || status.Exceptions[0].Rules[0] != "a") {
			t.Errorf("%q: the status says that these are in force: %v", trusted, status.Exceptions)
		}
	}
}

// An exception that has expired does not count, and one that nobody can tell the end
// of has.
func TestExpiredExceptions(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for until, want := range map[string]bool{"2027-01-01T00:00:01Z": true, "2027-01-01T00:00:00Z": false, "tomorrow": false} {
		c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(exceptions(t, ExpiresKey+`: "`+until+`"`)...).Build()
		l := &policyLister{client: c, trusted: []string{"trusted"}}
		in, err := l.read(t.Context(), watchedKinds(), now)
		if err != nil || (len(in.exceptions) == 1) != want || in.next.IsZero() == want {
			t.Errorf("%s: %d count, until %v: %v", until, len(in.exceptions), in.next, err)
		}
	}
}

func shelfOf(t *testing.T, l *policyLister) policyList {
	t.Helper()
	in, err := l.read(t.Context(), watchedKinds(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func watchedKinds() map[string]schema.GroupVersionKind {
	out := map[string]schema.GroupVersionKind{}
	for _, k := range sourceKinds()[:1] {
		out[k.definition()] = k.at(k.versions[0])
	}
	out["policyexceptions.kyverno.io"] = schema.GroupVersionKind{Group: "kyverno.io", Version: "v2", Kind: "PolicyException"}
	return out
}

// testScheme has kvap's kinds, and unstructured objects of all others.
func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}
