package mutating

import (
	"fmt"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/vap"
)

// Objects are a policy and its bindings. For a release that serves only the beta version
// they say so in their apiVersion; their fields are the same.
type Objects struct {
	Draft    *Draft // what they were made from
	Policy   *admissionregistrationv1.MutatingAdmissionPolicy
	Bindings []*admissionregistrationv1.MutatingAdmissionPolicyBinding
}

// All are the policy and its bindings as vap.Marshal takes them.
func (o Objects) All() []any {
	out := []any{o.Policy}
	for _, b := range o.Bindings {
		out = append(out, b)
	}
	return out
}

// MadeFrom is what a field of the policy or of a binding was made from, as of vap.Objects.
func (o Objects) MadeFrom(field string) (diag.Pos, []int) {
	var i int
	if n, _ := fmt.Sscanf(field, "spec.mutations[%d]", &i); n == 1 && i < len(o.Draft.Mutations) {
		m := o.Draft.Mutations[i]
		return m.Pos, append([]int{m.Member}, m.Also...)
	}
	frame := &admissionregistrationv1.ValidatingAdmissionPolicy{Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		Variables: o.Policy.Spec.Variables, MatchConditions: o.Policy.Spec.MatchConditions,
	}}
	return vap.Objects{Draft: &o.Draft.Draft, Policy: frame}.MadeFrom(field)
}

// Emit turns the trees of d into text and d into objects for a release, with every field
// that the API server would default. Where a diagnostic is an error there is no object: the
// caller leaves the draft's rules to the webhook.
func Emit(d *Draft, release cel.Release, opts vap.EmitOptions) (Objects, diag.List) {
	body := make([]vap.Expression, len(d.Mutations))
	for i, m := range d.Mutations {
		body[i] = vap.Expression{Pos: m.Pos, Expr: m.Expr}
	}
	frame, texts, found := vap.EmitWith(&d.Draft, body, opts)
	for i := range body {
		d.Mutations[i].Expr = body[i].Expr
	}
	if found.HasErrors() {
		return Objects{}, found
	}
	version := metav1.TypeMeta{APIVersion: admissionregistrationv1.GroupName + "/" + Version(release), Kind: "MutatingAdmissionPolicy"}
	again := admissionregistrationv1.NeverReinvocationPolicy
	if d.Reinvocation == IfNeeded {
		again = admissionregistrationv1.IfNeededReinvocationPolicy
	}
	from := frame.Policy.Spec
	out := Objects{Draft: d, Policy: &admissionregistrationv1.MutatingAdmissionPolicy{
		TypeMeta:   version,
		ObjectMeta: frame.Policy.ObjectMeta,
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ParamKind: from.ParamKind, MatchConstraints: from.MatchConstraints, Variables: from.Variables,
			FailurePolicy: from.FailurePolicy, MatchConditions: from.MatchConditions, ReinvocationPolicy: again,
		},
	}}
	for i, m := range d.Mutations {
		out.Policy.Spec.Mutations = append(out.Policy.Spec.Mutations, m.object(texts[i]))
	}
	version.Kind = "MutatingAdmissionPolicyBinding"
	for _, b := range frame.Bindings {
		out.Bindings = append(out.Bindings, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			TypeMeta:   version,
			ObjectMeta: b.ObjectMeta,
			Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
				PolicyName: b.Spec.PolicyName, ParamRef: b.Spec.ParamRef, MatchResources: b.Spec.MatchResources,
			},
		})
	}
	return out, found
}

func (m Mutation) object(text string) admissionregistrationv1.Mutation {
	if m.Type == JSONPatch {
		return admissionregistrationv1.Mutation{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch,
			JSONPatch: &admissionregistrationv1.JSONPatch{Expression: text},
		}
	}
	return admissionregistrationv1.Mutation{
		PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: text},
	}
}

// EmitAll emits drafts that go into the same cluster. One whose name is taken by a draft
// before it gets a number.
func EmitAll(drafts []*Draft, release cel.Release, opts vap.EmitOptions) ([]Objects, []diag.List) {
	out, found := make([]Objects, len(drafts)), make([]diag.List, len(drafts))
	taken := map[string]bool{}
	for _, name := range opts.Taken {
		taken[name] = true
	}
	for i, d := range drafts {
		base := d.Base
		for n := 2; ; n++ {
			if out[i], found[i] = Emit(d, release, opts); found[i].HasErrors() || !taken[out[i].Policy.Name] {
				break
			}
			named := *d
			named.Base = base + "-" + strconv.Itoa(n)
			d = &named
		}
		if !found[i].HasErrors() {
			taken[out[i].Policy.Name] = true
			out[i].Draft = drafts[i]
		}
	}
	return out, found
}
