package check_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/diag"
)

// What kvap makes is told nothing; and as if somebody had written it by hand, only what reads a
// field so that it is an error where Kyverno has one too.
func TestGoldensAreGuarded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../fixtures/*/want.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	var told []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		made, _ := check.Written(file, data)
		if n := count(t, made, diag.UnguardedField, true); n != 0 {
			t.Errorf("%s: %d findings", file, n)
		}
		byHand, _ := check.Written(file, bytes.ReplaceAll(data, []byte("kvap.dev/"), []byte("acme.dev/")))
		if n := count(t, byHand, diag.NullObject, true); n != 0 {
			t.Errorf("%s: reads an object that is null", file)
		}
		if count(t, byHand, diag.UnguardedField, false) > 0 {
			told = append(told, filepath.Base(filepath.Dir(file)))
		}
	}
	erring := []string{
		"all-or-nothing", "context-null", "context-variables", "deny-both-sides", "empty-flatten", "existing-foreach", "guard-error",
		"validating-policy-as-written",
	}
	if !slices.Equal(told, erring) {
		t.Errorf("read without asking: %v, want %v", told, erring)
	}
}

// TestUnguarded: a field that objects need not have, and that nothing asks for.
func TestUnguarded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		resource, expression, more string
		want                       int
	}{
		{"pods", "object.spec.hostNetwork == false", "", 1},
		{"pods", "oldObject.spec.hostNetwork == false", "", 1},
		{"pods", "object.spec['hostNetwork'] == false", "", 1},
		{"pods", "object.?spec.?securityContext.orValue({}).runAsUser > 0", "", 1},
		{"pods", "variables.v > 1", "  variables: [{name: v, expression: object.spec.activeDeadlineSeconds}]", 1}, // once, where it is read
		{"pods", "has(object.spec.affinity.podAffinity)", "", 1},                                                  // has() reads what is before it
		{"pods", "object.spec.containers.exists(c, c.env.size() > 1)", "", 1},
		{"configmaps", "object.data['a'] == 'b'", "", 1}, // of what is missing the rest is not told
		{"configmaps", "has(object.data) && object.data['a'] == 'b'", "", 1},
		{"services", "object.spec.ports[0].port == 1", "", 1},
		{"pods", "object.spec.hostname == 'a' || object.spec.hostnameOverride == 'a'", "", 2}, // one name begins with the other

		{"pods", "object.spec.containers.all(c, c.image != '')", "", 0},
		{"pods", "object.spec.?hostNetwork.orValue(false) == false", "", 0},
		{"pods", "object.?spec.hostNetwork.orValue(false) == false", "", 0},
		{"pods", "object.spec.?securityContext.orValue({'runAsUser': 1}).runAsUser > 0", "", 0},
		{"pods", "variables.v || object.spec.hostNetwork == false", "  variables: [{name: v, expression: '!has(object.spec.hostNetwork)'}]", 0},
		{"pods", "object.spec.hostNetwork == false", "  matchConditions: [{name: a, expression: has(object.spec.hostNetwork)}]", 0},
		{"pods", "object.spec.containers.all(c, c.securityContext.?privileged.orValue(false) == false)", "  matchConditions: [{name: a, expression: 'object.spec.containers.all(x, has(x.securityContext))'}]", 0},
		{"configmaps", "has(object.data) && object.data.all(k, object.data[k] != '')", "", 0},
		{"configmaps", "has(object.data) && 'a' in object.data && object.data['a'] == 'b'", "", 0},
		{"deployments", "object.spec.replicas < 5", "", 0}, // the API server fills it in
		{"clusterroles", "object.rules == null || object.rules.size() > 0", "", 0},
		{"widgets", "object.spec.any.thing == 1", "", 0}, // nothing is known of it
	} {
		group := map[string]string{"deployments": "apps", "clusterroles": "rbac.authorization.k8s.io", "widgets": "acme.io"}[c.resource]
		text := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\nspec:\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: ['" + group + "'], apiVersions: [v1], resources: [" + c.resource + "], operations: [CREATE, UPDATE]}]}\n" +
			strings.TrimRight(c.more+"\n", "\n") + "\n  validations:\n    - expression: |\n        " + c.expression + "\n"
		objects, found := check.Written("a.yaml", []byte(text))
		if len(found) > 0 || len(objects) != 1 {
			t.Fatalf("%s: %v\n%s", c.expression, found, text)
		}
		if got := count(t, objects, diag.UnguardedField, false); got != c.want {
			t.Errorf("%s %s: %d findings, want %d", c.resource, c.expression, got, c.want)
		}
	}
}

// count is how many findings of a code there are, and shows them.
func count(t *testing.T, objects []*check.Object, code diag.Code, show bool) (n int) {
	t.Helper()
	for _, r := range check.Objects(objects, check.Options{Schemas: schemas(t, 36), Parts: []check.Part{check.Lint}}) {
		for _, f := range r.Findings {
			if f.Code == code {
				n++
				if show {
					t.Log(f.Error())
				}
			}
		}
	}
	return n
}
