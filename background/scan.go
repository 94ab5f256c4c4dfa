package background

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

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
	kind ObjectKind
	from string
}

// each visits the objects of a kind that a selector selects, however many there are.
func (w *Worker) each(ctx context.Context, k ObjectKind, namespace string, selector labels.Selector, visit func(map[string]any)) error {
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
