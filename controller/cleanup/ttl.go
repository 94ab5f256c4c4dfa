package cleanup

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/interp"
)

// A labelled object is one that has an end by its label.
type labelled struct {
	resource Resource
	object   metav1.Object
}

// A reaper deletes labelled objects when they end.
type reaper struct {
	remove func(context.Context, Resource, metav1.Object, string) error
	now    func() time.Time
	log    logr.Logger
	failed map[types.UID]failure
	told   map[types.UID]string // labels that nobody can read
}

// sweep deletes what has ended. What cannot be deleted is tried again, each time
// later. Objects that have changed since they were read come again by themselves.
func (r *reaper) sweep(ctx context.Context, all []labelled) {
	now := r.now()
	failed, told := map[types.UID]failure{}, map[types.UID]string{}
	for _, l := range all {
		uid, value := l.object.GetUID(), l.object.GetLabels()[interp.TTLLabel]
		if f, ok := r.failed[uid]; ok {
			failed[uid] = f
		}
		end, err := interp.Expiry(value, l.object.GetCreationTimestamp().Time)
		if err != nil {
			if told[uid] = value; r.told[uid] != value {
				r.log.Info("an object has no end", "resource", l.resource.Resource, "namespace", l.object.GetNamespace(), "name", l.object.GetName(), "why", err.Error())
			}
			continue
		}
		if l.object.GetDeletionTimestamp() != nil || end.After(now) || failed[uid].again.After(now) {
			continue
		}
		err = r.remove(ctx, l.resource, l.object, r.propagation(l))
		switch {
		case err == nil:
			r.log.Info("an object has ended", "resource", l.resource.Resource, "namespace", l.object.GetNamespace(), "name", l.object.GetName())
			delete(failed, uid)
			failed[uid] = failure{again: now.Add(firstWait)} // until the watch tells that it is gone
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
			failed[uid] = failure{again: now.Add(time.Second)}
		case ctx.Err() != nil:
			return
		default:
			times := failed[uid].times
			failed[uid] = failure{times + 1, now.Add(min(firstWait<<min(times, tries), longWait))}
			r.log.Info("an object that has ended cannot be deleted", "resource", l.resource.Resource,
				"namespace", l.object.GetNamespace(), "name", l.object.GetName(), "why", err.Error(), "times", times+1)
		}
	}
	r.failed, r.told = failed, told
}

// propagation is what the object's annotation says of what it owns; empty for the
// cluster's own way.
func (r *reaper) propagation(l labelled) string {
	switch said := l.object.GetAnnotations()[interp.PropagationAnnotation]; said {
	case "Foreground", "Background", "Orphan":
		return said
	case "":
	default:
		r.log.Info("an annotation is none of Foreground, Background and Orphan", "annotation", interp.PropagationAnnotation, "value", said,
			"resource", l.resource.Resource, "namespace", l.object.GetNamespace(), "name", l.object.GetName())
	}
	return ""
}
