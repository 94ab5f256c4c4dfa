package background

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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
// the copies of one that was copied follow it. The Worker ignores its own writes.
func (w *Worker) ObjectChanged(s ObjectChange) {
	switch {
	case !s.Gone && w.backoff.isOwn(s.Object, s.Version):
	case s.Of.Sources:
		for _, p := range w.current.Load().policies {
			for _, r := range p.rules {
				if r.keepsInStep() && len(w.copies(r)) > 0 {
					w.queue.Add(sourceTask{r.id(), s.Object})
				}
			}
		}
	default:
		w.targetSeen(s.Labels)
	}
}

// targetSeen queues the trigger for which an object with these labels was made.
func (w *Worker) targetSeen(own map[string]string) {
	for _, p := range w.current.Load().policies {
		r, trigger := p.made(own)
		if r == nil || r.needsRequest {
			continue
		}
		t := triggerTask{r.id(), trigger}
		w.queue.AddAfter(t, w.backoff.wait(t))
	}
}

// doSource has the copies of an object made anew, or removed with it.
func (w *Worker) doSource(ctx context.Context, r *preparedRule, source v1alpha1.ObjectReference) error {
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
	err = w.each(ctx, of, r.policy.scope(), labels.SelectorFromSet(selector), func(one map[string]any) {
		own := labelsOf(one)
		if by, _ := r.policy.made(own); by != r {
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
// what; nil where that rule does not keep its objects in step.
func (p *preparedPolicy) made(own map[string]string) (*preparedRule, v1alpha1.ObjectReference) {
	for _, r := range p.rules {
		if r.keepsInStep() && r.selector(nil).Matches(labels.Set(own)) {
			if trigger := triggerOf(own); trigger.UID != "" && trigger.Kind != "" && r.namesKind(trigger) {
				return r, trigger
			}
			break
		}
	}
	return nil, v1alpha1.ObjectReference{}
}

// triggerOf is what the labels of an object say that it was made for.
func triggerOf(own map[string]string) v1alpha1.ObjectReference {
	const prefix = "generate.kyverno.io/trigger-"
	return v1alpha1.ObjectReference{
		APIVersion: strings.TrimPrefix(own[prefix+"group"]+"/"+own[prefix+"version"], "/"), Kind: own[prefix+"kind"],
		Namespace: own[prefix+"namespace"], UID: types.UID(own[prefix+"uid"]),
	}
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
			if r.keepsInStep() && slices.Contains(w.makes(r), of.ObjectKind) {
				w.options.Tell(Notice{Policy: p.Of, Warning: true, Reason: reasonForbidden, Note: fmt.Sprintf("rule %s: objects of the kind %s cannot be watched: %v", r.name, of.ObjectKind.Kind, explained(err))})
			}
		}
	}
}

// calm is after how long without a repair the next one is done at once again.
const calm = 2 * time.Minute

// A repairBackoff remembers what the Worker wrote lately, so that it does not react to its own
// writes. Where somebody else changes an object again and again, the Worker repairs it later
// and later.
type repairBackoff struct {
	now func() time.Time

	mu       sync.Mutex
	versions map[v1alpha1.ObjectReference]string // that were written, without the UID
	repairs  map[triggerTask]repairs
}

type repairs struct {
	times int
	last  time.Time
}

// wrote remembers a version of an object.
func (p *repairBackoff) wrote(at v1alpha1.ObjectReference, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.UID = ""
	p.versions[at] = version
}

// isOwn tells that the version of an object was written here.
func (p *repairBackoff) isOwn(at v1alpha1.ObjectReference, version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.UID = ""
	return version != "" && p.versions[at] == version
}

// repaired remembers that a task had something to write.
func (p *repairBackoff) repaired(t triggerTask) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.repairs[t]
	if p.now().Sub(r.last) > calm+waitAfter(r.times) {
		r.times = 0
	}
	p.repairs[t] = repairs{r.times + 1, p.now()}
}

// wait is how long the next repair waits.
func (p *repairBackoff) wait(t triggerTask) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.repairs[t]
	if r.times < 3 || p.now().Sub(r.last) > calm+waitAfter(r.times) {
		return 0
	}
	return waitAfter(r.times - 2)
}

// forget lets go of what is long past.
func (p *repairBackoff) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.versions)
	for t, r := range p.repairs {
		if p.now().Sub(r.last) > calm+longestWait {
			delete(p.repairs, t)
		}
	}
}
