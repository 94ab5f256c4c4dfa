package background

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// conflicts is how often an object that changes under the work is looked at again
// before the work waits.
const conflicts = 3

// mutateExisting does the work of a rule that changes existing objects. What fails for
// one keeps no other. An object that was changed is not changed again when the work is
// tried again: a patch may come to something else the second time.
func (w *Worker) mutateExisting(ctx context.Context, j job, t foundTrigger, request *interp.Request) workResult {
	if t.gone { // it is the old object of its request
		delete(request.Admission, "object")
	}
	objects := &targetReader{ObjectReader: w.options.Cluster, kinds: w.options.Kinds}
	wanted := func() []interp.TargetMutation { // what the rule makes of the objects that it selects
		p := j.rule.policy
		return p.engine.MutateExisting(ctx, request, p.FullName(), j.rule.name, objects)
	}
	all := wanted()
	if all == nil {
		return skipped("the rule is gone, or the object triggers it no longer")
	}
	done, wrote := slices.Clone(j.done), false // what was changed, now or in an earlier try
	var failures []error
	for i := range all {
		m := &all[i]
		if m.Before == nil {
			if m.Status == interp.Error {
				failures = append(failures, j.hide(errors.New(m.Message)))
			}
			continue
		}
		at := referenceOf(m.Before)
		if slices.Contains(done, at) {
			continue
		}
		written := false
		err := retry.OnError(wait.Backoff{Steps: conflicts + 1}, apierrors.IsConflict, func() (err error) {
			if m == nil { // it has changed meanwhile: what is wanted of it as it is now
				now := wanted()
				i := slices.IndexFunc(now, func(m interp.TargetMutation) bool { return m.Before != nil && referenceOf(m.Before) == at })
				if i < 0 {
					return nil
				}
				m = &now[i]
			}
			written, err = w.change(ctx, j, m)
			m = nil
			return err
		})
		if written {
			wrote, done = true, append(done, at)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			failures = append(failures, fmt.Errorf("%s %s: %w", at.Kind, strings.TrimPrefix(at.Namespace+"/"+at.Name, "/"), explained(err)))
		}
	}
	if wrote {
		w.backoff.repaired(triggerTask{j.rule.id(), j.trigger})
	}
	if len(failures) > 0 && objects.denied != nil {
		failures = append(failures, explained(objects.denied))
	}
	if len(failures) == 0 && len(all) == 1 && all[0].Before == nil {
		return skipped(j.hideText(all[0].Message))
	}
	return workResult{state: v1alpha1.GenerateCompleted, resources: done}.failedBy(failures)
}

// change writes an object as the rule wants it, if that is not what it is. It stays the
// object that it was, at the version that was read.
func (w *Worker) change(ctx context.Context, j job, m *interp.TargetMutation) (written bool, err error) {
	switch scope := j.rule.policy.scope(); {
	case m.Status == interp.Error:
		return false, j.hide(errors.New(m.Message))
	case m.Status != interp.Pass:
		return false, nil
	case scope != "" && metaText(m.Before, "namespace") != scope:
		return false, fmt.Errorf("it is not in the namespace of the policy")
	case referenceOf(m.After) != referenceOf(m.Before):
		return false, errors.New("the patch makes another object of it: apiVersion, kind, namespace, name and uid stay as they are")
	}
	after := maps.Clone(m.After)
	meta, _ := after["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	meta["resourceVersion"] = metaText(m.Before, "resourceVersion")
	after["metadata"] = meta
	if reflect.DeepEqual(after, m.Before) {
		return false, nil
	}
	version, err := w.options.Cluster.Update(ctx, after, m.Subresource)
	if err != nil {
		return false, err
	}
	w.backoff.wrote(referenceOf(after), version)
	return true, nil
}

// targetReader notes a permission that was missing when objects were asked for, and asks for
// each of the kinds that a pattern stands for.
type targetReader struct {
	interp.ObjectReader
	kinds  func(group, version, kind string) []v1alpha1.KindReference
	denied error
}

// Get finds an object.
func (a *targetReader) Get(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, bool, error) {
	object, found, err := a.ObjectReader.Get(ctx, apiVersion, kind, namespace, name)
	a.note(err)
	return object, found, err
}

// List finds objects.
func (a *targetReader) List(ctx context.Context, apiVersion, kind, namespace string, selector labels.Selector) ([]map[string]any, error) {
	served := []v1alpha1.KindReference{{APIVersion: apiVersion, Kind: kind}}
	if strings.ContainsAny(apiVersion, "*?") {
		k, _ := policy.ParseKind(apiVersion + "/" + kind)
		if served = a.kinds(k.Group, k.Version, k.Kind); len(served) == 0 {
			return nil, fmt.Errorf("the cluster serves no kind %s/%s", apiVersion, kind)
		}
	}
	var out []map[string]any
	for _, one := range served {
		list, err := a.ObjectReader.List(ctx, one.APIVersion, one.Kind, namespace, selector)
		a.note(err)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

func (a *targetReader) note(err error) {
	if apierrors.IsForbidden(err) {
		a.denied = err
	}
}
