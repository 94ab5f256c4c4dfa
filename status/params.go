package status

import (
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/report"
)

// The reasons of problems with params.
const (
	noParamRef   = "NoParamRef"
	kindUnserved = "ParamKindUnserved"
	notFound     = "ParamsNotFound"
)

// binding is the binding with the params that it finds, for a policy of the kind of
// params given.
func (c Snapshot) binding(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding, kind *admissionregistrationv1.ParamKind) report.BindingStatus {
	out := report.BindingStatus{Name: b.Name, Object: b.Spec.PolicyName, Actions: actions(b)}
	ref := b.Spec.ParamRef
	switch {
	case kind == nil:
		return out
	case ref == nil:
		out.Problem = &report.Problem{Reason: noParamRef, Message: fmt.Sprintf(
			"the policy %s has params of kind %s and the binding %s refers to none, so params is null; add a paramRef", b.Spec.PolicyName, kind.Kind, b.Name)}
		return out
	}
	params, asked := c.Params[b.Name]
	if !asked {
		return out
	}
	for _, name := range params.Found {
		out.Params = append(out.Params, kind.Kind+" "+name)
	}
	switch {
	case params.Unserved:
		out.Problem = &report.Problem{Reason: kindUnserved, Message: fmt.Sprintf(
			"the API server knows no kind %s %s, so the policy %s denies all that it matches unless its failurePolicy is Ignore; install the CustomResourceDefinition",
			kind.APIVersion, kind.Kind, b.Spec.PolicyName)}
	case len(params.Found) == 0:
		out.Problem = &report.Problem{Reason: notFound, Message: fmt.Sprintf("the binding %s finds no %s %s; meanwhile %s",
			b.Name, kind.Kind, wanted(ref), meanwhile(ref))}
	}
	return out
}

// wanted is what a paramRef asks for, in words.
func wanted(ref *admissionregistrationv1.ParamRef) string {
	what := ref.Name
	if ref.Selector != nil {
		what = "with the labels " + metav1.FormatLabelSelector(ref.Selector)
	}
	if ref.Namespace != "" {
		return what + " in the namespace " + ref.Namespace
	}
	return what
}

// meanwhile is what happens to requests.
func meanwhile(ref *admissionregistrationv1.ParamRef) string {
	if ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == admissionregistrationv1.AllowAction {
		return "what it matches is admitted unjudged"
	}
	return "what it matches is denied unless the policy's failurePolicy is Ignore"
}

// lastWrite is when an object's spec was written last.
func lastWrite(o metav1.Object) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}
