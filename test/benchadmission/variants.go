package main

import (
	_ "embed"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

// policySet is the fixture with the rules.
const policySet = "pod-security-set"

// A variant is what judges the Pods.
type variant struct {
	name    string
	objects []*unstructured.Unstructured // policies and bindings
}

// policies is how many policy objects a new Pod meets. What is about a subresource
// of Pods alone is none of them.
func (v variant) policies() int {
	n := 0
	for _, o := range v.objects {
		rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "matchConstraints", "resourceRules")
		if slices.ContainsFunc(rules, func(r any) bool {
			rule := r.(map[string]any)
			return slices.Contains(rule["resources"].([]any), any("pods")) && slices.Contains(rule["operations"].([]any), any("CREATE"))
		}) {
			n++
		}
	}
	return n
}

// variants are what is compared; the first one is nothing at all.
func variants() ([]variant, error) {
	vs := []variant{{name: "nothing"}}
	for _, c := range []struct {
		name    string
		options translate.Options
	}{
		{"`--pack policy --guard never`", translate.Options{Pack: translate.PackPolicy, Guard: translate.GuardNever}},
		{"`--pack policy --guard auto`", translate.Options{Pack: translate.PackPolicy, Guard: translate.GuardAuto}},
		{"`--pack match --guard never`", translate.Options{Pack: translate.PackMatch, Guard: translate.GuardNever}},
		{"`--pack match --guard auto`", translate.Options{Pack: translate.PackMatch, Guard: translate.GuardAuto}},
	} {
		objects, err := compiled(c.options)
		if err != nil {
			return nil, err
		}
		vs = append(vs, variant{c.name, objects})
	}
	byHand, err := handwritten()
	if err != nil {
		return nil, err
	}
	return append(vs, variant{"written by hand", byHand}), nil
}

// compiled is the set as convert makes it, for the release that convert takes.
func compiled(o translate.Options) ([]*unstructured.Unstructured, error) {
	all := fixtures.All()
	i := slices.IndexFunc(all, func(f fixtures.Fixture) bool { return f.Name == policySet })
	if i < 0 {
		return nil, fmt.Errorf("there is no fixture %s", policySet)
	}
	file, found := policy.Parse("policy.yaml", all[i].Policy)
	if found.HasErrors() {
		return nil, fmt.Errorf("%v", found)
	}
	schemas, err := schema.Builtin(cel.Default.String())
	if err != nil {
		return nil, err
	}
	o.Release, o.Schemas = cel.Default, schemas
	result := compile.Policies(compile.Input{Policies: file.Policies}, compile.Options{Translate: o})
	var out []*unstructured.Unstructured
	for _, group := range result.Objects {
		for _, o := range group.All() {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return nil, err
			}
			out = append(out, &unstructured.Unstructured{Object: fields})
		}
	}
	for _, r := range result.Rules {
		if r.Target != translate.Native {
			return nil, fmt.Errorf("rule %s is not native: %v", r.Name(), r.Codes)
		}
	}
	return out, nil
}

// handwrittenRules are the same rules as a person writes them for Pods, with the
// names of the set's policies.
//
//go:embed handwritten.yaml
var handwrittenRules []byte

// A rule is a policy object written by hand, without what all of them share.
type rule struct {
	Name       string `json:"name"`
	Containers bool   `json:"containers"` // it has the variable for containers of all kinds
	Expression string `json:"expression"`
	Message    string `json:"message"`
}

func handwritten() ([]*unstructured.Unstructured, error) {
	var rules []rule
	if err := yaml.UnmarshalStrict(handwrittenRules, &rules); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, r := range rules {
		out = append(out, r.policy(), r.binding())
	}
	return out, nil
}

const allContainers = `object.spec.containers + object.spec.?initContainers.orValue([]) + object.spec.?ephemeralContainers.orValue([])`

func (r rule) policy() *unstructured.Unstructured {
	spec := map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"}, "operations": []any{"CREATE", "UPDATE"},
		}}},
		"validations": []any{map[string]any{"expression": r.Expression, "message": r.Message}},
	}
	if r.Containers {
		spec["variables"] = []any{map[string]any{"name": "containers", "expression": allContainers}}
	}
	return r.object("ValidatingAdmissionPolicy", spec)
}

func (r rule) binding() *unstructured.Unstructured {
	return r.object("ValidatingAdmissionPolicyBinding", map[string]any{"policyName": r.Name, "validationActions": []any{"Deny"}})
}

func (r rule) object(kind string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": r.Name}, "spec": spec,
	}}
}
