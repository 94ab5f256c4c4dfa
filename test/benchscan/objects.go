package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/api/v1alpha1"
)

// kindOf is what a policy is about: of five, two are about ConfigMaps, two about Pods and one about
// Services.
func kindOf(policy int) string {
	return []string{"ConfigMap", "Pod", "ConfigMap", "Service", "Pod"}[policy%5]
}

// label is the one that an object violates a policy by, where it has the value bad.
func label(policy int) string { return fmt.Sprintf("check-%d", policy) }

const bad = "bad"

// newPolicy is one of many, each with one rule: a pattern, conditions, an expression, or conditions
// that CEL cannot express.
func newPolicy(i int) *v1alpha1.ClusterPolicy {
	p := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bench-%03d", i)}}
	p.Spec.ValidationFailureAction = "Audit"
	key := label(i)
	validate := map[string]any{"message": "The label " + key + " is bad."}
	deny := func(conditionKey, value string) {
		validate["deny"] = map[string]any{"conditions": map[string]any{"any": []any{map[string]any{"key": conditionKey, "operator": "Equals", "value": value}}}}
	}
	path := fmt.Sprintf(`request.object.metadata.labels."%s" || ''`, key)
	switch i / 5 % 4 {
	case 0:
		validate["pattern"] = map[string]any{"metadata": map[string]any{"=(labels)": map[string]any{"=(" + key + ")": "!" + bad}}}
	case 1:
		deny("{{ "+path+" }}", bad)
	case 2:
		expression := fmt.Sprintf("!has(object.metadata.labels) || !('%[1]s' in object.metadata.labels) || object.metadata.labels['%[1]s'] != '%[2]s'", key, bad)
		validate["cel"] = map[string]any{"expressions": []any{map[string]any{"expression": expression, "message": validate["message"]}}}
		delete(validate, "message")
	case 3:
		deny("{{ sha256("+path+") }}", fmt.Sprintf("%x", sha256.Sum256([]byte(bad))))
	}
	p.Spec.Rules = []v1alpha1.Rule{{
		Name:     "label",
		Match:    raw(map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{kindOf(i)}}}}}),
		Validate: pointer(raw(validate)),
	}}
	return p
}

func raw(v any) runtime.RawExtension {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps and strings always marshal
	}
	return runtime.RawExtension{Raw: text}
}

func pointer[T any](v T) *T { return &v }

// kindOfObject is what an object is: of a hundred, ninety are ConfigMaps, seven Pods and three
// Services.
func kindOfObject(i int) string {
	switch n := i % 100; {
	case n >= 97:
		return "Service"
	case n >= 90:
		return "Pod"
	}
	return "ConfigMap"
}

// violates tells whether an object violates a policy: each tenth of a kind does.
func violates(i int) bool { return i/100%10 == i%10 }

func namespaceOf(i, namespaces int) string { return fmt.Sprintf("bench-%03d", i%namespaces) }

// newMeta is the metadata of an object. One that violates has a label that one of the policies about
// its kind finds bad.
func (b *bench) newMeta(name string, i int, kind string, violating bool) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: name, Namespace: namespaceOf(i, b.namespaces),
		Labels: map[string]string{"app.kubernetes.io/name": fmt.Sprintf("app-%d", i%1000), "app.kubernetes.io/part-of": "bench"},
	}
	for policy := i % b.policies; violating; policy = (policy + 1) % b.policies {
		if kindOf(policy) == kind {
			m.Labels[label(policy)] = bad
			break
		}
	}
	return m
}

func (b *bench) newConfigMap(name string, i int, violating bool) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: b.newMeta(name, i, "ConfigMap", violating),
		Data:       map[string]string{"settings.yaml": strings.Repeat(fmt.Sprintf("option-%d: a value of some length\n", i), 25)},
	}
}

// newObject is one of those that are there from the beginning.
func (b *bench) newObject(i int) runtime.Object {
	kind, name := kindOfObject(i), fmt.Sprintf("object-%06d", i)
	meta := b.newMeta(name, i, kind, violates(i))
	switch kind {
	case "Pod":
		return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "main", Image: "registry.example.com/app:1.0", Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}}},
			{Name: "side", Image: "registry.example.com/side:1.0"},
		}}}
	case "Service":
		return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	return b.newConfigMap(name, i, violates(i))
}
