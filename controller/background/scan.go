package background

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// doScan has a rule look after what it has made, and generate for objects that were
// there before it where it says so: as many as there is room for, from a place on. Next
// is where to go on; the zero place is nowhere.
func (w *Worker) doScan(ctx context.Context, r *preparedRule, from scanCursor) (next scanCursor, err error) {
	switch {
	case r.invalid || r.needsRequest:
		return scanCursor{}, nil
	case r.changes && !r.existing:
		return scanCursor{}, nil
	case r.changes:
		return w.eachMatched(ctx, r, from, func(object map[string]any) bool {
			return slices.ContainsFunc(r.policy.engine.Triggered(ctx, withoutRequest(object)), func(t interp.RuleResult) bool {
				return t.Rule == r.name && t.Status == interp.Pass
			})
		})
	}
	var failures []error
	if r.synchronize && from == (scanCursor{}) {
		for _, k := range w.makes(r) { // the triggers of all that the rule has made
			err := w.each(ctx, k, r.policy.scope(), r.selector(nil), func(object map[string]any) { w.targetSeen(labelsOf(object)) })
			failures = append(failures, explained(err))
		}
	}
	if r.existing {
		own := r.selector(nil) // what the rule itself has made triggers nothing: there would be more each time
		next, err = w.eachMatched(ctx, r, from, func(object map[string]any) bool {
			return !own.Matches(labels.Set(labelsOf(object))) && slices.ContainsFunc(r.policy.engine.GenerateTriggers(ctx, withoutRequest(object)), func(t interp.GenerateTrigger) bool {
				return t.Rule == r.name && t.Action == interp.GenerateTargets
			})
		})
		failures = append(failures, err)
	}
	return next, errors.Join(failures...)
}

// eachMatched has the work of a rule done for each object of the kinds that it matches
// which triggers it, as long as not too much waits. Next is where to go on then.
func (w *Worker) eachMatched(ctx context.Context, r *preparedRule, from scanCursor, triggers func(map[string]any) bool) (next scanCursor, err error) {
	var failures []error
	kinds := w.matched(r)
	kinds = kinds[max(0, slices.Index(kinds, from.kind)):] // all, where the kind is not among them any more
	for _, k := range kinds {
		at := scanCursor{kind: k}
		if k == from.kind {
			at = from
		}
		for more := true; more; more = at.from != "" {
			if w.queue.Len() >= w.room {
				return at, errors.Join(failures...)
			}
			page, following, err := w.options.Cluster.Page(ctx, k.APIVersion, k.Kind, r.policy.scope(), labels.Everything(), at.from)
			if err != nil {
				failures = append(failures, fmt.Errorf("existing objects: %w", explained(err)))
				break
			}
			for _, object := range page {
				if !w.current.Load().leavesOut(object) && triggers(object) {
					w.queue.Add(triggerTask{r.id(), referenceOf(object)})
				}
			}
			at.from = following
		}
	}
	return scanCursor{}, errors.Join(failures...)
}

// leavesOut tells of an object in a namespace of which no request is asked about, or of
// such a namespace itself.
func (s *policySnapshot) leavesOut(object map[string]any) bool {
	at := referenceOf(object)
	namespace := at.Namespace
	if at.APIVersion == "v1" && at.Kind == "Namespace" {
		namespace = at.Name
	}
	return namespace != "" && slices.Contains(s.excluded, namespace)
}

// asksOperation tells that all filters of a rule name operations, so that nothing
// matches that has none.
func asksOperation(m *policy.MatchBlock) bool {
	named := func(f *policy.Filter) bool { return len(f.Operations) > 0 }
	switch {
	case m == nil:
		return false
	case len(m.Any) > 0:
		return !slices.ContainsFunc(m.Any, func(f *policy.Filter) bool { return !named(f) })
	case len(m.All) > 0:
		return slices.ContainsFunc(m.All, named)
	}
	return m.Legacy != nil && named(m.Legacy)
}

// asksUser tells that a policy asks who sends a request, in a variable or by what it
// matches.
func asksUser(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Rules, func(r *policy.Rule) bool {
		return holds(r.Source, userVariables) || matchesUser(r.Match) || matchesUser(r.Exclude)
	})
}

// userVariables are those that only a request has a value for.
var userVariables = regexp.MustCompile(`\b(request\.(userInfo|roles|clusterRoles)|serviceAccountName|serviceAccountNamespace)\b`)

// userInCEL is what only a request has a value for, as expressions in CEL name it.
var userInCEL = regexp.MustCompile(`\brequest\s*(\.\??\s*|\[\??\s*['"])userInfo\b`)

// holds tells that a text below a node matches.
func holds(n *policy.Node, text *regexp.Regexp) bool {
	if n == nil {
		return false
	}
	for _, item := range n.Items {
		if holds(item, text) {
			return true
		}
	}
	for _, f := range n.Fields {
		if text.MatchString(f.Key) || holds(f.Value, text) {
			return true
		}
	}
	return n.Kind == policy.String && text.MatchString(n.Str)
}

func matchesUser(m *policy.MatchBlock) bool {
	return slices.ContainsFunc(m.Filters(), func(f *policy.Filter) bool { return len(f.Roles)+len(f.ClusterRoles)+len(f.Subjects) > 0 })
}

// A scanCursor is how far the objects that a rule may be about were looked at: up to a page
// of a kind. The zero place is the beginning.
type scanCursor struct {
	kind v1alpha1.KindReference
	from string
}

// each visits the objects of a kind that a selector selects, however many there are.
func (w *Worker) each(ctx context.Context, k v1alpha1.KindReference, namespace string, selector labels.Selector, visit func(map[string]any)) error {
	for from := ""; ; {
		page, next, err := w.options.Cluster.Page(ctx, k.APIVersion, k.Kind, namespace, selector, from)
		if err != nil {
			return err
		}
		for _, object := range page {
			visit(object)
		}
		if from = next; from == "" {
			return nil
		}
	}
}

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
	of := v1alpha1.KindReference{APIVersion: source.APIVersion, Kind: source.Kind}
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
			if r.keepsInStep() && slices.Contains(w.makes(r), of.KindReference) {
				w.options.Tell(Notice{Policy: p.Of, Changes: r.changes, Warning: true, Reason: reasonForbidden, Note: fmt.Sprintf("rule %s: objects of the kind %s cannot be watched: %v", r.name, of.Kind, explained(err))})
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
	maps.DeleteFunc(p.repairs, func(_ triggerTask, r repairs) bool { return p.now().Sub(r.last) > calm+longestWait })
}
