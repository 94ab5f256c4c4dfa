package scan

import (
	"context"
	"reflect"

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
		_, err := s.each(ctx, resource, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=" + report.ReportManager},
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
		if apierrors.IsAlreadyExists(err) {
			r.log.Info("a report of the name is somebody else's, and stays", "name", scanned.UID)
			return nil
		}
		return r.keep(scanned.UID, made, err)
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
	return r.keep(scanned.UID, made, err)
}

// keep notes what the API server has now. An object that has gone since takes its
// report with it.
func (r *scanRound) keep(uid string, o *unstructured.Unstructured, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.reports[uid] = o
	return nil
}

func (r *scanRound) remove(ctx context.Context, uid string) error {
	have := r.reports[uid]
	if have == nil {
		return nil
	}
	delete(r.reports, uid)
	err := r.at(have.GetNamespace()).Delete(ctx, have.GetName(), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// removeStale removes the reports of objects that were not seen.
func (r *scanRound) removeStale(ctx context.Context) error {
	for uid := range r.reports {
		if r.seen[uid] {
			continue
		}
		if err := r.remove(ctx, uid); err != nil {
			return err
		}
	}
	return nil
}
