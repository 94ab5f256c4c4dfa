package controller

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/vap"
)

// sharedFields are the fields of an entry of a webhook configuration that are not kvap's alone:
// other controllers confine its namespaces further, and fill in the authority where kvap has
// none.
type sharedFields struct {
	selector **metav1.LabelSelector
	bundle   *[]byte
}

// sharedFieldsOf are those of the entries of a configuration, by their names.
func sharedFieldsOf(o client.Object) map[string]sharedFields {
	out := map[string]sharedFields{}
	switch o := o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			out[w.Name] = sharedFields{&w.NamespaceSelector, &w.ClientConfig.CABundle}
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			out[w.Name] = sharedFields{&w.NamespaceSelector, &w.ClientConfig.CABundle}
		}
	}
	return out
}

// keepForeign gives what is wanted what others have added to what is there.
func keepForeign(want, have client.Object) {
	there := sharedFieldsOf(have)
	for name, w := range sharedFieldsOf(want) {
		h, ok := there[name]
		if !ok {
			continue
		}
		if added := addedTo(*w.selector, *h.selector); len(added) > 0 {
			wider := &metav1.LabelSelector{}
			if *w.selector != nil {
				wider = (*w.selector).DeepCopy()
			}
			wider.MatchExpressions = append(wider.MatchExpressions, added...)
			*w.selector = wider
		}
		if len(*w.bundle) == 0 {
			*w.bundle = *h.bundle
		}
	}
}

// addedTo are the expressions of a selector that are not in the one that is wanted. Those about
// the names of namespaces are kvap's own: by them it leaves namespaces out.
func addedTo(want, have *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	if have == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(have.MatchExpressions), func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == corev1.LabelMetadataName || want != nil && slices.ContainsFunc(want.MatchExpressions, func(o metav1.LabelSelectorRequirement) bool {
			return equality.Semantic.DeepEqual(o, r)
		})
	})
}

// addedSelectors are what others have added to the selectors of a configuration, as text.
func addedSelectors(want, have client.Object) (out []string) {
	there := sharedFieldsOf(have)
	for name, w := range sharedFieldsOf(want) {
		if h, ok := there[name]; ok {
			if added := addedTo(*w.selector, *h.selector); len(added) > 0 {
				out = append(out, metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: added}))
			}
		}
	}
	return out
}

// withEntriesOf is a configuration with the entries that another one has beside its own.
func withEntriesOf(o, other client.Object) client.Object {
	own := sharedFieldsOf(o)
	switch out := o.DeepCopyObject().(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for _, w := range other.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks {
			if _, ok := own[w.Name]; !ok {
				out.Webhooks = append(out.Webhooks, w)
			}
		}
		return out
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for _, w := range other.(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks {
			if _, ok := own[w.Name]; !ok {
				out.Webhooks = append(out.Webhooks, w)
			}
		}
		return out
	}
	return o
}

// entrySuffix ends the names of the entries of kvap's configurations.
const entrySuffix = ".webhook.kvap.dev"

// isCopy tells of a configuration that has kvap's label and asks nobody but its webhook, as one
// that was restored from a backup.
func isCopy(o metav1.Object) bool {
	c, ok := o.(client.Object)
	if !ok || o.GetLabels()[vap.ManagedByLabel] != Manager {
		return false
	}
	entries := sharedFieldsOf(c)
	for name := range entries {
		if !strings.HasSuffix(name, entrySuffix) {
			return false
		}
	}
	return len(entries) > 0
}
