package background

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// generate does the work of a generate rule.
func (w *Worker) generate(ctx context.Context, j job, t foundTrigger, request *interp.Request) workResult {
	switch {
	case j.remove && !j.rule.keepsInStep():
		return skipped("the rule does not keep its objects in step")
	case j.remove && !t.gone && j.stillTriggers(ctx, request):
		return skipped("the object is a trigger still")
	case j.remove:
		return w.removeAll(ctx, w.makes(j.rule), j.rule.policy.scope(), j.rule.selector(t.object), nil)
	}
	g := j.rule.policy.engine.Generate(ctx, request, j.rule.policy.FullName(), j.rule.name, w.options.Cluster)
	switch {
	case g == nil:
		return skipped("the rule is gone")
	case g.Status == interp.Error && len(g.Targets) == 0:
		return failed(j.hide(errors.New(g.Message)))
	case g.Excepted:
		return skipped(j.hideText(g.Message))
	case g.Status != interp.Pass && g.Status != interp.Error:
		if err := w.stale(ctx, j, t.object, nil); err != nil {
			return failed(err)
		}
		return skipped(j.hideText(g.Message))
	}
	out := w.write(ctx, j, g)
	if out.err == nil {
		if err := w.stale(ctx, j, t.object, g.Targets); err != nil {
			return failed(err)
		}
	}
	return out
}

// write makes the objects of a generation. What fails for one keeps no other.
func (w *Worker) write(ctx context.Context, j job, g *interp.Generation) workResult {
	out := workResult{state: v1alpha1.GenerateCompleted}
	if err := w.announce(ctx, j.rule, g.Targets); err != nil {
		return failed(err)
	}
	var failures []error
	for _, err := range g.Errors {
		failures = append(failures, j.hide(err))
	}
	for i := range g.Targets {
		target := &g.Targets[i]
		follows := target.Source != nil && target.Synchronize
		if target.Source != nil && (target.Synchronize || !j.rule.open) {
			// Where the label is missing, changes of the source are not noticed; the copy
			// is made all the same.
			err := w.options.Cluster.Label(ctx, *target.Source, map[string]*string{interp.CloneSourceLabel: new(string)})
			if follows && apierrors.IsNotFound(err) {
				w.queue.Add(sourceOf(j, target))
				continue
			}
			if err != nil {
				w.options.Tell(Notice{Policy: j.rule.policy.Of, About: j.trigger, Warning: true, Reason: reasonOf(err), Note: note(j.rule.name, j.trigger, "the source cannot be labelled: "+explained(err).Error())})
			}
		}
		written, err := w.put(ctx, j, target)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s %s: %w", target.Kind, strings.TrimPrefix(target.Namespace+"/"+target.Name, "/"), explained(err)))
		} else if written {
			out.resources = append(out.resources, referenceOf(target.Object))
			if follows {
				// A source that went before its copy was made: the task of that change found no copy
				// to remove. One that cannot be read now is read by the task.
				source := sourceOf(j, target)
				if _, there, err := w.live(ctx, source.source); err != nil || !there {
					w.queue.Add(source)
				}
			}
		}
	}
	return out.failedBy(failures)
}

// sourceOf looks after all copies of the object that a target is a copy of.
func sourceOf(j job, target *interp.Generated) sourceTask {
	s := target.Source
	return sourceTask{j.rule.id(), v1alpha1.ObjectReference{
		APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name,
		UID: types.UID(labelsOf(target.Object)[interp.SourceUIDLabel]),
	}}
}

// put makes an object, or puts it in the place of another where the rule keeps it in step,
// and looks again where somebody else writes at the same time. Nothing is written where
// nothing changes.
func (w *Worker) put(ctx context.Context, j job, target *interp.Generated) (written bool, err error) {
	taken := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retry.OnError(wait.Backoff{Steps: conflicts + 1}, taken, func() error {
		live, found, err := w.options.Cluster.Get(ctx, target.APIVersion, target.Kind, target.Namespace, target.Name)
		if err != nil {
			return err
		}
		if !found {
			live = nil
		}
		object := target.Over(live)
		version := ""
		switch {
		case object == nil:
			return nil
		case j.rule.policy.ServerSideApply:
			version, err = w.options.Cluster.Apply(ctx, target.Object)
		case live == nil:
			version, err = w.options.Cluster.Create(ctx, object)
		default:
			version, err = w.options.Cluster.Update(ctx, object, "")
		}
		switch {
		case isEnding(err):
			return nil
		case err == nil:
			w.backoff.wrote(referenceOf(object), version)
			written = live == nil || version != metaText(live, "resourceVersion")
		}
		return err
	})
	return written, err
}

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
func (w *Worker) removeAll(ctx context.Context, kinds []v1alpha1.KindReference, namespace string, selector labels.Selector, keep []interp.Generated) workResult {
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
