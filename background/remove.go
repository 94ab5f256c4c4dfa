package background

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// stale removes what a policy in CEL has made for a trigger, and wants no longer for it: all
// of it, where the object is a trigger no more. For a new object there is none.
func (w *Worker) stale(ctx context.Context, j job, trigger map[string]any, wanted []interp.Generated) error {
	r := j.rule
	if !r.open || !r.keepsInStep() || j.request != nil && j.request.Operation != "UPDATE" {
		return nil
	}
	return w.removeAll(ctx, w.makes(r), r.policy.scope(), r.selector(trigger), wanted).err
}

// stillTriggers tells that the object as it is stored triggers the rule: the change
// that was asked about was refused, or undone.
func (j job) stillTriggers(ctx context.Context, request *interp.Request) bool {
	for _, t := range j.rule.policy.engine.GenerateTriggers(ctx, request) {
		if t.Rule == j.rule.name {
			return t.Action == interp.GenerateTargets
		}
	}
	return false
}

// scopeOf is the namespace that a policy is confined to; empty for none.
func scopeOf(p *policy.Policy) string {
	if p.Namespaced() {
		return p.Namespace
	}
	return ""
}

// removeAll removes the objects of some kinds that a selector selects, but for those that
// are kept, and names the first.
func (w *Worker) removeAll(ctx context.Context, kinds []ObjectKind, namespace string, selector labels.Selector, keep []interp.Generated) workResult {
	out := workResult{state: v1alpha1.GenerateCompleted}
	var failures []error
	for _, k := range kinds {
		err := w.each(ctx, k, namespace, selector, func(object map[string]any) {
			at := referenceOf(object)
			if slices.ContainsFunc(keep, func(g interp.Generated) bool {
				return g.Kind == k.Kind && g.Namespace == at.Namespace && g.Name == at.Name
			}) {
				return
			}
			if err := w.options.Cluster.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				failures = append(failures, fmt.Errorf("%s %s/%s: %w", at.Kind, at.Namespace, at.Name, explained(err)))
				return
			}
			if len(out.resources) < mostTold {
				out.resources = append(out.resources, at)
			}
		})
		if err != nil {
			failures = append(failures, explained(err))
		}
	}
	return out.failedBy(failures)
}
