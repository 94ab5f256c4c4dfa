package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/webhook/registration"
)

// kyvernoLabel is on all webhook configurations of Kyverno.
const kyvernoLabel = "webhook.kyverno.io/managed-by"

// A kyvernoWatch says what Kyverno has the API server ask it.
type kyvernoWatch struct {
	*connection
	served registration.Table
	// validating and mutating are the rules of Kyverno's webhooks for resources.
	validating, mutating []admissionregistrationv1.Rule
}

func newKyvernoWatch(c *connection) (kyvernoWatch, error) {
	k := kyvernoWatch{connection: c}
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return k, err
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return k, err
	}
	for _, g := range groups {
		for version, list := range g.VersionedResources {
			k.served = append(k.served, servedResources(g.Group.Name, version, list)...)
		}
	}
	return k, nil
}

// servedResources are the resources of a version, each with its subresources.
func servedResources(group, version string, list []metav1.APIResource) registration.Table {
	var out registration.Table
	for _, r := range list {
		parent, sub, isSub := strings.Cut(r.Name, "/")
		if !isSub {
			out = append(out, registration.Resource{Group: group, Version: version, Kind: r.Kind, Plural: r.Name, Namespaced: r.Namespaced})
			continue
		}
		for i := range out {
			if out[i].Plural == parent {
				out[i].Subresources = append(out[i].Subresources, sub)
			}
		}
	}
	return out
}

// read reads Kyverno's webhook configurations.
func (k *kyvernoWatch) read(ctx context.Context) error {
	k.validating, k.mutating = nil, nil
	for resource, into := range map[string]*[]admissionregistrationv1.Rule{
		"validatingwebhookconfigurations": &k.validating, "mutatingwebhookconfigurations": &k.mutating,
	} {
		items, _, err := k.list(ctx, apischema.GroupVersionResource{Group: admissionregistrationv1.GroupName, Version: "v1", Resource: resource})
		if err != nil {
			return err
		}
		for i := range items {
			if _, ok := items[i].GetLabels()[kyvernoLabel]; !ok {
				continue
			}
			// Both kinds have the same form, as far as this goes.
			c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(items[i].Object, c); err != nil {
				return err
			}
			for _, w := range c.Webhooks {
				for _, r := range w.Rules {
					*into = append(*into, r.Rule)
				}
			}
		}
	}
	return nil
}

// judges tells whether Kyverno was seen to judge requests by a policy: it says that
// it is ready, and the API server asks it about what the policy is about.
func (k *kyvernoWatch) judges(o *unstructured.Unstructured) migrate.Judging {
	switch {
	case migrate.KyvernoIsOff(o):
		return migrate.Judging{Why: "admission is off in it"}
	case len(k.validating)+len(k.mutating) == 0:
		return migrate.Judging{Why: "Kyverno has registered no webhook; see that it runs"}
	case !kyvernoReady(o):
		return migrate.Judging{Why: "Kyverno has not said that it is ready"}
	}
	data, err := json.Marshal(o.Object)
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	f, _ := policy.Parse(o.GetName(), data)
	want, _ := registration.Configure(f.Policies, k.served, registration.Options{URL: "https://localhost"})
	if want.Validating != nil {
		for _, w := range want.Validating.Webhooks {
			if slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return covered(r.Rule, k.validating) }) {
				return migrate.Judging{Yes: true}
			}
		}
		return migrate.Judging{Why: "Kyverno's webhook is not registered for what it is about"}
	}
	return migrate.Judging{Yes: true}
}

// kyvernoReady reads the status that Kyverno writes: a condition, or in older versions
// a field.
func kyvernoReady(o *unstructured.Unstructured) bool {
	if ready, ok, _ := unstructured.NestedBool(o.Object, "status", "ready"); ok && ready {
		return true
	}
	for _, path := range [][]string{{"status", "conditions"}, {"status", "conditionStatus", "conditions"}} {
		list, _, _ := unstructured.NestedSlice(o.Object, path...)
		for _, c := range list {
			if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] == "True" {
				return true
			}
		}
	}
	ready, _, _ := unstructured.NestedBool(o.Object, "status", "conditionStatus", "ready")
	return ready
}

// covered tells whether some rule asks about a resource of another.
func covered(want admissionregistrationv1.Rule, rules []admissionregistrationv1.Rule) bool {
	return slices.ContainsFunc(rules, func(have admissionregistrationv1.Rule) bool {
		return overlap(want.APIGroups, have.APIGroups) && overlap(want.Resources, have.Resources)
	})
}

func overlap(a, b []string) bool {
	if slices.Contains(a, "*") || slices.Contains(b, "*") || slices.Contains(a, "*/*") || slices.Contains(b, "*/*") {
		return true
	}
	return slices.ContainsFunc(a, func(x string) bool {
		parent, _, _ := strings.Cut(x, "/")
		return slices.Contains(b, x) || slices.Contains(b, parent+"/*")
	})
}
