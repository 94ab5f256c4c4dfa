package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/vap"
)

// natives are the native policies of a suite: they need no translation, and are
// judged as they are.
type natives struct {
	policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// read takes the native policies and bindings of a file; all else there is read by
// another. Their earlier versions have the same form.
func (n *natives) read(file string, data []byte) (found diag.List) {
	if !strings.Contains(string(data), "ValidatingAdmissionPolicy") {
		return nil
	}
	objects, _ := manifest.Read(file, data) // what is no YAML has been told
	for _, o := range objects {
		if !strings.HasPrefix(o.APIVersion(), "admissionregistration.k8s.io/") {
			continue
		}
		var err error
		switch o.Kind() {
		case "ValidatingAdmissionPolicy":
			p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			if err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Value, p); err == nil {
				setDefaults(&p.Spec.MatchConstraints)
				n.policies = append(n.policies, p)
			}
		case "ValidatingAdmissionPolicyBinding":
			b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
			if err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Value, b); err == nil {
				if b.Spec.MatchResources != nil {
					setDefaults(&b.Spec.MatchResources)
				}
				n.bindings = append(n.bindings, b)
			}
		}
		if err != nil {
			found = append(found, diag.Errorf(o.Pos, diag.BadSuite, "the %s cannot be read: %v", o.Kind(), err))
		}
	}
	return found
}

// setDefaults fills in what the API server does when such an object is created.
func setDefaults(m **admissionregistrationv1.MatchResources) {
	if *m == nil {
		*m = &admissionregistrationv1.MatchResources{}
	}
	if (*m).NamespaceSelector == nil {
		(*m).NamespaceSelector = &metav1.LabelSelector{}
	}
	if (*m).ObjectSelector == nil {
		(*m).ObjectSelector = &metav1.LabelSelector{}
	}
	if (*m).MatchPolicy == nil {
		equivalent := admissionregistrationv1.Equivalent
		(*m).MatchPolicy = &equivalent
	}
	for i := range (*m).ResourceRules {
		if rule := &(*m).ResourceRules[i]; rule.Scope == nil {
			all := admissionregistrationv1.AllScopes
			rule.Scope = &all
		}
	}
}

func (n natives) named(name string) bool {
	return slices.ContainsFunc(n.policies, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == name })
}

// judge compiles the policies of a name. One without a binding is bound to
// everything, as the Kyverno command line does.
func (n natives) judge(name string, objects []map[string]any) (*vap.Judge, error) {
	var policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	for _, p := range n.policies {
		if p.Name == name {
			policies = append(policies, p)
		}
	}
	bindings := n.bindings
	if !slices.ContainsFunc(bindings, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
		return b.Spec.PolicyName == name
	}) {
		all := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		all.Name, all.Spec.PolicyName = name, name
		all.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
		bindings = append(slices.Clone(bindings), all)
	}
	var params []*unstructured.Unstructured
	for _, o := range objects {
		params = append(params, &unstructured.Unstructured{Object: o})
	}
	return vap.NewJudge(policies, bindings, vap.JudgeOptions{Params: params})
}

// natively judges a row of a native policy.
func (r *run) natively(ctx context.Context, row Row) []Result {
	judge, err := r.natives.judge(row.Policy, r.objects)
	if err != nil {
		return r.each(row, Result{Verdict: NotJudged, Reason: err.Error()})
	}
	return r.over(row, func(o manifest.Object) []Result {
		out := Result{Resource: o.Title(), Kind: o.Kind()}
		request, err := r.request(&session{}, row.Policy, row.Rule, row.Operation, o)
		outcome := vap.NoMatch
		if err == nil {
			outcome, out.Message, err = request.Ask(ctx, judge)
		}
		if err != nil {
			out.Verdict, out.Reason = NotJudged, err.Error()
			return []Result{out}
		}
		out.Native = string(outcome)
		switch want, got := row.Expected(), statusOf(outcome); {
		case got == "none" && want == "skip":
			out.Verdict, out.Reason = Passed, "Excluded"
		case got == "none":
			out.Verdict, out.Reason = Excluded, "no policy looks at the resource"
		case got == want:
			out.Verdict, out.Reason = Passed, "Ok"
		default:
			out.Verdict, out.Reason = Failed, fmt.Sprintf("Want %s, got %s", want, got)
		}
		return []Result{out}
	})
}
