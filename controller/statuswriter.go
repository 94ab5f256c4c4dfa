package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/vap"
)

// A statusWriter writes the PolicyTranslations.
type statusWriter struct {
	writer *writer
	direct client.Reader
	events func(ref v1alpha1.PolicyReference, warning bool, reason, note string)
	now    func() metav1.Time
	gone   func(by string) bool // a process that judged in shadow
	edited *editMarker
}

// write writes what differs from what is there, and removes the PolicyTranslations
// of policies that are gone. It returns what is there then, in the order of the
// sources. What cannot be written of one policy keeps nothing from the others, and is
// tried again. Of a policy that was edited meanwhile nothing is written.
func (s *statusWriter) write(ctx context.Context, sources []*policySource, out *passResult) (statuses []v1alpha1.PolicyTranslationStatus, again bool, err error) {
	var list v1alpha1.PolicyTranslationList
	if err := s.writer.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, err
	}
	there := map[string]*v1alpha1.PolicyTranslation{}
	for i := range list.Items {
		there[list.Items[i].Name] = &list.Items[i]
	}
	var changed, gone []client.Object
	before := map[string]*v1alpha1.PolicyTranslation{}
	for _, source := range sources {
		name := TranslationName(source.ref)
		have := cmp.Or(there[name], &v1alpha1.PolicyTranslation{})
		delete(there, name)
		var last v1alpha1.PolicyTranslationStatus
		if have.Spec.Source == source.ref {
			last = have.Status
		}
		want := &v1alpha1.PolicyTranslation{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "PolicyTranslation"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ownLabels(nil)},
			Spec:       v1alpha1.PolicyTranslationSpec{Source: source.ref},
			Status:     out.statusOf(source, last),
		}
		want.Status.Shadow = keptShadow(source, have, s.gone)
		want.Status.Conditions = withTimes(s.now(), have.Status.Conditions, want.Status.Conditions)
		want.Status.Observe(have.Generation)
		statuses = append(statuses, want.Status)
		if s.edited.outdates(source) {
			again = true
			continue
		}
		if have.Spec == want.Spec && statusText(have.Status) == statusText(want.Status) {
			continue
		}
		before[name] = have
		changed = append(changed, want)
	}
	for _, have := range there {
		if have.Labels[vap.ManagedByLabel] == Manager {
			gone = append(gone, have.DeepCopy())
		}
	}
	failed := each(changed, func(o client.Object) error {
		return s.writeOne(ctx, before[o.GetName()], o.(*v1alpha1.PolicyTranslation))
	})
	maps.Copy(failed, each(gone, func(o client.Object) error { return s.writer.remove(ctx, o) }))
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		if !apierrors.IsConflict(failed[name]) { // the next pass sees what was written meanwhile
			log.FromContext(ctx).Error(failed[name], "the status cannot be written")
		}
	}
	return statuses, again || len(failed) > 0, nil
}

// maxShadow is of how many processes it is kept what they said in shadow.
const maxShadow = 10

// keptShadow is what other hands have written of the policy in shadow, as far as it is
// about the policy as it is, and the process is there.
func keptShadow(source *policySource, have *v1alpha1.PolicyTranslation, gone func(by string) bool) []v1alpha1.ShadowStatus {
	if source.mode != v1alpha1.ModeShadow || have.Spec.Source != source.ref {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(have.Status.Shadow), func(s v1alpha1.ShadowStatus) bool {
		return s.Generation != source.generation || gone(s.By)
	})
	for len(out) > maxShadow {
		oldest := 0
		for i := range out {
			if out[i].Until.Before(&out[oldest].Until) {
				oldest = i
			}
		}
		out = slices.Delete(out, oldest, oldest+1)
	}
	return out
}

// writeOne writes a PolicyTranslation, its status, and events where it has become ready
// or has ceased to be.
func (s *statusWriter) writeOne(ctx context.Context, have, want *v1alpha1.PolicyTranslation) error {
	status := want.Status
	if have.Spec != want.Spec {
		want.Status = v1alpha1.PolicyTranslationStatus{}
		if err := s.writer.patch(ctx, want, client.FieldOwner(Manager), client.ForceOwnership); err != nil {
			return err
		}
		status.Observe(want.Generation)
	}
	fields := map[string]any{"status": nullsFor(have.Status, status)}
	if version := cmp.Or(want.ResourceVersion, have.ResourceVersion); version != "" {
		fields["metadata"] = map[string]any{"resourceVersion": version} // who has marked it as edited meanwhile keeps the mark
	}
	patch := client.RawPatch(types.MergePatchType, []byte(asJSON(fields)))
	s.writer.tell("status")
	if err := s.writer.client.Status().Patch(ctx, want, patch, client.FieldOwner(Manager)); err != nil {
		return err
	}
	s.edited.written(want.Name)
	s.sendEvents(want.Spec.Source, have.Status, status)
	return nil
}

