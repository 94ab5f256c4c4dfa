package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A handover brings the native policies of a cluster to what is wanted: steps 4 to 6
// of a pass.
type handover struct {
	client client.Reader
	writer *writer
	canary *canary
	// mutations tells of a cluster that serves MutatingAdmissionPolicies.
	mutations bool
	step      func(Step)
	// corrections are of what somebody else has changed.
	corrections *corrections
}

// handoverResult is how far a handover came.
type handoverResult struct {
	live    clusterState
	failed  map[string]error // by policy
	pending bool             // there is more to do
	late    map[string]bool  // policies that are not as wanted yet
	seen    error            // why the API servers are not seen to judge by what is live
}

// rounds bounds a handover. Each round writes, sees or removes all that it can; a
// few are enough for any order that rules move in.
const rounds = 12

// run compares, and writes what can be written, until nothing is left to do. A policy with
// rules that are kept stays.
func (h *handover) run(ctx context.Context, wanted map[string]*wantedPolicy, kept map[string]bool) (handoverResult, error) {
	out := handoverResult{failed: map[string]error{}}
	for range rounds {
		var err error
		if out.live, err = readState(ctx, h.client, h.mutations); err != nil {
			out.pending = true // nobody knows what is there
			return out, err
		}
		h.canary.note(out.live)
		p := planFor(wanted, out.live, out.failed, h.canary.isSeen(out.live), kept)
		maps.Copy(out.failed, p.foreign)
		out.late = map[string]bool{}
		for _, o := range p.write {
			out.late[boundTo(o)] = true
		}
		for _, name := range p.deferred {
			out.late[name] = true
		}
		more, err := h.round(ctx, &out, p)
		if err != nil || !more {
			out.pending = out.pending || len(p.write)+len(p.deferred)+len(p.remove) > 0 || p.blocked && out.seen != nil
			return out, err
		}
	}
	out.pending = true
	return out, errors.New("native policies do not come to rest: somebody else changes them all the time")
}

// isDone tells that there is nothing to hand over, and that every API server judges by
// what is there.
func (h *handover) isDone(ctx context.Context, wanted map[string]*wantedPolicy) bool {
	l, err := readState(ctx, h.client, h.mutations)
	if err != nil {
		return false
	}
	p := planFor(wanted, l, nil, true, nil)
	return len(p.write)+len(p.deferred) == 0 && h.canary.see(ctx, l) == nil
}

// round does the first of what a plan has: write, see, remove, or make stand-ins where rules move in a circle.
func (h *handover) round(ctx context.Context, out *handoverResult, p handoverPlan) (more bool, err error) {
	if len(p.write) > 0 {
		h.step(StepWrite)
		h.write(ctx, out, p.write)
		return true, ctx.Err()
	}
	if !h.canary.isSeen(out.live) {
		h.step(StepSee)
		if out.seen = h.canary.see(ctx, out.live); out.seen != nil {
			return false, ctx.Err()
		}
		return len(p.deferred) > 0 || p.blocked || len(p.remove) > 0, nil
	}
	out.seen = nil
	if len(p.remove) > 0 {
		h.step(StepRemove)
		failed := h.remove(ctx, p.remove)
		maps.Copy(out.failed, failed)
		return len(failed) == 0, ctx.Err()
	}
	if len(p.deferred) > 0 { // rules change places with one another
		h.step(StepWrite)
		failed := each(standIns(p.deferred, out.live), func(o client.Object) error { return h.writer.apply(ctx, o) })
		maps.Copy(out.failed, failed)
		return len(failed) == 0, ctx.Err()
	}
	return false, nil
}

// write writes policies and then bindings. Where one object of a policy cannot be written,
// the pass leaves the policy alone.
func (h *handover) write(ctx context.Context, out *handoverResult, objects []client.Object) {
	policies, bindings := split(objects)
	for _, some := range [][]client.Object{policies, bindings} {
		failed := each(some, func(o client.Object) error {
			if err := out.failed[boundTo(o)]; err != nil {
				return err
			}
			return h.bring(ctx, o, out.live)
		})
		for _, o := range some {
			if err := failed[keyOf(o)]; err != nil {
				out.failed[boundTo(o)] = err
			}
		}
	}
}

// bring brings an object to what is wanted of it.
func (h *handover) bring(ctx context.Context, want client.Object, l clusterState) error {
	return h.corrections.write(writtenKey(want), want, func() error { return h.applyOrReplace(ctx, want, l) })
}

