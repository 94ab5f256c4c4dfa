package audit

import (
	"cmp"
	"context"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/vap"
)

// A Decision is what a native policy of kvap's said of a request by one rule, which was violated.
type Decision struct {
	Policy    v1alpha1.PolicyReference // that it was made from
	Rule      string                   // as Kyverno reports it; empty where the log does not tell
	Object    corev1.ObjectReference
	Operation string
	User      string
	// Erred tells that an expression could not be evaluated, and Blocked that the rule kept the
	// request out. Admitted tells that nobody did.
	Erred, Blocked, Admitted bool
	Message                  string
}

// NativePolicies know the native policies of kvap.
type NativePolicies interface {
	// Native is a policy that kvap made, by its name; nil where it made none of that name.
	Native(ctx context.Context, name string) (*admissionregistrationv1.ValidatingAdmissionPolicy, error)
	// Source is the policy that a rule of a native policy was made from.
	Source(ctx context.Context, m vap.TranslatedMember, native string) (of v1alpha1.PolicyReference, known bool, err error)
	// Kind is the kind of the objects of a resource.
	Kind(of schema.GroupVersionResource) (schema.GroupVersionKind, error)
}

// decisions are what native policies of kvap's said of a request.
func decisions(ctx context.Context, e *Event, natives NativePolicies) (out []Decision, err error) {
	failures, err := e.Failures()
	if err != nil {
		return nil, err
	}
	denied := e.denied()
	if denied != nil && !slices.ContainsFunc(failures, func(f Failure) bool { return f.Policy == denied.Policy && f.Message == denied.Message }) {
		failures = append(failures, *denied) // after those of which the expression is known
	}
	if len(failures) == 0 || e.dryRun() {
		return nil, nil
	}
	common := Decision{Operation: e.operation(), User: e.User.Username, Admitted: !e.Refused()}
	if common.Object, err = objectOf(e, natives); err != nil {
		return nil, err
	}
	for _, f := range failures {
		native, err := natives.Native(ctx, f.Policy)
		if err != nil {
			return out, err
		}
		if native == nil {
			continue
		}
		rules, err := violationsOf(native, f, e.ObjectRef.Resource)
		if err != nil {
			return out, err
		}
		for _, m := range rules {
			d := common
			d.Rule, d.Message, d.Erred = m.Rule, m.words, erred(m.words)
			d.Blocked = denied != nil && slices.Contains(f.Actions, deny)
			known := false
			if d.Policy, known, err = natives.Source(ctx, m.TranslatedMember, native.Name); err != nil {
				return out, err
			}
			same := func(other Decision) bool { return other.Policy == d.Policy && other.Rule == d.Rule }
			if known && !slices.ContainsFunc(out, same) {
				out = append(out, d)
			}
		}
	}
	return out, nil
}

func objectOf(e *Event, natives NativePolicies) (corev1.ObjectReference, error) {
	r := e.ObjectRef
	kind, err := natives.Kind(schema.GroupVersionResource{Group: r.APIGroup, Version: r.APIVersion, Resource: r.Resource})
	if err != nil {
		return corev1.ObjectReference{}, err
	}
	out := corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: r.Namespace, Name: r.Name, UID: types.UID(cmp.Or(r.UID, e.ResponseObject.Metadata.UID)),
	}
	if r.APIGroup == "" && r.Resource == "namespaces" { // the log has it in itself
		out.Namespace = ""
	}
	return out, nil
}

// erred reports whether a message says that an expression could not be evaluated, or a policy not
// be configured, as the API server puts it.
func erred(message string) bool {
	return strings.HasPrefix(message, "expression '") && strings.Contains(message, "' resulted in error: ") || strings.HasPrefix(message, "failed to configure ")
}

// A violation is a rule that was violated, and what the native policy says of it.
type violation struct {
	vap.TranslatedMember
	words string
}

// violationsOf are the rules of a native policy that a finding is about: that of the expression where it
// is known, else that which the message names or has the words of; and those that it lists besides.
func violationsOf(native *admissionregistrationv1.ValidatingAdmissionPolicy, f Failure, resource string) (out []violation, err error) {
	text, ok, err := vap.TranslationOf(native.Annotations)
	if !ok || err != nil {
		return nil, err
	}
	add := func(words string, members ...int) {
		for _, i := range members {
			m := text.Members[i]
			same := func(other violation) bool { return other.Policy == m.Policy && other.Rule == m.Rule }
			if m.IsAbout(resource) && !slices.ContainsFunc(out, same) {
				out = append(out, violation{m, words})
			}
		}
	}
	words, named := text.Words(f.Message)
	listed := text.Named(f.Message)
	if i := f.ExpressionIndex; i >= 0 && i < len(text.Validations) {
		add(words, text.Validations[i].Members()...)
	}
	if add(words, named...); len(out) == 0 {
		for _, m := range saying(native, text, f.Message) {
			if len(listed) == 0 || slices.Contains(listed, m) { // two rules may have the same words
				add(words, m)
			}
		}
	}
	for _, m := range listed {
		add(wordsOf(native, text, m), m)
	}
	if len(out) == 0 {
		add(words, indexes(text.Members)...)
	}
	if len(out) < 2 || len(named) > 0 || len(listed) > 0 || f.ExpressionIndex >= 0 {
		return out, nil
	}
	for _, v := range out { // it is one of these, and nothing tells which
		if v.Policy != out[0].Policy {
			return nil, nil
		}
	}
	out[0].Rule = ""
	return out[:1], nil
}

// saying are the members whose words a message begins with.
func saying(native *admissionregistrationv1.ValidatingAdmissionPolicy, text vap.Translation, message string) (members []int) {
	for i, v := range native.Spec.Validations {
		if i < len(text.Validations) && v.Message != "" && strings.HasPrefix(message, v.Message) {
			members = append(members, text.Validations[i].Members()...)
		}
	}
	return members
}

// wordsOf are the words of a rule; empty where they are computed.
func wordsOf(native *admissionregistrationv1.ValidatingAdmissionPolicy, text vap.Translation, member int) string {
	for i, v := range native.Spec.Validations {
		if i < len(text.Validations) && slices.Contains(text.Validations[i].Members(), member) {
			words, _ := text.Words(v.Message)
			return words
		}
	}
	return ""
}

func indexes[E any](list []E) []int {
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	return out
}
