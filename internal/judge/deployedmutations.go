package judge

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// DeployedMutations are native policies that mutate, and their bindings, as a cluster has them or
// as somebody wrote them.
type DeployedMutations struct {
	Policies []*admissionregistrationv1.MutatingAdmissionPolicy
	Bindings []*admissionregistrationv1.MutatingAdmissionPolicyBinding
}

// IsDeployedMutation tells whether an object is for DeployedMutations.Add.
func IsDeployedMutation(o manifest.Object) bool {
	return IsDeployed(o) && (o.Kind() == "MutatingAdmissionPolicy" || o.Kind() == "MutatingAdmissionPolicyBinding")
}

// Add takes a native policy or binding in, with the defaults that an API server gives it. Earlier
// versions have the same form. Of objects with one name the first counts.
func (d *DeployedMutations) Add(o manifest.Object) diag.List {
	if o.Kind() == "MutatingAdmissionPolicyBinding" {
		b := &admissionregistrationv1.MutatingAdmissionPolicyBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Value, b); err != nil {
			return diag.List{misfit(o, err)}
		}
		if b.Spec.MatchResources != nil {
			setDefaults(&b.Spec.MatchResources)
		}
		if !slices.ContainsFunc(d.Bindings, func(have *admissionregistrationv1.MutatingAdmissionPolicyBinding) bool { return have.Name == b.Name }) {
			d.Bindings = append(d.Bindings, b)
		}
		return nil
	}
	p := &admissionregistrationv1.MutatingAdmissionPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Value, p); err != nil {
		return diag.List{misfit(o, err)}
	}
	setDefaults(&p.Spec.MatchConstraints)
	if p.Spec.FailurePolicy == nil {
		fail := admissionregistrationv1.Fail
		p.Spec.FailurePolicy = &fail
	}
	if !d.Has(p.Name) {
		d.Policies = append(d.Policies, p)
	}
	return nil
}

// Has tells whether there is a policy of a name.
func (d *DeployedMutations) Has(name string) bool {
	return slices.ContainsFunc(d.Policies, func(p *admissionregistrationv1.MutatingAdmissionPolicy) bool { return p.Name == name })
}

// Binds tells whether there is a binding of a policy.
func (d *DeployedMutations) Binds(name string) bool {
	return slices.ContainsFunc(d.Bindings, func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName == name })
}

// Bound are the same objects, with the policies that have no binding bound to everything, as the
// Kyverno command line does.
func (d *DeployedMutations) Bound() DeployedMutations {
	out := DeployedMutations{Policies: d.Policies, Bindings: slices.Clone(d.Bindings)}
	for _, p := range d.Policies {
		if !d.Binds(p.Name) {
			all := &admissionregistrationv1.MutatingAdmissionPolicyBinding{}
			all.Name, all.Spec.PolicyName = p.Name, p.Name
			out.Bindings = append(out.Bindings, all)
		}
	}
	return out
}

// Named is the policy of a name, with its bindings.
func (d *DeployedMutations) Named(name string) (out DeployedMutations) {
	for _, p := range d.Policies {
		if p.Name == name {
			out.Policies = append(out.Policies, p)
		}
	}
	for _, b := range d.Bindings {
		if b.Spec.PolicyName == name {
			out.Bindings = append(out.Bindings, b)
		}
	}
	return out
}

// madeFrom are the policies that were made from the mutate rules of a policy, with their bindings;
// none where one of these rules has none.
func (d *DeployedMutations) madeFrom(p *policy.Policy, rules []*compile.Rule) (out DeployedMutations) {
	var members []vap.TranslatedMember
	for _, one := range d.Policies {
		t, ok, err := vap.TranslationOf(one.Annotations)
		if err != nil || !ok || !slices.ContainsFunc(t.Members, func(m vap.TranslatedMember) bool { return m.Policy == p.FullName() }) {
			continue
		}
		with := d.Named(one.Name)
		out.Policies, out.Bindings = append(out.Policies, with.Policies...), append(out.Bindings, with.Bindings...)
		members = append(members, t.Members...)
	}
	for _, r := range rules {
		if r.Policy == p && r.Mutates() && !slices.ContainsFunc(members, func(m vap.TranslatedMember) bool { return m.Rule == r.Name() || m.Origin == r.Name() }) {
			return DeployedMutations{}
		}
	}
	return out
}

