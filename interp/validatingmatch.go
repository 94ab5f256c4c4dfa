package interp

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/kvap/kvap/policy"
)

// fullAttributes are the request with its subresource, as a ValidatingPolicy sees
// it.
func (a *preparedRequest) fullAttributes() *admission.VersionedAttributes {
	object, old := celObject(a.object), celObject(a.old)
	if a.deletes() {
		object = nil
	}
	r := a.request.Admission
	kind := schema.GroupVersionKind{Group: digText(r, "kind", "group"), Version: digText(r, "kind", "version"), Kind: digText(r, "kind", "kind")}
	resource := schema.GroupVersionResource{
		Group: digText(r, "resource", "group"), Version: digText(r, "resource", "version"), Resource: digText(r, "resource", "resource"),
	}
	dryRun, _ := r["dryRun"].(bool)
	record := admission.NewAttributesRecord(object, old, kind, a.namespace, digText(r, "name"), resource,
		digText(r, "subResource"), admission.Operation(a.operation), nil, dryRun, a.celUser())
	return &admission.VersionedAttributes{
		Attributes: record, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(old),
	}
}

// constraintsMatch tells whether constraints match a request, as those of a
// ValidatingAdmissionPolicy do.
func constraintsMatch(m *policy.MatchConstraints, a *preparedRequest, attributes admission.Attributes) (bool, error) {
	if m == nil {
		return false, nil
	}
	matches := func(r policy.ResourceRule) bool { return ruleMatches(r, attributes) }
	if !slices.ContainsFunc(m.Rules, matches) || slices.ContainsFunc(m.Exclude, matches) {
		return false, nil
	}
	if ok, err := a.namespaceSelected(m.NamespaceSelector); !ok || err != nil {
		return false, err
	}
	return a.objectSelected(m.ObjectSelector)
}

func ruleMatches(r policy.ResourceRule, attributes admission.Attributes) bool {
	operations := make([]admissionregistrationv1.OperationType, len(r.Operations))
	for i, o := range r.Operations {
		operations[i] = admissionregistrationv1.OperationType(o)
	}
	scope := admissionregistrationv1.ScopeType(r.Scope)
	matcher := rules.Matcher{Attr: attributes, Rule: admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: r.Groups, APIVersions: r.Versions, Resources: r.Resources, Scope: &scope},
	}}
	return matcher.Matches() && (len(r.Names) == 0 || slices.Contains(r.Names, attributes.GetName()))
}

// mayMatch tells whether labels of the namespace that nobody knows decide that constraints match.
func mayMatch(m *policy.MatchConstraints, a *preparedRequest, attributes admission.Attributes) bool {
	if m == nil || !a.namespaceUnknown() || a.kind.group == "" && a.kind.kind == "Namespace" || !asksMore(m.NamespaceSelector) {
		return false
	}
	anywhere := *m
	anywhere.NamespaceSelector = nil
	matches, err := constraintsMatch(&anywhere, a, attributes)
	return matches && err == nil
}

// namespaceSelected holds a selector to the labels of the request's namespace; of a
// Namespace, to its own. What is in no namespace is selected.
func (a *preparedRequest) namespaceSelected(s *policy.Selector) (bool, error) {
	if !chooses(s) {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(plainSelector(s))
	if err != nil {
		return false, err
	}
	if a.kind.group == "" && a.kind.kind == "Namespace" && a.kind.subresource == "" {
		object := a.object
		if object == nil {
			object = a.old
		}
		return selector.Matches(labels.Set(metaMap(object, "labels"))), nil
	}
	if a.namespace == "" {
		return true, nil
	}
	found := a.namespaceLabels()
	return selector.Matches(labels.Set(found)), a.labelsErr
}

// objectSelected holds a selector to the new object and the old one: one of them
// will do.
func (a *preparedRequest) objectSelected(s *policy.Selector) (bool, error) {
	if !chooses(s) {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(plainSelector(s))
	if err != nil {
		return false, err
	}
	for _, object := range []map[string]any{a.object, a.old} {
		if object != nil && selector.Matches(labels.Set(metaMap(object, "labels"))) {
			return true, nil
		}
	}
	return false, nil
}
