package cleanup

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/api/v1alpha1"
)

// Manager is who writes the entries of the ledger: their field manager, and their
// label app.kubernetes.io/managed-by, which tells them from the controller's.
const Manager = "kvap-cleanup"

// write writes what is to be said of a policy, if that is not what is there, and tells
// of a run that was not in vain.
func (r *Runner) write(ctx context.Context, t *turn) error {
	want := r.entry(t)
	if t.have != nil && t.have.Spec == want.Spec && apiequality.Semantic.DeepEqual(t.have.Status, want.Status) {
		return nil
	}
	if err := r.Ledger.Write(ctx, want); err != nil {
		return fmt.Errorf("the status of %s: %w", want.Name, err)
	}
	r.tell(t, want)
	return nil
}

// entry is what is to be said of a policy.
func (r *Runner) entry(t *turn) *v1alpha1.PolicyTranslation {
	p := t.policy
	out := &v1alpha1.PolicyTranslation{Spec: v1alpha1.PolicyTranslationSpec{Source: p.Ref}}
	out.Name = p.StatusName()
	out.Status = v1alpha1.PolicyTranslationStatus{SourceGeneration: p.Generation, Mode: p.Mode, Cleanup: &v1alpha1.CleanupStatus{}}
	c := out.Status.Cleanup
	var before *v1alpha1.PolicyTranslationStatus
	if t.have != nil && t.have.Spec.Source.UID == p.Ref.UID {
		before = &t.have.Status
		if before.Cleanup != nil {
			c.Deleted, c.Failed = before.Cleanup.Deleted, before.Cleanup.Failed
		}
	}
	if t.result != nil {
		c.Deleted, c.Failed = int32(min(t.result.Deleted, 1<<30)), int32(min(t.result.Failed, 1<<30)) //nolint:gosec // they are bounded
	}
	c.LastExecutionTime = second(t.last)
	if p.runs() {
		if next, err := p.next(t.last); err == nil {
			c.NextExecutionTime = second(next)
		}
	}
	ready := condition(t, before)
	ready.Type, ready.LastTransitionTime = v1alpha1.ConditionReady, *second(r.Now())
	if before != nil {
		if old := meta.FindStatusCondition(before.Conditions, ready.Type); old != nil && old.Status == ready.Status {
			ready.LastTransitionTime = old.LastTransitionTime
		}
	}
	out.Status.Conditions = []metav1.Condition{ready}
	if ready.Reason == reasonBadMode || ready.Reason == reasonInvalid { // no waiting ends it
		stalled := ready
		stalled.Type, stalled.Status = v1alpha1.ConditionStalled, metav1.ConditionTrue
		out.Status.Conditions = append(out.Status.Conditions, stalled)
	}
	if t.have != nil {
		out.Status.Observe(t.have.Generation)
	}
	return out
}

// second is a time as the API server keeps it; nil for none.
func second(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t.Truncate(time.Second).UTC())
	return &at
}

// Reasons of a policy that somebody has to change.
const (
	reasonBadMode = "BadMode"
	reasonInvalid = "Invalid"
)

// condition says how a policy is. Where it has not run now, what was said of its last
// run stands as long as it is the same policy.
func condition(t *turn, before *v1alpha1.PolicyTranslationStatus) metav1.Condition {
	p := t.policy
	switch {
	case p.Mode == v1alpha1.ModeOff:
		return yes("Off", "kvap leaves the policy alone")
	case p.badMode != "":
		return no(reasonBadMode, "%s is %q; say one of %s. Until then the policy deletes nothing",
			v1alpha1.ModeKey, p.badMode, strings.Join(v1alpha1.Modes(), ", "))
	case p.cleanup == nil:
		return no(reasonInvalid, "the policy cannot be read, and deletes nothing: %s", p.why)
	case t.result != nil:
		return t.result.condition(p.Mode == v1alpha1.ModeShadow)
	case before != nil && before.SourceGeneration == p.Generation && before.Mode == p.Mode:
		if old := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady); old != nil && old.Reason != reasonBadMode {
			return *old
		}
	}
	return yes("Scheduled", "it has not run in this form yet")
}

// condition says how a run went.
func (r *RunResult) condition(shadow bool) metav1.Condition {
	done, reason := "the last run deleted", "Scheduled"
	if shadow {
		done, reason = "the last run would have deleted", "Shadow"
	}
	text := done + " nothing"
	if r.Deleted > 0 {
		text = fmt.Sprintf("%s %d objects: %s", done, r.Deleted, firstNames(r.names, r.Deleted))
	}
	if r.Left > 0 {
		text += fmt.Sprintf("; %d more are over the limit of one run, and stay for the next", r.Left)
	}
	if len(r.unserved) > 0 {
		text += "; kinds that the cluster does not have, or of which there is none here: " + strings.Join(r.unserved, ", ")
	}
	switch {
	case r.Denied:
		return no("Forbidden", "a permission is missing, which a ClusterRole with the label rbac.kvap.dev/aggregate-to-controller can grant: %s; %s",
			firstNames(r.problems, r.Failed), text)
	case r.Failed > 0:
		return no("Failed", "%s; %s", firstNames(r.problems, r.Failed), text)
	}
	return yes(reason, "%s", text)
}

// longest is about half of what the API server takes as a message.
const longest = 16 << 10

func yes(reason, format string, args ...any) metav1.Condition {
	return conditionOf(metav1.ConditionTrue, reason, fmt.Sprintf(format, args...))
}

func no(reason, format string, args ...any) metav1.Condition {
	return conditionOf(metav1.ConditionFalse, reason, fmt.Sprintf(format, args...))
}

func conditionOf(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: cut(message, longest)}
}

// cut is a text of at most n bytes, and an ellipsis.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// tell tells of a run that has deleted something, and of a policy that has ceased to
// be as it should.
func (r *Runner) tell(t *turn, now *v1alpha1.PolicyTranslation) {
	ready := now.Status.Conditions[0]
	ran := t.result != nil && (t.result.Deleted > 0 || t.result.Failed > 0)
	worse := ready.Status == metav1.ConditionFalse
	if worse && t.have != nil && !ran {
		old := meta.FindStatusCondition(t.have.Status.Conditions, ready.Type)
		worse = old == nil || old.Reason != ready.Reason || old.Message != ready.Message
	}
	if ran || worse {
		r.Events(t.policy.Ref, ready.Status == metav1.ConditionFalse, ready.Reason, ready.Message)
	}
}
