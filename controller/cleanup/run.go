package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A RunResult is what a run did.
type RunResult struct {
	Deleted int // objects; those that would have been, where nothing was to be
	Failed  int // objects that could not be judged or deleted, and kinds that could not be read
	Left    int // objects that the next run deletes, for this one has deleted enough
	// Denied tells that a permission is missing.
	Denied   bool
	names    []string // of the first that were deleted
	problems []string // the first
	unserved []string // kinds
}

// few is how many objects and problems a result names.
const few = 5

// retries is how often an object that changes under the run is looked at again.
const retries = 3

// A run is one run of a policy.
type run struct {
	policy   *Policy
	cluster  Cluster
	judge    *interp.Cleanup
	exclude  []string // namespaces
	dry      bool
	limit    int           // objects; 0 for none
	patience time.Duration // for one object
	result   RunResult
	stopped  error // why the rest of the objects is not looked at
}

// newRun prepares a run of a policy, which deletes nothing if it is dry.
func newRun(p *Policy, exceptions []*policy.Exception, c Cluster, w interp.World, exclude []string, dry bool) *run {
	world := &namespaces{World: w, known: map[string]map[string]any{}}
	return &run{policy: p, cluster: c, judge: interp.NewCleanup(p.cleanup, exceptions, world, interp.Limits{}), exclude: exclude, dry: dry, patience: judgeTime}
}

// do looks at the objects of every kind that the policy is about. Only the end of the
// context ends it before.
func (r *run) do(ctx context.Context) RunResult {
	if r.policy.cleanup.Deleting != nil {
		r.resources(ctx)
	} else {
		r.kinds(ctx)
	}
	if err := ctx.Err(); err != nil {
		r.fail("the run", errors.New("it did not end in time"))
	}
	return r.result
}

// kinds looks at the kinds that a policy names.
func (r *run) kinds(ctx context.Context) {
	done := map[string]bool{} // two kinds may mean one resource
	for _, kind := range r.policy.kinds() {
		resource, served, err := r.resource(ctx, kind)
		switch {
		case err != nil:
			r.fail("finding the kind "+kind.String(), err)
		case !served:
			r.result.unserved = append(r.result.unserved, kind.String())
		case !done[resource.String()]:
			done[resource.String()] = true
			r.kind(ctx, resource)
		}
	}
}

// resource is what a kind means to the policy: one of a namespace has nothing to do
// with kinds that are in none.
func (r *run) resource(ctx context.Context, kind policy.KindSelector) (Resource, bool, error) {
	if kind.Subresource != "" || strings.ContainsAny(kind.Kind, "*?") {
		return Resource{}, false, nil
	}
	resource, served, err := r.cluster.Resource(ctx, kind)
	return resource, served && (resource.Namespaced || r.policy.Ref.Namespace == ""), err
}

func (r *run) kind(ctx context.Context, resource Resource) {
	if r.stopped != nil {
		return
	}
	err := r.cluster.Each(ctx, resource, r.policy.Ref.Namespace, r.policy.whole(), func(o *unstructured.Unstructured) error {
		r.object(ctx, resource, o)
		if r.stopped != nil {
			return r.stopped
		}
		return ctx.Err()
	})
	if err != nil && r.stopped == nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		r.fail("listing "+resource.Resource, err)
	}
}

// object deletes an object if the policy says so.
func (r *run) object(ctx context.Context, resource Resource, o *unstructured.Unstructured) {
	for try := 0; r.stopped == nil; try++ {
		deletes, err := r.judgedInTime(ctx, resource, o)
		if err != nil {
			r.fail("judging "+nameOf(resource, o), err)
			return
		}
		if !deletes {
			return
		}
		if r.limit > 0 && r.result.Deleted >= r.limit {
			r.result.Left++
			return
		}
		if !r.dry {
			err = r.cluster.Delete(ctx, resource, o, r.policy.cleanup.Propagation)
		}
		switch {
		case err == nil:
			r.count(nameOf(resource, o))
			return
		case apierrors.IsNotFound(err): // somebody else was faster
			return
		case !apierrors.IsConflict(err) || try == retries:
			r.fail("deleting "+nameOf(resource, o), err)
			return
		}
		namespace, name := o.GetNamespace(), o.GetName()
		if o, err = r.cluster.Get(ctx, resource, namespace, name, r.policy.whole()); err != nil {
			if !apierrors.IsNotFound(err) {
				r.fail("reading "+resource.Kind+" "+name+" again", err)
			}
			return
		}
	}
}

// judgeTime is how long one object may take: who writes a policy for his namespace keeps
// those of others waiting no longer.
const judgeTime = 10 * time.Second

// errSlow ends a run.
var errSlow = errors.New("its expressions take too long, and no other object is looked at")

// judgedInTime is judged, and ends the run where that takes too long.
func (r *run) judgedInTime(ctx context.Context, resource Resource, o *unstructured.Unstructured) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	deletes, err := r.judged(limited, resource, o)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		r.stopped = errSlow
		return false, errSlow
	}
	return deletes, err
}

// judged tells whether the policy deletes an object: not one that is on its way out,
// or in a namespace that is left out, nor such a namespace itself.
func (r *run) judged(ctx context.Context, resource Resource, o *unstructured.Unstructured) (bool, error) {
	in := o.GetNamespace()
	if o.GetKind() == "Namespace" && o.GetAPIVersion() == "v1" {
		in = o.GetName() // with it goes what is in it
	}
	if o.GetDeletionTimestamp() != nil || slices.Contains(r.exclude, in) {
		return false, nil
	}
	if own := r.policy.Ref.Namespace; own != "" && o.GetNamespace() != own {
		return false, nil
	}
	return r.judge.Deletes(ctx, resource.GroupVersionResource, o.Object)
}

func (r *run) count(name string) {
	if r.result.Deleted++; len(r.result.names) < few {
		r.result.names = append(r.result.names, name)
	}
}

func (r *run) fail(what string, err error) {
	if apierrors.IsForbidden(err) {
		r.result.Denied = true
	}
	if r.result.Failed++; len(r.result.problems) < few {
		r.result.problems = append(r.result.problems, what+": "+err.Error())
	}
}

// nameOf is what messages call an object.
func nameOf(r Resource, o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return r.Kind + " " + o.GetName()
	}
	return r.Kind + " " + o.GetNamespace() + "/" + o.GetName()
}

// firstNames is the beginning of a list of n names.
func firstNames(names []string, n int) string {
	text := strings.Join(names, ", ")
	if n > len(names) {
		text += fmt.Sprintf(" and %d more", n-len(names))
	}
	return text
}

// namespaces is a world that is asked for each Namespace once.
type namespaces struct {
	interp.World
	known map[string]map[string]any
}

// Namespace is a Namespace as an object.
func (n *namespaces) Namespace(ctx context.Context, name string) (map[string]any, error) {
	if object, ok := n.known[name]; ok {
		return object, nil
	}
	object, err := n.World.Namespace(ctx, name)
	if err == nil {
		n.known[name] = object
	}
	return object, err
}
