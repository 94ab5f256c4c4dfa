package judge

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// Deployed are native objects as a cluster has them, or as somebody wrote them: they
// are no output of this run.
type Deployed struct {
	Policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	Bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding

	places map[any]diag.Pos // of the objects
}

// DeployedGroup is the API group of native objects.
const DeployedGroup = "admissionregistration.k8s.io/"

// IsDeployed tells whether an object is for Deployed.Add.
func IsDeployed(o manifest.Object) bool {
	return strings.HasPrefix(o.APIVersion(), DeployedGroup) && (strings.HasPrefix(o.Kind(), "ValidatingAdmissionPolicy") ||
		strings.HasPrefix(o.Kind(), "MutatingAdmissionPolicy"))
}

// Add takes a native policy or binding in, with the defaults that an API server
// gives it. Earlier versions have the same form.
func (d *Deployed) Add(o manifest.Object) diag.List {
	switch o.Kind() {
	case "ValidatingAdmissionPolicy":
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Value, p); err != nil {
			return diag.List{misfit(o, err)}
		}
		setDefaults(&p.Spec.MatchConstraints)
		if p.Spec.FailurePolicy == nil {
			fail := admissionregistrationv1.Fail
			p.Spec.FailurePolicy = &fail
		}
		return d.addPolicy(o, p)
	case "ValidatingAdmissionPolicyBinding":
		b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Value, b); err != nil {
			return diag.List{misfit(o, err)}
		}
		if b.Spec.MatchResources != nil {
			setDefaults(&b.Spec.MatchResources)
		}
		return d.addBinding(o, b)
	}
	return diag.List{diag.Warnf(o.Pos, diag.OtherKind, "the %s %s is not judged as it is here; kvap test and kvap migrate compare do that", o.Kind(), o.Meta("name"))}
}

func misfit(o manifest.Object, err error) diag.Diagnostic {
	return diag.Errorf(o.Pos, diag.InvalidObject, "the %s %s cannot be read: %v", o.Kind(), o.Meta("name"), err)
}

func (d *Deployed) addPolicy(o manifest.Object, p *admissionregistrationv1.ValidatingAdmissionPolicy) diag.List {
	for _, have := range d.Policies {
		if have.Name == p.Name {
			return d.repeated(o, have, reflect.DeepEqual(have.Spec, p.Spec))
		}
	}
	d.Policies = append(d.Policies, p)
	d.place(p, o.Pos)
	return nil
}

func (d *Deployed) addBinding(o manifest.Object, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) diag.List {
	for _, have := range d.Bindings {
		if have.Name == b.Name {
			return d.repeated(o, have, reflect.DeepEqual(have.Spec, b.Spec))
		}
	}
	d.Bindings = append(d.Bindings, b)
	d.place(b, o.Pos)
	return nil
}

// repeated tells of a second object of one name: a cluster holds only one.
func (d *Deployed) repeated(o manifest.Object, have any, same bool) diag.List {
	if same {
		return diag.List{diag.Notef(o.Pos, diag.Conflict, "%s is the same as at %s; it is passed over", o.Title(), d.places[have])}
	}
	return diag.List{diag.Errorf(o.Pos, diag.Conflict, "%s is defined at %s already, and differently; a cluster holds one of the two, and the first is judged",
		o.Title(), d.places[have])}
}

func (d *Deployed) place(object any, pos diag.Pos) {
	if d.places == nil {
		d.places = map[any]diag.Pos{}
	}
	d.places[object] = pos
}

