package controller

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kvap/kvap/api/v1alpha1"
)

// An editMarker says of a policy that was edited that it is not ready, as soon as the edit is
// heard of: until a pass has enforced it, which may take seconds, its PolicyTranslation is about
// the version before. It has policies of kvap.dev say whether they are ready (readiness.go). It
// reconciles PolicyTranslations beside the passes.
type editMarker struct {
	client client.Client
	tell   func(verb string)

	mu    sync.Mutex
	heard map[string]sourceVersion // by the name of the PolicyTranslation
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// A sourceVersion is a policy as it was at a time.
type sourceVersion struct {
	uid    types.UID
	digest string
}

func versionOf(o *unstructured.Unstructured) sourceVersion {
	return sourceVersion{o.GetUID(), hashOf(string(SourceText(o)))}
}

func newEditMarker(c client.Client, tell func(verb string)) *editMarker {
	return &editMarker{client: c, tell: tell, heard: map[string]sourceVersion{}}
}

// start gives the marker the queue of a replica that leads, which looks at all policies once.
func (m *editMarker) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = queue
	for name := range m.heard {
		m.look(name)
	}
	return nil
}

// look has a PolicyTranslation be looked at, by a replica that leads.
func (m *editMarker) look(name string) {
	if m.queue != nil {
		m.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
}

// written is told of a PolicyTranslation that a pass has written.
func (m *editMarker) written(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.look(name)
}

// handler has the marker hear of the policies of a kind.
func (m *editMarker) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { m.changed(o.(*unstructured.Unstructured)) },
		UpdateFunc: func(_, o any) { m.changed(o.(*unstructured.Unstructured)) },
		DeleteFunc: func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			m.gone(o.(*unstructured.Unstructured))
		},
	}
}

// changed is told of a policy that has come, or was written.
func (m *editMarker) changed(o *unstructured.Unstructured) {
	ref, now := referenceTo(o), versionOf(o)
	name := TranslationName(ref)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heard[name] == now && ref.Group != v1alpha1.Group { // whose status somebody may have written
		return
	}
	m.heard[name] = now
	m.look(name)
}

// gone is told of a policy that was deleted.
func (m *editMarker) gone(o *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.heard, TranslationName(referenceTo(o)))
}

// outdates tells that another version of a policy was heard of than a pass has read. Of one whose
// kind is gone nothing more is heard.
func (m *editMarker) outdates(s *policySource) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	heard, ok := m.heard[TranslationName(s.ref)]
	return ok && !s.uninstalled && heard != sourceVersion{s.ref.UID, s.digest}
}

// reasonEdited is the reason of Ready where what is said is about an earlier version.
const reasonEdited = "Edited"

// Reconcile marks a PolicyTranslation that is about another version of its policy, and then has
// the policy say the same. What a pass writes meanwhile is looked at again.
func (m *editMarker) Reconcile(ctx context.Context, of reconcile.Request) (reconcile.Result, error) {
	m.mu.Lock()
	heard, ok := m.heard[of.Name]
	m.mu.Unlock()
	t := &v1alpha1.PolicyTranslation{}
	if err := m.client.Get(ctx, of.NamespacedName, t); err != nil || !ok {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := m.mark(ctx, t, heard)
	if err == nil {
		err = m.tellReady(ctx, t)
	}
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: retryAfter / 10}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err): // as by roles of an earlier version, or a policy on */*
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// mark marks a PolicyTranslation that is about another version of its policy than was heard of.
func (m *editMarker) mark(ctx context.Context, t *v1alpha1.PolicyTranslation, heard sourceVersion) error {
	ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
	if (sourceVersion{t.Spec.Source.UID, t.Status.SourceDigest}) == heard || ready == nil || ready.Reason == reasonEdited {
		return nil
	}
	marked := slices.DeleteFunc(slices.Clone(t.Status.Conditions), func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionStalled })
	edited := isEdited()
	edited.ObservedGeneration = ready.ObservedGeneration
	meta.SetStatusCondition(&marked, edited)
	patch := map[string]any{
		"metadata": map[string]any{"resourceVersion": t.ResourceVersion}, "status": map[string]any{"conditions": marked},
	}
	m.tell("status")
	return m.client.Status().Patch(ctx, t, client.RawPatch(types.MergePatchType, []byte(asJSON(patch))), client.FieldOwner(Manager))
}

// isEdited is Ready where what is said is about an earlier version.
func isEdited() metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: reasonEdited,
		Message: "the policy was edited; what is said is about the version before",
	}
}
