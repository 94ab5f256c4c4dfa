package scan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kvap/kvap/report"
)

// fieldManager is who writes reports.
const fieldManager = "kvap-controller"

// reportResources are those of reports in namespaces and of the cluster.
func (s *Scanner) reportResources() []apischema.GroupVersionResource {
	gv, names := apischema.GroupVersion{Group: s.options.Report.Group, Version: "v1alpha2"}, []string{"policyreports", "clusterpolicyreports"}
	if s.options.Report.Group == report.OpenReports {
		gv.Version, names = "v1alpha1", []string{"reports", "clusterreports"}
	}
	return []apischema.GroupVersionResource{gv.WithResource(names[0]), gv.WithResource(names[1])}
}

// reports are kvap's that are there.
func (s *Scanner) reports(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	out := map[string]*unstructured.Unstructured{}
	for _, resource := range s.reportResources() {
		err := s.each(ctx, resource, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=" + report.ReportManager},
			func(o *unstructured.Unstructured) error {
				out[o.GetName()] = o
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// at is where a report is.
func (s *Scanner) at(namespace string) dynamic.ResourceInterface {
	resources := s.reportResources()
	if namespace == "" {
		return s.dynamic.Resource(resources[1])
	}
	return s.dynamic.Resource(resources[0]).Namespace(namespace)
}

// write brings the report of an object into step with what was found.
func (r *scanRound) write(ctx context.Context, scanned report.ScannedObject) error {
	have := r.reports[scanned.UID]
	fields := report.ObjectReport(scanned, r.options.Report, r.now().Unix())
	switch {
	case fields == nil:
		return r.remove(ctx, scanned.UID)
	case have == nil:
		made, err := r.at(scanned.Namespace).Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{FieldManager: fieldManager})
		switch {
		case apierrors.IsAlreadyExists(err):
			r.log.Info("a report of the name is somebody else's, and stays", "name", scanned.UID)
			return nil
		case apierrors.IsNotFound(err): // the namespace has gone since, and the object
			return nil
		case err != nil:
			return fmt.Errorf("its report cannot be written: %w", err)
		}
		r.reports[scanned.UID] = made
		return nil
	}
	report.KeepTimes(fields, have.Object)
	wanted := have.DeepCopy()
	for _, key := range []string{"scope", "summary", "results", "source"} {
		if v, ok := fields[key]; ok {
			wanted.Object[key] = v
		}
	}
	if reflect.DeepEqual(wanted.Object, have.Object) {
		return nil
	}
	made, err := r.at(scanned.Namespace).Update(ctx, wanted, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return errors.Join(fmt.Errorf("its report cannot be written: %w", err), r.reread(ctx, scanned.UID))
	}
	r.reports[scanned.UID] = made
	return nil
}

// reread reads a report that is not as it was, or is there no more, for the next try.
func (r *scanRound) reread(ctx context.Context, uid string) error {
	have := r.reports[uid]
	now, err := r.at(have.GetNamespace()).Get(ctx, have.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		delete(r.reports, uid)
		return nil
	case err != nil:
		return err
	}
	r.reports[uid] = now
	return nil
}

func (r *scanRound) remove(ctx context.Context, uid string) error {
	have := r.reports[uid]
	if have == nil {
		return nil
	}
	err := r.at(have.GetNamespace()).Delete(ctx, have.GetName(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("its report cannot be removed: %w", err)
	}
	delete(r.reports, uid)
	return nil
}

// removeStale removes the reports of objects of a resource that were not seen, all that
// can be removed.
func (r *scanRound) removeStale(ctx context.Context, resource resource, seen map[string]bool) error {
	var errs []error
	for uid, o := range r.reports {
		if !seen[uid] && resource.is(o) {
			errs = append(errs, r.remove(ctx, uid))
		}
	}
	return errors.Join(errs...)
}

// removeUnasked removes the reports about kinds that no rule is about, or that are not
// served. Of groups that are away nothing is known.
func (r *scanRound) removeUnasked(ctx context.Context, away map[apischema.GroupVersion]error) {
	for uid, o := range r.reports {
		group := scopeOf(o).Group
		isAway := func(gv apischema.GroupVersion) bool { return gv.Group == group }
		if slices.ContainsFunc(r.resources, func(resource resource) bool { return resource.is(o) }) || slices.ContainsFunc(slices.Collect(maps.Keys(away)), isAway) {
			continue
		}
		if err := r.remove(ctx, uid); err != nil { // the next round tries again
			r.metrics.failed("object")
			r.log.Info("a report cannot be removed", "namespace", o.GetNamespace(), "name", o.GetName(), "err", err.Error())
		}
	}
}