// leftOut are the namespaces that bindings leave out by name.
func (d *DeployedMutations) leftOut() []string {
	var out []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, b := range d.Bindings {
		one := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		one.Spec.MatchResources = b.Spec.MatchResources
		out = append(out, one)
	}
	return leftOut(out)
}

// selecting are the policies that are enforced in namespaces with some labels, as if all namespaces
// had them. A policy or its binding selects.
func (d *DeployedMutations) selecting() (out DeployedMutations) {
	for _, p := range d.Policies {
		constraints, all := anywhere(p.Spec.MatchConstraints)
		one := *p
		one.Spec.MatchConstraints = constraints
		for _, b := range d.Named(p.Name).Bindings {
			resources, some := anywhere(b.Spec.MatchResources)
			if !all && !some {
				continue
			}
			bound := *b
			bound.Spec.MatchResources = resources
			out.Bindings = append(out.Bindings, &bound)
		}
		out.Policies = append(out.Policies, &one)
	}
	return out
}

// nativeMutations are native policies that mutate.
type nativeMutations struct {
	*apiserver.Mutator
	selecting     *apiserver.Mutator // of those that labels of namespaces select (DeployedMutations.selecting)
	readNamespace map[string]bool    // more of it than its name and labels, by policy
}

// natives compiles the policies.
func (d *DeployedMutations) natives(o apiserver.JudgeOptions) (*nativeMutations, error) {
	out := &nativeMutations{readNamespace: map[string]bool{}}
	for _, p := range d.Policies {
		if apiserver.MutationReadsNamespace(p) {
			out.readNamespace[p.Name] = true
		}
	}
	var err error
	if out.Mutator, err = apiserver.NewMutator(d.Policies, d.Bindings, o); err != nil {
		return nil, err
	}
	selecting := d.selecting()
	out.selecting, err = apiserver.NewMutator(selecting.Policies, selecting.Bindings, o)
	return out, err
}

// readsNamespace tells whether one reads more of the namespace than its name and labels.
func (n *nativeMutations) readsNamespace() bool { return len(n.readNamespace) > 0 }

// mutate is what the policies make of the object of a request, one after the other, with the
// verdict of each. What labels of the namespace decide that nobody knows is unknown.
func (n *nativeMutations) mutate(ctx context.Context, r *interp.Request) (object map[string]any, verdicts []apiserver.MutatingVerdict, err error) {
	request, err := admissionOf(r)
	if err != nil {
		return nil, nil, err
	}
	object, verdicts, err = n.Mutate(ctx, request, toldOf(r.NamespaceLabels, r.Namespace))
	if err != nil || !r.NamespaceUnknown {
		return object, verdicts, err
	}
	_, selected, err := n.selecting.Mutate(ctx, request, nil)
	for _, s := range selected {
		for i := range verdicts {
			if v := &verdicts[i]; s.Outcome != apiserver.NoMatch && v.Policy == s.Policy && v.Binding == s.Binding {
				v.Outcome, v.Message, v.Refused = apiserver.Unknown, NamespaceNotGiven(request.Namespace), false
			}
		}
	}
	return object, verdicts, err
}

// Mutator compiles the policies, which mutate in a cluster.
func (d *DeployedMutations) Mutator(c ClusterState) (*Mutator, error) {
	natives, err := d.natives(c.Options())
	return &Mutator{natives: natives, known: &Judges{namespaces: namespacesOf(c.Objects), all: c.AllNamespaces}}, err
}

// A Mutator is native policies that mutate.
type Mutator struct {
	natives *nativeMutations
	known   *Judges // who know the namespaces, and no rule
}

// Mutate is what the policies make of the object of a request, one after the other, with the
// verdict of each. An API server promises no order among them.
func (m *Mutator) Mutate(ctx context.Context, r *Request) (object map[string]any, verdicts []apiserver.MutatingVerdict, err error) {
	object, verdicts, err = m.natives.mutate(ctx, m.known.asked(r.unnamed()))
	for i := range verdicts {
		if v := &verdicts[i]; v.Outcome != apiserver.NoMatch && m.natives.readNamespace[v.Policy] && !m.known.knowsNamespace(r) {
			v.Outcome, v.Message = apiserver.Unknown, NamespaceNotGiven(r.native.Namespace)
		}
	}
	return object, verdicts, err
}
