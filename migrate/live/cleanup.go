package live

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cleanup"
	"github.com/kvap/kvap/report"
)

const (
	// runsCleanup is said of a cleanup policy that kvap does not run yet.
	runsCleanup = "only Kyverno deletes by it: annotate it with kvap.dev/mode: enforce, and see kvap status"
	// keptForCleanup is said of the definition of cleanup policies, while there are some.
	keptForCleanup = "stays, with its objects: kvap runs them"
)

// cleans tells of a kind of cleanup policies.
func cleans(group, kind string) bool {
	return slices.ContainsFunc(cleanup.Kinds(), func(k cleanup.PolicyKind) bool { return k.Group == group && k.Kind == kind })
}

// leftCleanups adds the cleanup policies, and counts those that keep Kyverno: all that
// kvap was not seen to run.
func (r *Reader) leftCleanups(ctx context.Context, out *report.Finish, keep int) (int, error) {
	runs := map[v1alpha1.PolicyReference]bool{}
	leave := func(err error) { // which is told of by its definition
		if apierrors.IsForbidden(err) {
			keep++
		}
	}
	if err := EachTranslation(ctx, r.Connection, leave, func(t v1alpha1.PolicyTranslation) {
		runs[t.Spec.Source] = t.Status.Mode == v1alpha1.ModeEnforce && t.Status.Cleanup != nil
	}); err != nil {
		return keep, err
	}
	for _, k := range cleanup.Kinds() {
		kind := append([]string{k.Group, k.Kind, k.Version}, k.Older...)
		err := r.EachOf(ctx, kind, leave, func(u unstructured.Unstructured) error {
			ref := v1alpha1.PolicyReference{Group: k.Group, Kind: k.Kind, Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID()}
			left := report.LeftPolicy{Kind: k.Kind, Namespace: ref.Namespace, Name: ref.Name, Stage: "-", Next: "kvap runs it; it stays with its definition"}
			if !runs[ref] {
				left.Next = runsCleanup
				keep++
			}
			out.Policies = append(out.Policies, left)
			return nil
		})
		if err != nil {
			return keep, err
		}
	}
	return keep, nil
}
