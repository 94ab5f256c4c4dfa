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
	c := &targetMutation{worker: w, job: j, request: request, objects: &targetReader{ObjectReader: w.options.Cluster, kinds: w.options.Kinds}, done: slices.Clone(j.done)}
	wanted := c.wanted(ctx, c.objects)
	if wanted == nil {
		return skipped("the rule is gone, or the object triggers it no longer")
	}
	for i := range wanted {
		c.target(ctx, &wanted[i])
	}
	return c.outcome(wanted)
}

// A targetMutation is the work of one job.
type targetMutation struct {
	worker   *Worker
	job      job
	request  *interp.Request
	objects  *targetReader
	done     []v1alpha1.ObjectReference // that were changed, now or in an earlier try
	wrote    bool
	failures []error
}

// wanted is what the rule makes of the objects that it selects.
func (c *targetMutation) wanted(ctx context.Context, objects interp.ObjectReader) []interp.TargetMutation {
	p := c.job.rule.policy
	return p.engine.MutateExisting(ctx, c.request, p.FullName(), c.job.rule.name, objects)
}

// target writes what is wanted of one object, looking at it again where it has changed
// meanwhile.
func (c *targetMutation) target(ctx context.Context, m *interp.TargetMutation) {
	if m.Before == nil {
		if m.Status == interp.Error {
			c.failures = append(c.failures, c.job.hide(errors.New(m.Message)))
		}
		return
	}
	at := referenceOf(m.Before)
	if slices.Contains(c.done, at) {
		return
	}
	for try := 0; ; try++ {
		written, err := c.put(ctx, m)
		if written {
			c.wrote, c.done = true, append(c.done, at)
		}
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		if !apierrors.IsConflict(err) || try == conflicts {
			c.failures = append(c.failures, fmt.Errorf("%s %s: %w", at.Kind, strings.TrimPrefix(at.Namespace+"/"+at.Name, "/"), explained(err)))
			return
		}
		if m = c.again(ctx, at); m == nil {
			return
		}
	}
}

// again is what is wanted of one object as it is now; nil where nothing is.
func (c *targetMutation) again(ctx context.Context, at v1alpha1.ObjectReference) *interp.TargetMutation {
	wanted := c.wanted(ctx, c.objects)
	i := slices.IndexFunc(wanted, func(m interp.TargetMutation) bool { return m.Before != nil && referenceOf(m.Before) == at })
	if i < 0 {
		return nil
	}
	return &wanted[i]
}

// put writes an object as the rule wants it, if that is not what it is. It stays the
// object that it was, at the version that was read.
func (c *targetMutation) put(ctx context.Context, m *interp.TargetMutation) (written bool, err error) {
	switch scope := c.job.rule.policy.scope(); {
	case m.Status == interp.Error:
		return false, c.job.hide(errors.New(m.Message))
	case m.Status != interp.Pass:
		return false, nil
	case scope != "" && metaText(m.Before, "namespace") != scope:
		return false, fmt.Errorf("it is not in the namespace of the policy")
	case referenceOf(m.After) != referenceOf(m.Before):
		return false, errors.New("the patch makes another object of it: apiVersion, kind, namespace, name and uid stay as they are")
	}
	after := atVersion(m.After, m.Before)
	if reflect.DeepEqual(after, m.Before) {
		return false, nil
	}
	version, err := c.worker.options.Cluster.Update(ctx, after, m.Subresource)
	if err != nil {
		return false, err
	}
	at := referenceOf(after)
	c.worker.backoff.wrote(at, version)
	return true, nil
}

// atVersion is an object with the resource version that another one has.
func atVersion(object, other map[string]any) map[string]any {
	out := maps.Clone(object)
	meta, _ := object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	meta["resourceVersion"] = metaText(other, "resourceVersion")
	out["metadata"] = meta
	return out
}

// outcome is what became of the job.
func (c *targetMutation) outcome(wanted []interp.TargetMutation) workResult {
	if c.wrote {
		c.worker.backoff.repaired(triggerTask{c.job.rule.id(), c.job.trigger})
	}
	out := workResult{state: v1alpha1.GenerateCompleted, resources: c.done}
	if len(c.failures) > 0 {
		if c.objects.denied != nil {
			c.failures = append(c.failures, explained(c.objects.denied))
		}
		return out.failedBy(c.failures)
	} else if len(wanted) == 1 && wanted[0].Before == nil {
		return skipped(c.job.hideText(wanted[0].Message))
	}
	return out
}

// targetReader notes a permission that was missing when objects were asked for, and asks for
// each of the kinds that a pattern stands for.
type targetReader struct {
	interp.ObjectReader
	kinds  func(group, version, kind string) []ObjectKind
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
	served := []ObjectKind{{apiVersion, kind}}
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
