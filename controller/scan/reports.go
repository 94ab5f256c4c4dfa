package scan

import (
	"context"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/kvap/kvap/report"
)

// fieldManager is who writes reports; managerLabel has kvap's name on them.
const (
	fieldManager = "kvap-controller"
	managerLabel = "app.kubernetes.io/managed-by"
)

// reports are those in namespaces, or those of the cluster. Of each that is there a trace is kept,
// with the digest of what it says.
type reports struct {
	cache.SharedIndexInformer
	at  dynamic.NamespaceableResourceInterface
	log logr.Logger
}

// newReports has objects judged again whose reports somebody else has changed.
func (l *leader) newReports(namespaced bool) *reports {
	resource := reportResource(l.options.Report.Group, namespaced)
	r := &reports{at: l.dynamic.Resource(resource), log: l.log}
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = managerLabel + "=" + report.ReportManager
		return o
	}
	tell := func(ctx context.Context, o metav1.ListOptions, err error) {
		if err = problemOf(ctx, o, err); err != nil {
			err = fmt.Errorf("%s cannot be read: %w", resource.GroupResource(), err)
		}
		l.problems.unreported(namespaced, err)
	}
	r.SharedIndexInformer = newInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := r.at.List(ctx, selected(paged(o)))
			tell(ctx, o, err)
			if err != nil {
				return nil, err
			}
			return traces(list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := r.at.Watch(ctx, selected(o))
			if o.SendInitialEvents == nil || !apierrors.IsForbidden(err) { // else the informer lists then, and that tells
				tell(ctx, o, err)
			}
			return w, err
		},
	}, l.dynamic, &unstructured.Unstructured{}, traceOf)
	_, _ = r.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{ // it is not stopped yet
		AddFunc: func(o any, first bool) {
			l.metrics.reports.Inc()
			if !first {
				l.compare(nil, o, true)
			}
		},
		UpdateFunc: func(before, o any) { l.compare(before, o, true) },
		DeleteFunc: func(o any) {
			l.metrics.reports.Dec()
			l.compare(nil, o, false)
		},
	})
	return r
}

func reportResource(group string, namespaced bool) apischema.GroupVersionResource {
	version, name := "v1alpha2", "policyreports"
	if group == report.OpenReports {
		version, name = "v1alpha1", "reports"
	}
	if !namespaced {
		name = "cluster" + name
	}
	return apischema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

// reportsOf are those in namespaces, or of the cluster.
func (l *leader) reportsOf(namespaced bool) *reports {
	if namespaced {
		return l.reports[0]
	}
	return l.reports[1]
}

// compare has the object judged of a report that is not as it should be. Where somebody has changed
// what a report is about, it is the object that it was about before.
func (l *leader) compare(before, o any, there bool) {
	is := told(o)
	if is == nil {
		return
	}
	digest := is.digest
	if !there {
		digest = 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	about := *is.about
	if was := told(before); was != nil && !l.knows(about) && l.knows(*was.about) {
		about = *was.about
	}
	f := l.kinds[about.kind]
	if f == nil {
		if there && l.away != nil && !l.away[about.kind.Group] { // written by rules that do not count any more
			l.queue.Add(about)
		}
		return
	}
	wanted, judged := f.pass.judged[about.uid]
	if judged && wanted.report != digest || !judged && there && !f.has(about) {
		l.queue.Add(about)
	}
}

// knows tells whether an object of a kind that is followed is known to be there.
func (l *leader) knows(t task) bool {
	f := l.kinds[t.kind]
	return f != nil && f.has(t)
}

// digest is of what the report about an object says; 0 where there is none.
func (r *reports) digest(t task) uint64 {
	kept, _, _ := r.GetStore().GetByKey(cache.NewObjectName(t.namespace, string(t.uid)).String())
	if is, ok := kept.(*trace); ok {
		return is.digest
	}
	return 0
}

// write makes the report about an object, or changes it: then before is what it was.
func (r *reports) write(ctx context.Context, t task, fields map[string]any) (before map[string]any, wrote bool, err error) {
	at := r.at.Namespace(t.namespace)
	if r.digest(t) == 0 {
		_, err := at.Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{FieldManager: fieldManager})
		switch {
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), isGone(err, t.namespace):
			return nil, false, nil // the object goes too
		case err == nil:
			return nil, true, nil
		case !apierrors.IsAlreadyExists(err):
			return nil, false, fmt.Errorf("its report cannot be written: %w", err)
		}
	}
	have, err := at.Get(ctx, string(t.uid), metav1.GetOptions{})
	if err != nil { // it may be gone: then it is made at the next try
		return nil, false, fmt.Errorf("its report cannot be written: %w", err)
	}
	if have.GetLabels()[managerLabel] != report.ReportManager {
		r.log.Info("a report of the name is somebody else's, and stays", "namespace", t.namespace, "name", have.GetName())
		return nil, false, nil
	}
	report.KeepTimes(fields, have.Object)
	wanted := have.DeepCopy()
	for _, key := range []string{"scope", "summary", "results", "source"} {
		if v, ok := fields[key]; ok {
			wanted.Object[key] = v
		}
	}
	if reflect.DeepEqual(wanted.Object, have.Object) {
		return nil, false, nil
	}
	if _, err := at.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return nil, false, fmt.Errorf("its report cannot be written: %w", err)
	}
	return have.Object, true, nil
}

// remove removes the report about an object, if there is one.
func (r *reports) remove(ctx context.Context, t task) error {
	if r.digest(t) == 0 {
		return nil
	}
	err := r.at.Namespace(t.namespace).Delete(ctx, string(t.uid), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("its report cannot be removed: %w", err)
	}
	return nil
}
