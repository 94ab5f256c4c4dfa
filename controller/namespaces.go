package controller

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A namespace is what of a Namespace tells whether a rule judges in it.
type namespace struct {
	name   string
	labels labels.Set
	going  bool // it is being deleted
}

// namespaces are those of the cluster, by name. They are watched from the first time on
// that a rule asks for them.
func (w *watcher) namespaces(ctx context.Context) ([]namespace, error) {
	if !w.asked {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		informer, err := w.cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		if err := w.listen(informer); err != nil {
			return nil, err
		}
		w.asked = true
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := w.client.List(ctx, list); err != nil {
		return nil, err
	}
	var out []namespace
	for i := range list.Items {
		out = append(out, namespace{list.Items[i].Name, list.Items[i].Labels, list.Items[i].DeletionTimestamp != nil})
	}
	slices.SortFunc(out, func(a, b namespace) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}

// isOf tells that a binding is about the objects of a namespace.
func (n namespace) isOf(policy, binding client.Object) bool {
	for _, s := range namespacesOf(policy, binding) {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil || !selector.Matches(n.labels) {
			return false
		}
	}
	return true
}

// lacking is the first ConfigMap that a policy reads and of which there are no params:
// where it is of each object's own namespace, that of the first namespace without.
func lacking(o wantedPolicy, missing []configMapRef, all []namespace) (configMapRef, bool) {
	for _, b := range o.bindings {
		ref, ok := configMapOf(o.policy, b)
		if !ok {
			continue
		}
		if ref.namespace != "" && slices.Contains(missing, ref) {
			return ref, true
		}
		if ref.namespace != "" {
			continue
		}
		for _, n := range all {
			own := configMapRef{n.name, ref.name}
			if slices.Contains(missing, own) && n.isOf(o.policy, b) {
				return own, true
			}
		}
	}
	return configMapRef{}, false
}