// Check leaves out what an API server would refuse, of the release that the checker is
// for, and what enforces nothing: a policy without a binding, and a binding without
// its policy.
func (d *Deployed) Check(checker *apiserver.Checker, release string) (found diag.List) {
	named := slices.Clone(d.Policies)
	refuse := func(object any, kind, name, why string) {
		found = append(found, diag.Errorf(d.places[object], diag.InvalidObject,
			"an API server of Kubernetes %s refuses the %s %s: %s; correct it, or say which release it is for with --kubernetes-version", release, kind, name, why))
	}
	d.Bindings = slices.DeleteFunc(d.Bindings, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
		if errs := apiserver.ValidateBinding(b); len(errs) > 0 {
			refuse(b, "ValidatingAdmissionPolicyBinding", b.Name, errs[0].Error())
			return true
		}
		if hasPolicy(named, b.Spec.PolicyName) {
			return false
		}
		found = append(found, diag.Errorf(d.places[b], diag.MissingObject,
			"the ValidatingAdmissionPolicyBinding %s binds the ValidatingAdmissionPolicy %s, which is not among the input, so it does nothing; give both",
			b.Name, b.Spec.PolicyName))
		return true
	})
	d.Policies = slices.DeleteFunc(d.Policies, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		if errs := checker.Validate(p); len(errs) > 0 {
			refuse(p, "ValidatingAdmissionPolicy", p.Name, errs[0].Error())
			return true
		}
		if len(d.BindingsOf(p.Name)) > 0 {
			return false
		}
		found = append(found, diag.Errorf(d.places[p], diag.MissingObject,
			"the ValidatingAdmissionPolicy %s has no ValidatingAdmissionPolicyBinding among the input, so nothing enforces it; give both", p.Name))
		return true
	})
	return found
}

// Dependent warns of what a judge, which is of the latest release, may judge otherwise
// than an API server of the release that was asked for.
func (d *Deployed) Dependent(release string, differences func(*admissionregistrationv1.ValidatingAdmissionPolicy) []apiserver.Difference) (found diag.List) {
	for _, p := range d.Policies {
		for _, difference := range differences(p) {
			found = append(found, diag.Warnf(d.places[p], diag.ReleaseDependent,
				"the ValidatingAdmissionPolicy %s is judged as Kubernetes %s does, which may differ from %s: %s", p.Name, difference.Since, release, difference))
		}
	}
	return found
}

func hasPolicy(list []*admissionregistrationv1.ValidatingAdmissionPolicy, name string) bool {
	return slices.ContainsFunc(list, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == name })
}

// BindingsOf are the bindings of a policy.
func (d *Deployed) BindingsOf(name string) (out []*admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	for _, b := range d.Bindings {
		if b.Spec.PolicyName == name {
			out = append(out, b)
		}
	}
	return out
}

// HasParams tells whether a policy has params.
func (d *Deployed) HasParams() bool {
	return slices.ContainsFunc(d.Policies, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Spec.ParamKind != nil })
}

// Pos is where a policy stands.
func (d *Deployed) Pos(p *admissionregistrationv1.ValidatingAdmissionPolicy) diag.Pos {
	return d.places[p]
}

// Sources are the policies that a native one says it was made from, called as users
// do.
func (d *Deployed) Sources(p *admissionregistrationv1.ValidatingAdmissionPolicy) (names []string) {
	t, _ := translationOf(p)
	for _, m := range t.Members {
		if !slices.Contains(names, m.Policy) {
			names = append(names, m.Policy)
		}
	}
	return names
}

// HasRuleOf tells that a native policy says it was made from a rule that a policy has.
func (d *Deployed) HasRuleOf(p *admissionregistrationv1.ValidatingAdmissionPolicy, source *policy.Policy) bool {
	t, _ := translationOf(p)
	return slices.ContainsFunc(t.Members, func(m vap.TranslatedMember) bool {
		return m.Policy == source.FullName() && (source.InCEL() || slices.ContainsFunc(source.Rules, func(r *policy.Rule) bool {
			return r.Name == cmp.Or(m.Origin, m.Rule)
		}))
	})
}

// TranslationOf is the source map of a native policy. That of one which says nothing of its
// source, or is not as it was made, is of one rule of its own name; made is false then.
func TranslationOf(p *admissionregistrationv1.ValidatingAdmissionPolicy) (t vap.Translation, made bool) {
	if t, made = translationOf(p); !made {
		t = wholly(p)
	}
	return t, made
}

