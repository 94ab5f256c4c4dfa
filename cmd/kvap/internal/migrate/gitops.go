package migrate

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// An ownershipMark is a label or annotation by which a tool knows what it manages.
type ownershipMark struct{ tool, key string }

func marks() []ownershipMark {
	return []ownershipMark{
		{"Argo CD", "argocd.argoproj.io/tracking-id"},
		{"Argo CD", "argocd.argoproj.io/instance"},
		{"Flux", "kustomize.toolkit.fluxcd.io/name"},
		{"Flux", "kustomize.toolkit.fluxcd.io/namespace"},
		{"Flux", "helm.toolkit.fluxcd.io/name"},
		{"Flux", "helm.toolkit.fluxcd.io/namespace"},
		{"Helm", "meta.helm.sh/release-name"},
		{"Helm", "meta.helm.sh/release-namespace"},
	}
}

// instance is the label that Argo CD tracks by unless it is told otherwise, before its
// version 3. Charts set it too, which Helm's own marks tell.
const instance = "app.kubernetes.io/instance"

// managedBy is the label that Helm sets to its own name.
const managedBy = "app.kubernetes.io/managed-by"

// OwnedBy is the tool that would undo what is written into an object, or write it
// back; "" where none shows.
func OwnedBy(o *unstructured.Unstructured) string {
	for _, m := range marks() {
		if o.GetLabels()[m.key] != "" || o.GetAnnotations()[m.key] != "" {
			return m.tool
		}
	}
	if o.GetLabels()[managedBy] == "Helm" {
		return "Helm"
	}
	for _, f := range o.GetManagedFields() {
		switch f.Manager {
		case "argocd-controller", "argocd-application-controller":
			return "Argo CD"
		case "kustomize-controller", "helm-controller":
			return "Flux"
		}
	}
	if o.GetLabels()[instance] != "" {
		return "Argo CD"
	}
	return ""
}

// OwnedBy is the tool that manages the policy; where it is gone, and would be made again,
// that which managed it when it was recorded.
func (w PolicyState) OwnedBy() string {
	if w.Source != nil {
		return OwnedBy(w.Source)
	}
	was, err := restored(w.status().Original)
	if err != nil {
		return ""
	}
	return OwnedBy(was)
}

// disown takes the marks out of a copy of an object that the tool does not know: it
// would remove it.
func disown(o *unstructured.Unstructured) {
	labels := o.GetLabels()
	for _, m := range marks() {
		delete(labels, m.key)
		annotate(o, map[string]string{m.key: ""})
	}
	if labels[managedBy] == "Helm" {
		delete(labels, managedBy)
	}
	delete(labels, instance)
	if len(labels) == 0 {
		labels = nil
	}
	o.SetLabels(labels)
}
