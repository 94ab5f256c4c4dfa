package standin

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

// The stand-in deletes what Kyverno does: what a rule has generated that keeps it in step,
// when the rule goes, or its policy; by what the rule said last, and nothing of other rules.
func TestRemoveDownstream(t *testing.T) {
	const text = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, uid: u}
spec:
  rules:
  - name: one
    generate: {apiVersion: v1, kind: ConfigMap, name: c, namespace: n, synchronize: true}
  - name: other
    generate: {apiVersion: v1, kind: ConfigMap, name: d, namespace: n, synchronize: true}
`
	for name, one := range map[string]struct {
		before, after string // the policy; "" where it is gone
		left          string
	}{
		"nothing happens":         {text, text, "one other"},
		"a rule goes":             {text, strings.Replace(text, "name: other\n", "name: new\n", 1), "one"},
		"the policy goes":         {text, "", ""},
		"it asked for that":       {strings.Replace(text, "synchronize: true}", "synchronize: true, orphanDownstreamOnPolicyDelete: true}", 1), "", "one"},
		"it is not kept in step":  {strings.Replace(text, "synchronize: true}", "synchronize: false}", 1), "", "one"},
		"a rule does other work":  {text, strings.Replace(text, "generate: {apiVersion: v1, kind: ConfigMap, name: c", "mutate: {apiVersion: v1, kind: ConfigMap, name: c", 1), "one other"},
		"an earlier rule is back": {strings.Replace(text, "name: other\n", "name: new\n", 1), text, "one other"},
	} {
		made := func(rule string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: rule, Labels: map[string]string{
				"app.kubernetes.io/managed-by": "kyverno", "generate.kyverno.io/policy-name": "p", "generate.kyverno.io/policy-namespace": "", "generate.kyverno.io/rule-name": rule,
			}}}
		}
		k := &Kyverno{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(made("one"), made("other")).Build()}
		for _, text := range []string{one.before, one.after} {
			var policies []*unstructured.Unstructured
			if text != "" {
				o := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
					t.Fatal(err)
				}
				policies = append(policies, o)
			}
			if err := k.RemoveDownstream(t.Context(), policies); err != nil {
				t.Fatal(err)
			}
		}
		var list corev1.ConfigMapList
		if err := k.Client.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, o := range list.Items {
			left = append(left, o.Name)
		}
		if slices.Sort(left); strings.Join(left, " ") != one.left {
			t.Errorf("%s: left is %q, want %q", name, left, one.left)
		}
	}
}