// Params are those among objects that a policy names as the kind of its params.
func (d *Deployed) Params(objects []manifest.Object) (out []map[string]any) {
	for _, o := range objects {
		if slices.ContainsFunc(d.Policies, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
			k := p.Spec.ParamKind
			return k != nil && k.APIVersion == o.APIVersion() && k.Kind == o.Kind()
		}) {
			out = append(out, o.Value)
		}
	}
	return out
}

// From are the objects that were made from rules of a policy, called as users do.
func (d *Deployed) From(policyName string) Deployed {
	out := Deployed{places: d.places}
	for _, p := range d.Policies {
		if slices.Contains(d.Sources(p), policyName) {
			out.Policies = append(out.Policies, p)
			out.Bindings = append(out.Bindings, d.BindingsOf(p.Name)...)
		}
	}
	return out
}

// translationOf is the source map of a policy. ok is false where there is none that
// fits, as of one that was written, or edited, by hand.
func translationOf(p *admissionregistrationv1.ValidatingAdmissionPolicy) (t vap.Translation, ok bool) {
	t, ok, err := vap.TranslationOf(p.Annotations)
	if !ok || err != nil || len(t.Members) == 0 || len(t.Validations) != len(p.Spec.Validations) {
		return vap.Translation{}, false
	}
	return t, true
}

// wholly is the source map of a policy that is one rule of its own name.
func wholly(p *admissionregistrationv1.ValidatingAdmissionPolicy) vap.Translation {
	return vap.Translation{
		Members:     []vap.TranslatedMember{{Policy: p.Name, Rule: p.Name}},
		Validations: make([]vap.TranslatedExpression, len(p.Spec.Validations)),
	}
}

// LeftOut are the namespaces that the bindings of a policy leave out by name.
func (d *Deployed) LeftOut(policyName string) []string { return leftOut(d.BindingsOf(policyName)) }

// leftOut are the namespaces that a policy's bindings leave out by name, as those of
// generated policies do with the system namespaces, and that none of them names as
// its own.
func leftOut(bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding) []string {
	var out, in []string
	for _, b := range bindings {
		if b.Spec.MatchResources == nil {
			return nil // it counts everywhere
		}
		for _, r := range b.Spec.MatchResources.NamespaceSelector.MatchExpressions {
			switch {
			case r.Key != "kubernetes.io/metadata.name":
			case r.Operator == metav1.LabelSelectorOpNotIn:
				out = append(out, r.Values...)
			case r.Operator == metav1.LabelSelectorOpIn:
				in = append(in, r.Values...)
			}
		}
	}
	return slices.DeleteFunc(out, func(n string) bool { return slices.Contains(in, n) })
}

// Bound are the same objects, with the policies that have no binding bound to
// everything, as the Kyverno command line does.
func (d *Deployed) Bound() Deployed {
	out := Deployed{Policies: d.Policies, Bindings: slices.Clone(d.Bindings), places: d.places}
	for _, p := range d.Policies {
		if len(d.BindingsOf(p.Name)) == 0 {
			all := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
			all.Name, all.Spec.PolicyName = p.Name, p.Name
			all.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
			out.Bindings = append(out.Bindings, all)
		}
	}
	return out
}

// Whole is the policy of a name as one rule, whatever it was made from.
func (d *Deployed) Whole(name string) (out Deployed, ok bool) {
	for _, p := range d.Policies {
		if p.Name == name {
			whole := *p
			whole.Annotations = nil
			return Deployed{Policies: []*admissionregistrationv1.ValidatingAdmissionPolicy{&whole}, Bindings: d.BindingsOf(name)}, true
		}
	}
	return out, false
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
	for i := range (*m).ExcludeResourceRules {
		if rule := &(*m).ExcludeResourceRules[i]; rule.Scope == nil {
			all := admissionregistrationv1.AllScopes
			rule.Scope = &all
		}
	}
}
