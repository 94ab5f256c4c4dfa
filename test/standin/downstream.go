package standin

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A generated rule is a generate rule that keeps what it makes in step, as it was seen last.
type generated struct {
	bear map[string]string // the labels of what it has made
	kind unstructured.Unstructured
}

// RemoveDownstream does what Kyverno's background controller does when a rule that keeps
// what it generates in step goes, or its policy: it deletes what the rule has generated,
// unless the rule says that this is to stay. It is told of all policies that there are.
func (k *Kyverno) RemoveDownstream(ctx context.Context, policies []*unstructured.Unstructured) (err error) {
	before := k.generated
	k.generated = map[types.UID]map[string]generated{}
	for _, o := range policies {
		k.generated[o.GetUID()] = generatedBy(o)
	}
	for uid, rules := range before {
		for name, rule := range rules {
			if _, stays := k.generated[uid][name]; !stays && !k.hasRule(policies, uid, name) {
				err = errors.Join(err, k.remove(ctx, rule))
			}
		}
	}
	return err
}

// hasRule tells that a policy has a rule, whatever that does now.
func (*Kyverno) hasRule(policies []*unstructured.Unstructured, uid types.UID, name string) bool {
	for _, o := range policies {
		rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
		for _, one := range rules {
			if rule, _ := one.(map[string]any); o.GetUID() == uid && rule["name"] == name {
				return true
			}
		}
	}
	return false
}

// generatedBy are the rules of a policy whose objects go with them, by name.
func generatedBy(o *unstructured.Unstructured) map[string]generated {
	out := map[string]generated{}
	rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
	for _, one := range rules {
		rule, _ := one.(map[string]any)
		name, _ := rule["name"].(string)
		g, _ := rule["generate"].(map[string]any)
		apiVersion, _ := g["apiVersion"].(string)
		kind, _ := g["kind"].(string)
		if g["synchronize"] != true || g["orphanDownstreamOnPolicyDelete"] == true || kind == "" {
			continue
		}
		made := generated{bear: map[string]string{
			"app.kubernetes.io/managed-by": "kyverno", "generate.kyverno.io/policy-name": o.GetName(),
			"generate.kyverno.io/policy-namespace": o.GetNamespace(), "generate.kyverno.io/rule-name": name,
		}}
		made.kind.SetAPIVersion(apiVersion)
		made.kind.SetKind(kind)
		out[name] = made
	}
	return out
}

// remove deletes what a rule has generated.
func (k *Kyverno) remove(ctx context.Context, rule generated) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(rule.kind.GetAPIVersion())
	list.SetKind(rule.kind.GetKind() + "List")
	err := k.Client.List(ctx, list, client.MatchingLabels(rule.bear))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	for i := range list.Items {
		err = errors.Join(err, client.IgnoreNotFound(k.Client.Delete(ctx, &list.Items[i])))
	}
	return err
}
