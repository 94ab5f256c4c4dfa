package background

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
)

// An ObjectChange is an object that was generated or copied, as it is now.
type ObjectChange struct {
	Of      Watched
	Object  v1alpha1.ObjectReference
	Version string // the resource version
	Labels  map[string]string
	Gone    bool
}

// ObjectChanged hears of a change. An object that was generated is made again as it is wanted;
// the copies of one that was copied follow it. What this process wrote itself is no
// news.
func (w *Worker) ObjectChanged(s ObjectChange) {
	switch {
	case !s.Gone && w.backoff.isOwn(s.Object, s.Version):
	case s.Of.Sources:
		w.sourceSeen(s)
	default:
		w.targetSeen(s.Labels)
	}
}

// targetSeen has a rule look after what it made for a trigger.
func (w *Worker) targetSeen(own map[string]string) {
	for key, p := range w.current.Load().policies {
		rule, trigger, ok := p.made(own)
		if !ok || p.rule(rule).needsRequest {
			continue
		}
		t := task{policy: key, rule: rule, trigger: trigger}
		w.queue.AddAfter(t, w.backoff.wait(t))
	}
}

// sourceSeen has the rules that copy objects of the kind look after their copies.
func (w *Worker) sourceSeen(s ObjectChange) {
	for key, p := range w.current.Load().policies {
		for _, r := range p.rules {
			if r.keepsInStep() && len(w.copies(p, r)) > 0 {
				w.queue.Add(task{source: true, policy: key, rule: r.name, trigger: s.Object})
			}
		}
	}
}

// doSource has the copies of an object made anew, or removed with it.
func (w *Worker) doSource(ctx context.Context, p *preparedPolicy, rule string, source v1alpha1.ObjectReference) error {
	_, there, err := w.live(ctx, source)
	if err != nil {
		return explained(err)
	}
	selector := interp.SourceSelector(map[string]any{
		"apiVersion": source.APIVersion, "kind": source.Kind,
		"metadata": map[string]any{"namespace": source.Namespace, "name": source.Name, "uid": string(source.UID)},
	})
	var failures []error
	of := ObjectKind{source.APIVersion, source.Kind}
	err = w.each(ctx, of, scopeOf(p.Policy.Policy), labels.SelectorFromSet(selector), func(one map[string]any) {
		own := labelsOf(one)
		if by, _, ok := p.made(own); !ok || by != rule {
			return
		}
		if there {
			w.targetSeen(own)
			return
		}
		if err := w.options.Cluster.Delete(ctx, one); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failures = append(failures, fmt.Errorf("a copy of a source that is gone: %w", explained(err)))
		}
	})
	if err != nil {
		failures = append(failures, explained(err))
	}
	return joined(failures)
}

// made tells which rule of the policy an object's labels say has made it, and for
// what; ok where that rule keeps its objects in step.
func (h *preparedPolicy) made(own map[string]string) (rule string, trigger v1alpha1.ObjectReference, ok bool) {
	p := h.Policy.Policy
	for _, r := range h.rules {
		if r.keepsInStep() && labels.SelectorFromSet(interp.TargetSelector(p, r.name, nil)).Matches(labels.Set(own)) {
			trigger := triggerOf(own)
			return r.name, trigger, trigger.UID != "" && trigger.Kind != "" && r.namesKind(trigger)
		}
	}
	return "", v1alpha1.ObjectReference{}, false
}

// triggerOf is what the labels of an object say that it was made for.
func triggerOf(own map[string]string) v1alpha1.ObjectReference {
	const prefix = "generate.kyverno.io/trigger-"
	return v1alpha1.ObjectReference{
		APIVersion: strings.TrimPrefix(own[prefix+"group"]+"/"+own[prefix+"version"], "/"), Kind: own[prefix+"kind"],
		Namespace: own[prefix+"namespace"], UID: types.UID(own[prefix+"uid"]),
	}
}

func labelsOf(object map[string]any) map[string]string {
	out := map[string]string{}
	meta, _ := object["metadata"].(map[string]any)
	own, _ := meta["labels"].(map[string]any)
	for key, value := range own {
		out[key], _ = value.(string)
	}
	return out
}

// WatchFailed hears that objects cannot be watched: those that were changed or removed by
// others are found only when everything is looked at. It is told once.
func (w *Worker) WatchFailed(of Watched, err error) {
	w.mu.Lock()
	told := w.unwatched[of]
	w.unwatched[of] = true
	w.mu.Unlock()
	if told || !apierrors.IsForbidden(err) {
		return
	}
	for _, p := range w.current.Load().policies {
		for _, r := range p.rules {
			if r.keepsInStep() && slices.Contains(w.makes(p, r), of.ObjectKind) {
				w.options.Tell(Notice{Policy: p.Of, Warning: true, Reason: reasonForbidden, Note: fmt.Sprintf("rule %s: objects of the kind %s cannot be watched: %v", r.name, of.ObjectKind.Kind, explained(err))})
			}
		}
	}
}
