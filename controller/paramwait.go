package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/translate"
)

// A paramResult is what became of the ConfigMaps that rules read: a part of step 2.
type paramResult struct {
	refs    []configMapRef
	found   foundConfigMaps // those that rules are judged by
	missing []configMapRef
	waiting map[*compile.Rule]configMapRef // rules that wait for a ConfigMap that does not exist
	params  error                          // why ConfigMaps could not be read, or params not written
	// unwritten are the ConfigMaps whose params are not there for that reason.
	unwritten map[configMapRef]error
}

// lack finds the ConfigMaps of which there are no params, of those that rules read: what
// is missing, what cannot be read or written, and what namespaces have not, or not for long.
// One of the namespace of each object is lacking in these namespaces. Of one whose namespace
// is being deleted the params go soon, be it before the ConfigMap, and cannot be made anew.
func (o *paramResult) lack(all []namespace, unread map[configMapRef]error) []configMapRef {
	going := map[string]bool{}
	for _, n := range all {
		going[n.name] = n.going
	}
	var own []configMapRef
	lack := func(ref configMapRef) {
		err := cmp.Or(unread[ref], unread[configMapRef{"", ref.name}])
		switch found := o.found.has(ref); {
		case found && !going[ref.namespace]:
		case err != nil:
			o.unwritten[ref] = err
		case slices.Contains(o.refs, ref) && found:
			o.unwritten[ref] = errGoing
		case slices.Contains(o.refs, ref):
			o.missing = append(o.missing, ref)
		default:
			own = append(own, ref)
		}
	}
	for _, ref := range o.refs {
		if ref.namespace != "" {
			lack(ref)
			continue
		}
		for _, n := range all {
			lack(configMapRef{n.name, ref.name})
		}
	}
	return slices.AppendSeq(slices.Concat(o.missing, own), maps.Keys(o.unwritten))
}

// waitForParams leaves rules to the webhook that deny and read a ConfigMap which does not
// exist. An API server that finds no params refuses every request for the kinds of a
// binding, before it asks whether the rule matches: also what no rule is about. To Kyverno
// a ConfigMap that is missing is an error of the rule, where it comes to read it, and so
// it is to the webhook.
// So it is where a rule reads that of each object's own namespace, of which one has none.
func waitForParams(c *compileResult, missing []configMapRef, all []namespace) (compile.Result, map[*compile.Rule]configMapRef) {
	waiting := map[*compile.Rule]configMapRef{}
	result := c.result
	result.Rules = slices.Clone(result.Rules)
	for i, o := range c.all() {
		ref, lacks := lacking(o, missing, all)
		if !lacks || !deniesWithoutParams(o) {
			continue
		}
		o.waits = true
		mutating := i - len(result.Objects)
		for n, r := range result.Rules {
			if !slices.Contains(r.Objects, i) && !slices.Contains(r.Mutating, mutating) {
				continue
			}
			left := *r // which the webhook judges in place of the object
			left.Target, left.Reason = translate.Webhook, fmt.Sprintf("there are no params of the ConfigMap %s/%s", ref.namespace, ref.name)
			left.Objects = slices.DeleteFunc(slices.Clone(r.Objects), func(one int) bool { return one == i })
			left.Mutating = slices.DeleteFunc(slices.Clone(r.Mutating), func(one int) bool { return one == mutating })
			delete(waiting, r)
			waiting[&left], result.Rules[n] = ref, &left
		}
	}
	return result, waiting
}

// deniesWithoutParams tells that requests are refused for want of params.
func deniesWithoutParams(o *wantedPolicy) bool {
	return slices.ContainsFunc(o.bindings, func(b client.Object) bool {
		ref := paramRefOf(b)
		return ref != nil && ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == "Deny"
	})
}

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
		if _, err := w.inform(ctx, o); err != nil {
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
	for _, m := range []*admissionregistrationv1.MatchResources{
		field[*admissionregistrationv1.MatchResources](policy, "MatchConstraints"), field[*admissionregistrationv1.MatchResources](binding, "MatchResources"),
	} {
		if m == nil || m.NamespaceSelector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(m.NamespaceSelector)
		if err != nil || !selector.Matches(n.labels) {
			return false
		}
	}
	return true
}

// lacking is the first ConfigMap that a policy reads and of which there are no params:
// where it is of each object's own namespace, that of the first namespace without.
func lacking(o *wantedPolicy, missing []configMapRef, all []namespace) (configMapRef, bool) {
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
