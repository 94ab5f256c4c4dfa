//go:build e2e

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/policy"
)

// expansions are the rules for pod controllers, each with its kinds: those that an
// assertion has, and those of a policy.
func expansions(autogen any, o *unstructured.Unstructured) (wanted, got []string, err error) {
	var asserted struct {
		Rules []struct {
			Name  string
			Match struct {
				Resources struct{ Kinds []string }
				Any, All  []struct{ Resources struct{ Kinds []string } }
			}
		}
	}
	data, err := json.Marshal(autogen)
	if err == nil {
		err = json.Unmarshal(data, &asserted)
	}
	if err != nil {
		return nil, nil, err
	}
	row := func(name string, kinds []string) string {
		slices.Sort(kinds)
		return fmt.Sprint(name, kinds)
	}
	for _, rule := range asserted.Rules {
		kinds := rule.Match.Resources.Kinds
		for _, f := range append(rule.Match.Any, rule.Match.All...) {
			kinds = append(kinds, f.Resources.Kinds...)
		}
		for i, kind := range kinds {
			kinds[i] = kind[strings.LastIndex(kind, "/")+1:]
		}
		wanted = append(wanted, row(rule.Name, kinds))
	}
	if data, err = json.Marshal(o.Object); err != nil {
		return nil, nil, err
	}
	file, found := policy.Parse(o.GetName(), data)
	if len(file.Policies) != 1 {
		return nil, nil, fmt.Errorf("the policy cannot be read: %v", found)
	}
	for _, rule := range policy.Expand(file.Policies[0]) {
		if rule.Expansion != "" {
			got = append(got, row(rule.Name, rule.Controllers))
		}
	}
	slices.Sort(wanted)
	slices.Sort(got)
	return wanted, got, nil
}

// controllerResources are the resources besides its own that a policy of policies.kyverno.io
// is for: those that an assertion has, and those of the native policies that it became.
func (c *conformer) controllerResources(ctx context.Context, autogen any, o *unstructured.Unstructured) (wanted, got []string, err error) {
	configs, _, err := unstructured.NestedMap(map[string]any{"autogen": autogen}, "autogen", "configs")
	if err != nil {
		return nil, nil, err
	}
	for _, config := range configs {
		fields, _ := config.(map[string]any)
		wanted = append(wanted, resources(fields)...)
	}
	translation, err := c.translated(ctx, o)
	if translation == nil || err != nil {
		return nil, nil, fmt.Errorf("kvap says nothing of it: %w", err)
	}
	rules, _, _ := unstructured.NestedSlice(translation.Object, "status", "rules")
	own := resources(o.Object)
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		names, _, _ := unstructured.NestedStringSlice(fields, "objects")
		for _, name := range names {
			native := object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", name)
			if err := c.judged.Get(ctx, client.ObjectKeyFromObject(native), native); err != nil {
				return nil, nil, err
			}
			got = append(got, resources(native.Object)...)
		}
	}
	got = slices.DeleteFunc(got, func(r string) bool { return slices.Contains(own, r) || strings.Contains(r, "/") })
	slices.Sort(wanted)
	slices.Sort(got)
	return slices.Compact(wanted), slices.Compact(got), nil
}

// resources are those that the constraints of a policy name.
func resources(policy map[string]any) (names []string) {
	rules, _, _ := unstructured.NestedSlice(policy, "spec", "matchConstraints", "resourceRules")
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		some, _, _ := unstructured.NestedStringSlice(fields, "resources")
		names = append(names, some...)
	}
	return names
}
