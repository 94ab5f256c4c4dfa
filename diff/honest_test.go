package diff

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
)

// comparisons are what a search of a few requests says of two sides.
func comparisons(t *testing.T, old, new Side) Compared {
	t.Helper()
	got, err := Compare(context.Background(), old, new, Options{Schemas: schemas(t), Seed: 1, Requests: 100})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// differences are the kinds of differences of two sides, one after the other.
func differences(t *testing.T, old, new Side) (out []Aspect) {
	t.Helper()
	for _, c := range comparisons(t, old, new).Comparisons {
		for _, d := range c.Differences {
			out = append(out, d.Aspect)
		}
	}
	return out
}

// validating is a native policy with its binding; annotation is its source map.
func validating(annotation, namespaces string, expressions ...string) string {
	out := fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: v, annotations: {kvap.dev/translation: '%s'}}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  validations:
`, annotation)
	for _, e := range expressions {
		out += fmt.Sprintf("  - {expression: %q, message: m}\n", e)
	}
	return out + fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: v}
spec:
  policyName: v
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [%s]}]}}
`, namespaces)
}

// What a source map says of a native policy, whoever wrote it, hides nothing that it denies.
func TestSourceMapsHideNothing(t *testing.T) {
	const one, two = "has(object.data)", "has(object.immutable)"
	annotation := `{"members":[{"policy":"v","rule":"v"},{"policy":"v","rule":"v","resources":["nothing"]}],"validations":[{},{"member":1}]}`
	old := natively(t, []byte(validating("", "kube-system", one)))
	new := natively(t, []byte(validating(annotation, "kube-system", one, two)))
	if got := differences(t, old, new); !slices.Equal(got, []Aspect{Verdict}) {
		t.Errorf("%v", got)
	}
}

// Of Kyverno's configuration nothing is known but the namespaces that it leaves out by default.
func TestNamespacesLeftOut(t *testing.T) {
	old := parsed(t, "old.yaml", []byte(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: v}
spec:
  validationFailureAction: Enforce
  rules:
  - name: v
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
    validate: {message: m, pattern: {data: "?*"}}
`))
	for namespace, want := range map[string][]Aspect{"kube-system": nil, "default": {Scope}} {
		if got := differences(t, old, natively(t, []byte(validating("", namespace, "has(object.data)")))); slices.Contains(got, Scope) != slices.Contains(want, Scope) {
			t.Errorf("%s: %v, want %v", namespace, got, want)
		}
	}
}

const images = `---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: images}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages: [{imageReferences: ["*"], mutateDigest: false, attestors: [{entries: [{keyless: {subject: a, issuer: b, rekor: {url: "https://x"}}}]}]}]
`

const cleanup = `---
apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: old-pods}
spec:
  schedule: "0 0 * * *"
  match: {any: [{resources: {kinds: [Pod]}}]}
`

const exception = `---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: default}
spec:
  exceptions: [{policyName: images, ruleNames: [signed]}]
  match: {any: [{resources: {kinds: [Pod]}}]}
`

// What is not judged is the same where it is written the same, with all that decides about it, and
// is told where it is not.
func TestNotJudged(t *testing.T) {
	side := func(source string) Side {
		file, found := policy.Parse("policy.yaml", []byte(source))
		if found.HasErrors() {
			t.Fatal(found)
		}
		return Side{Policies: file.Policies, Exceptions: file.Exceptions, Cleanups: file.Cleanups, Unread: file.Unread}
	}
	base := rules("a", "ConfigMap", "x")
	for name, c := range map[string]struct {
		old, new string
		same     bool
	}{
		"images":              {base + images, base + images, true},
		"images alone":        {images, images, true},
		"their action":        {base + images, base + strings.ReplaceAll(images, "Enforce", "Audit"), false},
		"their exceptions":    {base + images, base + images + exception, false},
		"cleanup":             {base + cleanup, base + cleanup, true},
		"cleanup of one side": {base, base + cleanup, false},
		"schedules":           {base + cleanup, base + strings.ReplaceAll(cleanup, "0 0", "1 1"), false},
	} {
		for range 2 {
			got := comparisons(t, side(c.old), side(c.new))
			if same := len(got.Left) == 0; same != c.same {
				t.Errorf("%s: not judged: %+v", name, got.Left)
			}
			if len(got.Comparisons) == 0 && c.same {
				t.Errorf("%s: nobody says that anything is the same", name)
			}
			c.old, c.new = c.new, c.old
		}
	}
}

// mutating is a native policy that mutates ConfigMaps by labels, with its binding.
func mutating(name, label, value string) string {
	return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"%[2]s": "%[3]s"}}}'}
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s}
`, name, label, value)
}

// Native policies that mutate are compared by what they make of objects, one after the other.
func TestMutations(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     []Aspect
	}{
		"the same in other words": {mutating("a", "x", "1"), strings.Replace(mutating("a", "x", "1"), `"x": "1"`, `"x": "" + "1"`, 1), nil},
		"another value":           {mutating("a", "x", "1"), mutating("a", "x", "2"), []Aspect{Object}},
		"the first of two":        {mutating("a", "x", "1") + mutating("b", "z", "1"), mutating("c", "x", "2") + mutating("d", "z", "1"), []Aspect{Object}},
		"two in another order":    {mutating("a", "x", "1") + mutating("b", "z", "1"), mutating("c", "z", "1") + mutating("d", "x", "1"), nil},
		"two in one":              {mutating("a", "x", "1") + mutating("b", "z", "1"), strings.Replace(mutating("c", "x", "1"), `"x": "1"`, `"x": "1", "z": "1"`, 1), nil},
		"the old side alone":      {mutating("a", "x", "1") + mutating("b", "z", "1"), mutating("a", "x", "1"), []Aspect{Unpaired}},
		"the new side alone":      {mutating("a", "x", "1"), mutating("a", "x", "1") + mutating("b", "z", "1"), []Aspect{Unpaired}},
	} {
		old, new := natively(t, []byte(c.old)), natively(t, []byte(c.new))
		var got []Aspect
		for _, one := range comparisons(t, old, new).Comparisons {
			if !one.Written && one.OldSeen.Changed+one.NewSeen.Changed < one.Requests/5 {
				t.Errorf("%s: %d and %d of %d requests were changed", name, one.OldSeen.Changed, one.NewSeen.Changed, one.Requests)
			}
			for _, d := range one.Differences {
				got = append(got, d.Aspect)
				if d.Request == nil || d.Request.Summary() != "CREATE configmaps "+d.Request.Name+" in default by alice" {
					t.Errorf("%s: shown by %s", name, d.Request)
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
