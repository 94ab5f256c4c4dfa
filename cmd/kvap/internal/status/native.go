package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// A nativePolicy is a ValidatingAdmissionPolicy with its bindings. Where it is not kvap's
// its translation has no members.
type nativePolicy struct {
	*admissionregistrationv1.ValidatingAdmissionPolicy
	translation vap.Translation
	bindings    []report.BindingStatus
	warnings    []report.TypeWarning
	checked     bool      // the type checker has seen it
	changed     time.Time // when it, or one of its bindings, was written last
	problems    []report.Problem
}

// natives are the policies of the cluster by name. lost are the names that only
// bindings know.
func (c Snapshot) natives() (all []*nativePolicy, lost []report.NativeStatus) {
	byName := map[string]*nativePolicy{}
	for _, p := range c.Policies {
		n := c.native(p)
		byName[p.Name] = n
		all = append(all, n)
	}
	bindings := slices.SortedFunc(slices.Values(c.Bindings), func(a, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) int {
		return strings.Compare(a.Name, b.Name)
	})
	for _, b := range bindings {
		if n := byName[b.Spec.PolicyName]; n != nil {
			n.bindings = append(n.bindings, c.binding(b, n.Spec.ParamKind))
			if t := lastWrite(b); t.After(n.changed) {
				n.changed = t
			}
			continue
		}
		lost = append(lost, report.NativeStatus{
			Name: b.Spec.PolicyName, Missing: true, Action: report.JoinActions(actions(b)), Bindings: []report.BindingStatus{c.binding(b, nil)},
			Problems: []report.Problem{{Reason: "PolicyMissing", Message: fmt.Sprintf(
				"the binding %s names the policy %s, which does not exist, so it does nothing; create the policy or delete the binding", b.Name, b.Spec.PolicyName)}},
		})
	}
	for _, n := range all {
		n.judge()
	}
	slices.SortFunc(all, func(a, b *nativePolicy) int { return strings.Compare(a.Name, b.Name) })
	return all, lost
}

func (c Snapshot) native(p *admissionregistrationv1.ValidatingAdmissionPolicy) *nativePolicy {
	n := &nativePolicy{ValidatingAdmissionPolicy: p, changed: lastWrite(p)}
	translation, found, err := vap.TranslationOf(p.Annotations)
	switch {
	case err != nil:
		n.problems = append(n.problems, report.Problem{Reason: "SourceMapUnreadable", Message: err.Error()})
	case found:
		n.translation = translation
	}
	warnings, checked := apiserver.ClusterWarnings(p)
	n.checked = checked
	alarms := c.falseAlarms(p, warnings)
	for i, w := range warnings {
		tw := report.TypeWarning{Object: p.Name, FieldRef: w.Field, Warning: strings.TrimSpace(w.Warning), Known: alarms[i]}
		if m, path, ok := n.translation.Of(w.Field); ok {
			tw.Rule, tw.File, tw.Path = originOf(m), m.File, path
		}
		n.warnings = append(n.warnings, tw)
	}
	return n
}

func originOf(m vap.TranslatedMember) string {
	if m.Origin != "" {
		return m.Origin
	}
	return m.Rule
}

// canary tells of the controller's own policy, by which it sees whether API servers
// judge: it is about nothing.
func (n *nativePolicy) canary() bool {
	return n.Labels[vap.ManagedByLabel] == "kvap-controller" && len(n.translation.Members) == 0
}

// judge says what is wrong with the policy itself.
func (n *nativePolicy) judge() {
	if len(n.bindings) == 0 {
		n.problems = append(n.problems, report.Problem{Reason: "Unbound", Message: fmt.Sprintf(
			"no binding names %s, so it judges nothing; create a ValidatingAdmissionPolicyBinding for it", n.Name)})
	}
	for _, b := range n.bindings {
		if b.Problem != nil {
			n.problems = append(n.problems, *b.Problem)
		}
	}
}

// action is the actions of all its bindings.
func (n *nativePolicy) action() []string {
	var all []string
	for _, b := range n.bindings {
		all = append(all, b.Actions...)
	}
	return all
}

// unmanaged is the policy as somebody else's.
func (n *nativePolicy) unmanaged() report.NativeStatus {
	return report.NativeStatus{
		Name: n.Name, Created: stamp(n.CreationTimestamp.Time), Action: report.JoinActions(n.action()), Bindings: n.bindings,
		Problems: n.problems, Warnings: n.warnings,
	}
}

// has tells whether one of the problems has the reason.
func (n *nativePolicy) has(reason string) bool {
	return slices.ContainsFunc(n.problems, func(p report.Problem) bool { return p.Reason == reason })
}

func actions(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) []string {
	var out []string
	for _, a := range b.Spec.ValidationActions {
		out = append(out, string(a))
	}
	return out
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// falseAlarms tells which warnings are false alarms of the cluster's type checker:
// those which the types that the API server publishes yield, and the types that
// values have at run time do not. There, for instance, resources.limits is a map of
// strings; what the API server publishes has no such field.
func (c Snapshot) falseAlarms(p *admissionregistrationv1.ValidatingAdmissionPolicy, warnings []apiserver.TypeWarning) []bool {
	out := make([]bool, len(warnings))
	if len(warnings) == 0 || c.Schemas == nil {
		return out
	}
	mapper := c.Schemas.RESTMapper()
	published := complaints(apiserver.TypeCheck(p, c.Schemas.StatusResolver(), mapper))
	atRuntime := complaints(apiserver.TypeCheck(p, c.Schemas.Resolver(), mapper))
	for i, w := range warnings {
		kinds := apiserver.WarnedKinds(w.Warning)
		out[i] = len(kinds) > 0
		for _, kind := range kinds {
			at := complaint{w.Field, kind}
			out[i] = out[i] && published[at] && !atRuntime[at]
		}
	}
	return out
}

// A complaint is about an expression on objects of a kind.
type complaint struct{ field, kind string }

func complaints(warnings []apiserver.TypeWarning) map[complaint]bool {
	out := map[complaint]bool{}
	for _, w := range warnings {
		for _, kind := range apiserver.WarnedKinds(w.Warning) {
			out[complaint{w.Field, kind}] = true
		}
	}
	return out
}

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