// nullsFor is a status as a merge patch, in which a field that was there and is
// empty now is null.
func nullsFor(before, status v1alpha1.PolicyTranslationStatus) map[string]any {
	out := fieldsOf(before)
	for key := range out {
		out[key] = nil
	}
	maps.Copy(out, fieldsOf(status))
	// Who writes these may have written them anew meanwhile.
	if equality.Semantic.DeepEqual(before.Shadow, status.Shadow) {
		delete(out, "shadow")
	}
	if equality.Semantic.DeepEqual(before.Erring, status.Erring) {
		delete(out, "erring")
	}
	if good, ok := out["lastGood"].(map[string]any); ok { // one form of the text takes the place of the other
		for _, form := range []string{"policy", "packed"} {
			if _, ok := good[form]; !ok {
				good[form] = nil
			}
		}
	}
	return out
}

func fieldsOf(v any) map[string]any {
	var out map[string]any
	if err := json.Unmarshal([]byte(asJSON(v)), &out); err != nil {
		panic(err) // it was made a moment ago
	}
	return out
}

// sendEvents makes events of what has changed: of whether the policy is ready, of exceptions
// that name it and do not count, and of conditions that have come to have a reason, which is
// no matter of whether it is ready, or not yet.
func (s *statusWriter) sendEvents(ref v1alpha1.PolicyReference, before, now v1alpha1.PolicyTranslationStatus) {
	was := func(condition string) metav1.Condition {
		return *cmp.Or(meta.FindStatusCondition(before.Conditions, condition), &metav1.Condition{})
	}
	ready, old := meta.FindStatusCondition(now.Conditions, v1alpha1.ConditionReady), was(v1alpha1.ConditionReady)
	if ready != nil && ready.Status != metav1.ConditionUnknown && (old.Status != ready.Status || old.Reason != ready.Reason) {
		s.events(ref, ready.Status == metav1.ConditionFalse, ready.Reason, ready.Message)
	}
	for _, e := range now.IgnoredExceptions {
		if !slices.Contains(before.IgnoredExceptions, e) {
			s.events(ref, true, "ExceptionIgnored", fmt.Sprintf("the PolicyException %s/%s does not count: %s", e.Namespace, e.Name, e.Reason))
		}
	}
	told := map[string][]string{
		v1alpha1.ConditionCompiled: {reasonCostly, reasonUnheard, reasonUninstalled}, v1alpha1.ConditionEnforced: {reasonNotSeen},
	}
	for _, c := range now.Conditions {
		if slices.Contains(told[c.Type], c.Reason) && was(c.Type).Reason != c.Reason {
			s.events(ref, true, c.Reason, c.Message)
		}
	}
}

// remembered is the text of the last good version of a policy; nil where there is none.
// It is listed, which the controller may do anyway.
func (s *statusWriter) remembered(ctx context.Context, ref v1alpha1.PolicyReference) ([]byte, error) {
	var list v1alpha1.PolicyTranslationList
	if err := s.direct.List(ctx, &list, client.MatchingFields{"metadata.name": TranslationName(ref)}); err != nil {
		return nil, fmt.Errorf("the last good version of %s: %w", ref.Name, err)
	}
	for i := range list.Items {
		t := &list.Items[i]
		if t.Name == TranslationName(ref) && t.Spec.Source.UID == ref.UID {
			return textOf(t.Status.LastGood)
		}
	}
	return nil, nil
}

// dropLastGood keeps the text of policies out of the cache.
func dropLastGood(o any) (any, error) {
	var kept *v1alpha1.LastGood
	switch o := o.(type) {
	case *v1alpha1.PolicyTranslation:
		kept = o.Status.LastGood
	case *v1alpha1.Migration:
		kept = o.Status.Original
	}
	if kept != nil {
		kept.Policy, kept.Packed = "", nil
	}
	return trimManagedFields(o)
}

// Reasons of conditions that do not end by waiting.
const (
	reasonNameTaken     = "NameTaken"
	reasonNoWebhook     = "NoWebhook"
	reasonRefused       = "Refused"
	reasonLeftOut       = "LeftOut"
	reasonNotCarriedOut = "NotCarriedOut"
	// ReasonRegistryNotAllowed is of a rule about images of a registry that nobody may ask.
	ReasonRegistryNotAllowed = "RegistryNotAllowed"
)

// reasonOf is the reason of a condition for an error.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, errForeign), errors.Is(err, errReserved):
		return reasonNameTaken
	case errors.Is(err, errContested):
		return "Contested"
	case errors.Is(err, errNoFallback):
		return reasonNoWebhook
	case errors.Is(err, errNotReached), errors.Is(err, errNotTakenUp):
		return "NotReached"
	case errors.Is(err, errGoing):
		return "NamespaceTerminating"
	case apierrors.IsForbidden(err):
		return "Forbidden"
	case apierrors.IsInvalid(err):
		return reasonRefused
	}
	return "Failed"
}

// errNoFallback is a fallback that serves nothing although something remains.
var errNoFallback = errors.New("this controller runs without the webhook")

// errNotReached is a webhook that no request of an API server comes to.
var errNotReached = errors.New("the webhook is not reached yet, so no request may depend on it")

// errNotTakenUp are configurations by which no request of an API server comes to the webhook.
var errNotTakenUp = errors.New("API servers are not seen to ask the webhook as it was registered last, so what judged before goes on")

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // kvap's own types always marshal
	}
	return string(text)
}
