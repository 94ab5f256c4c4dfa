package background

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// release lets go of what a rule has made that makes other objects now: they stay,
// and nobody looks after them. The rule makes nothing meanwhile, for what it made since
// could not be told from what it made before. What may not be done for want of a
// permission is told, and given up.
func (w *Worker) release(ctx context.Context, d RuleRecord) error {
	gone := map[string]*string{}
	for key := range interp.TargetSelector(d.policy(), d.Rule, nil) {
		if key != "app.kubernetes.io/managed-by" {
			gone[key] = nil
		}
	}
	return w.relabel(ctx, d, gone)
}

// relabel changes labels of all that a rule has made. A rule that was given another name
// keeps its objects so.
func (w *Worker) relabel(ctx context.Context, d RuleRecord, change map[string]*string) error {
	of := d.policy()
	own := interp.TargetSelector(of, d.Rule, nil)
	var failures []error
	for _, k := range d.Kinds {
		err := w.each(ctx, k, scopeOf(of), labels.SelectorFromSet(own), func(object map[string]any) {
			r := referenceOf(object)
			err := w.options.Cluster.Label(ctx, interp.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, change)
			if err != nil && !apierrors.IsNotFound(err) {
				failures = append(failures, w.unreleased(d, err))
			}
		})
		if err != nil && !apimeta.IsNoMatchError(err) {
			failures = append(failures, w.unreleased(d, err))
		}
	}
	return joined(failures)
}

// unreleased is a failure to let go that time may mend; one that it will not is told.
func (w *Worker) unreleased(d RuleRecord, err error) error {
	if !apierrors.IsForbidden(err) {
		return explained(err)
	}
	w.options.Tell(Notice{Policy: d.Policy, Warning: true, Reason: reasonForbidden, Note: fmt.Sprintf("rule %s: what it made before it was changed keeps its labels: %v", d.Rule, explained(err))})
	return nil
}

// hasRule tells whether the cluster has the policy, or one of its name in another group, with
// the rule. The labels of targets do not tell the two apart: one that was adopted and its
// source have the same.
func (w *Worker) hasRule(ctx context.Context, of v1alpha1.PolicyReference, rule string) (there bool, err error) {
	if of.Group == celGroup {
		for _, version := range []string{"v1", "v1beta1", "v1alpha1"} { // whichever the cluster serves
			_, there, err = w.options.Cluster.Get(ctx, celGroup+"/"+version, of.Kind, of.Namespace, of.Name)
			if !apimeta.IsNoMatchError(err) {
				break
			}
		}
		return there, err
	}
	groups := []string{"kyverno.io", v1alpha1.GroupVersion().Group, of.Group}
	slices.Sort(groups)
	for _, group := range slices.Compact(groups) {
		one := of
		one.Group = group
		object, _, err := w.options.Cluster.Get(ctx, apiVersionOf(one), one.Kind, one.Namespace, one.Name)
		if err != nil && (group == of.Group || !apimeta.IsNoMatchError(err)) {
			return false, err
		}
		spec, _ := object["spec"].(map[string]any)
		rules, _ := spec["rules"].([]any)
		if slices.ContainsFunc(rules, func(r any) bool {
			m, _ := r.(map[string]any)
			return m["name"] == rule
		}) {
			return true, nil
		}
	}
	return false, nil
}

// celGroup is that of the policies that are written in CEL, each of which is one rule.
const celGroup = "policies.kyverno.io"

// leftBy selects what a rule has left. Copies stay when a policy in CEL goes.
func leftBy(of *policy.Policy, rule string) labels.Selector {
	own := labels.SelectorFromSet(interp.TargetSelector(of, rule, nil))
	if !strings.HasSuffix(of.Kind, "GeneratingPolicy") {
		return own
	}
	copied, err := labels.NewRequirement(interp.SourceUIDLabel, selection.DoesNotExist, nil)
	if err != nil {
		return labels.Nothing() // the key is a label
	}
	return own.Add(*copied)
}

// apiVersionOf is the version in which policies of a group are read.
func apiVersionOf(r v1alpha1.PolicyReference) string {
	if r.Group == v1alpha1.GroupVersion().Group {
		return v1alpha1.GroupVersion().String()
	}
	return r.Group + "/v1"
}

// request has what a rule has left removed, as work that outlives this process.
func (d RuleRecord) request() *v1alpha1.GenerateRequest {
	out := &v1alpha1.GenerateRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "GenerateRequest"},
		Spec: v1alpha1.GenerateRequestSpec{Type: v1alpha1.GenerateObjects, Policy: d.Policy, Rule: d.Rule, Delete: true, Trigger: v1alpha1.ObjectReference{
			APIVersion: apiVersionOf(d.Policy), Kind: d.Policy.Kind, Namespace: d.Policy.Namespace, Name: d.Policy.Name, UID: d.Policy.UID,
		}},
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s %s", keyOf(d.Policy), d.Policy.UID, d.Rule)
	for _, k := range d.Kinds {
		out.Spec.Kinds = append(out.Spec.Kinds, v1alpha1.KindReference(k))
		fmt.Fprintf(sum, " %s/%s", k.APIVersion, k.Kind)
	}
	out.Name = "gr-" + hex.EncodeToString(sum.Sum(nil)[:10])
	return out
}

// removeLeft removes what a rule has left, unless the rule is there again.
func (w *Worker) removeLeft(ctx context.Context, r *v1alpha1.GenerateRequest, p *preparedPolicy) workResult {
	there := p.rule(r.Spec.Rule) != nil
	if !there {
		var err error
		if there, err = w.hasRule(ctx, r.Spec.Policy, r.Spec.Rule); err != nil {
			return failed(explained(err))
		}
	}
	switch {
	case there:
		return skipped("the rule is there again")
	case w.worksAt(ruleKey(keyOf(r.Spec.Policy), r.Spec.Rule), what(keyOf(r.Spec.Policy), r.Spec.Rule, r.Spec.Trigger)):
		return workResult{err: errEarly} // what is being made would be left
	}
	of := RuleRecord{Policy: r.Spec.Policy}.policy()
	kinds := make([]ObjectKind, len(r.Spec.Kinds))
	for i, k := range r.Spec.Kinds {
		kinds[i] = ObjectKind(k)
	}
	return w.removeAll(ctx, kinds, scopeOf(of), leftBy(of, r.Spec.Rule), nil)
}