// applyOrReplace applies an object, and replaces it where that is not enough.
func (h *handover) applyOrReplace(ctx context.Context, want client.Object, l clusterState) error {
	if have, ok := l.bindings[keyOf(want)]; ok && isBinding(want) && boundTo(have) != boundTo(want) {
		// which cannot be changed
		if err := h.writer.remove(ctx, have); err != nil {
			return err
		}
	}
	got, _ := want.DeepCopyObject().(client.Object)
	err := h.writer.apply(ctx, got)
	if have := l.like(want); apierrors.IsInvalid(err) && have != nil && isOurs(have) {
		// It may be what others have added that is refused, as a paramRef to what the controller may not read.
		got, err = have.DeepCopyObject().(client.Object), nil
	} else if err == nil && sameObject(want, got) {
		return nil
	}
	if err != nil {
		return err
	}
	setContent(got, want)
	return h.writer.replace(ctx, got)
}

// remove removes bindings and then policies, as they are in order.
func (h *handover) remove(ctx context.Context, objects []client.Object) map[string]error {
	policies, bindings := split(objects)
	for _, o := range objects {
		h.corrections.forget(writtenKey(o))
	}
	remove := func(o client.Object) error { return h.writer.remove(ctx, o.DeepCopyObject().(client.Object)) }
	if failed := each(bindings, remove); len(failed) > 0 {
		return failed
	}
	return each(policies, remove)
}

// split are the policies and the bindings among some objects.
func split(objects []client.Object) (policies, bindings []client.Object) {
	bindings = slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool { return !isBinding(o) })
	return slices.DeleteFunc(slices.Clone(objects), isBinding), bindings
}

// retryAfter is when a pass that left something undone is followed by another.
const retryAfter = 2 * time.Second

// writers is how many requests are under way at a time.
const writers = 8

// errForeign is an object of the name that somebody else made.
var errForeign = errors.New("an object of this name exists that kvap did not make; rename it or the policy")

// errReserved is a policy of a name that the controller needs.
var errReserved = errors.New("the controller needs this name for itself; rename the policy")

// A writer writes to the cluster.
type writer struct {
	client client.Client
	// direct reads without the cache.
	direct client.Reader
	tell   func(verb string) // of each write, for the metrics
	// instance is what writes, for whoever looks at an object.
	instance string
}

// apply gives an object the fields that o has, by server-side apply. An object that
// the controller did not make stays as it is. o becomes what the API server has.
func (w *writer) apply(ctx context.Context, o client.Object) error {
	have, _ := o.DeepCopyObject().(client.Object)
	err := w.direct.Get(ctx, client.ObjectKeyFromObject(o), have)
	options := []client.PatchOption{client.FieldOwner(Manager)}
	switch {
	case apierrors.IsNotFound(err): // who is first to make it has it: nothing is forced
	case err != nil:
		return err
	case !isOurs(have):
		return errForeign
	default:
		options = append(options, client.ForceOwnership)
	}
	if err = w.patch(ctx, o, options...); apierrors.IsConflict(err) && len(options) == 1 {
		return errForeign
	}
	return err
}

// patch applies all that o has, but for its status, without a look at what is there.
func (w *writer) patch(ctx context.Context, o client.Object, options ...client.PatchOption) error {
	fields := fieldsOf(o)
	delete(fields, "status")
	if meta, ok := fields["metadata"].(map[string]any); ok {
		for _, key := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"} {
			delete(meta, key)
		}
		annotations, _ := meta["annotations"].(map[string]any)
		meta["annotations"] = withInstance(annotations, w.instance)
	}
	w.tell("apply")
	return w.client.Patch(ctx, o, client.RawPatch(types.ApplyPatchType, []byte(asJSON(fields))), options...)
}

// withInstance are annotations with the one that names the instance.
func withInstance(annotations map[string]any, instance string) map[string]any {
	out := map[string]any{instanceKey: instance}
	maps.Copy(out, annotations)
	return out
}

// replace makes an object exactly what o is, for what others have added to its spec,
// which server-side apply leaves to them.
func (w *writer) replace(ctx context.Context, o client.Object) error {
	w.tell("update")
	return w.client.Update(ctx, o, client.FieldOwner(Manager))
}

// remove removes an object, if it is the one that was meant.
func (w *writer) remove(ctx context.Context, o client.Object) error {
	uid := o.GetUID()
	w.tell("delete")
	return client.IgnoreNotFound(w.client.Delete(ctx, o, client.Preconditions{UID: &uid}))
}

// each does something with all objects, several at a time, and returns what went
// wrong by name.
func each(objects []client.Object, do func(client.Object) error) map[string]error {
	failed := map[string]error{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(writers)
	for _, o := range objects {
		group.Go(func() error {
			if err := do(o); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[keyOf(o)] = fmt.Errorf("%s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return failed
}
