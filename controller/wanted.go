package controller

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/vap"
)

// The native objects of the API server, in short.
type (
	nativePolicy  = admissionregistrationv1.ValidatingAdmissionPolicy
	nativeBinding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
)

// A judge is a native policy with its bindings: together they judge requests.
type judge struct {
	policy   *nativePolicy
	bindings []*nativeBinding
	// rules are the rules that it judges by, as policy/rule, with the names that
	// Kyverno reports.
	rules []string
}

// A configMapRef is a ConfigMap that native rules read. An empty namespace is that
// of each object under review.
type configMapRef struct{ namespace, name string }

// refOf is the ConfigMap that an object is, or that params were made of.
func refOf(o metav1.Object) configMapRef { return configMapRef{o.GetNamespace(), o.GetName()} }

func (r configMapRef) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: r.name}
}

// wantedJudges are the judges that a compilation wants, by name, but for those that
// wait.
func wantedJudges(objects []vap.Objects, waiting map[int]bool) map[string]*judge {
	out := map[string]*judge{}
	for i, o := range objects {
		if waiting[i] {
			continue
		}
		p := o.Policy.DeepCopy()
		p.Labels = ownLabels(p.Labels)
		j := &judge{policy: p}
		for _, b := range o.Bindings {
			b = b.DeepCopy()
			b.Labels = ownLabels(b.Labels)
			j.bindings = append(j.bindings, b)
		}
		for _, m := range o.Draft.Members {
			j.rules = append(j.rules, m.Policy+"/"+m.Rule)
		}
		out[p.Name] = j
	}
	return out
}

func ownLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		out[k] = v
	}
	out[vap.ManagedByLabel] = Manager
	return out
}

// configMapsOf are the ConfigMaps that native rules read by kvap's params.
func configMapsOf(objects []vap.Objects) []configMapRef {
	var out []configMapRef
	for _, o := range objects {
		for _, ref := range configMapsOfObject(o) {
			if !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		}
	}
	return out
}

func configMapsOfObject(o vap.Objects) []configMapRef {
	var out []configMapRef
	for _, b := range o.Bindings {
		if ref, ok := configMapOf(o.Policy, b); ok {
			out = append(out, ref)
		}
	}
	return out
}

// configMapOf is the ConfigMap behind the params of a binding.
func configMapOf(p *nativePolicy, b *nativeBinding) (configMapRef, bool) {
	kind, ref := p.Spec.ParamKind, b.Spec.ParamRef
	if kind == nil || kind.Kind != "Params" || kind.APIVersion != v1alpha1.GroupVersion().String() || ref == nil || ref.Name == "" {
		return configMapRef{}, false
	}
	return configMapRef{ref.Namespace, ref.Name}, true
}

// configMaps are the ConfigMaps behind the params of what the controller made.
func (l live) configMaps() []configMapRef {
	var out []configMapRef
	for _, b := range l.bindings {
		if p := l.policies[b.Spec.PolicyName]; p != nil && isOurs(p) && isOurs(b) {
			if ref, ok := configMapOf(p, b); ok {
				out = append(out, ref)
			}
		}
	}
	return out
}

// without is what is there of judges that nobody wants: they are to be removed, and could not
// be yet.
func (l live) without(wanted map[string]*judge) live {
	out := live{map[string]*nativePolicy{}, l.bindings}
	for name, p := range l.policies {
		if wanted[name] == nil {
			out.policies[name] = p
		}
	}
	return out
}

// isOneOf tells that a ConfigMap is one of those that rules read.
func isOneOf(refs []configMapRef, ref configMapRef) bool {
	return slices.Contains(refs, ref) || slices.Contains(refs, configMapRef{"", ref.name})
}

// rulesOf are the rules that a policy in the cluster judges by, as its source map
// says.
func rulesOf(p *nativePolicy) []string {
	t, ok, err := vap.TranslationOf(p.Annotations)
	if !ok || err != nil {
		return nil
	}
	var out []string
	for _, m := range t.Members {
		out = append(out, m.Policy+"/"+m.Rule)
	}
	return out
}

// remainingOf are the rules that have no native form, of policies that are enforced or
// in shadow.
func remainingOf(sources []*policySource, result compile.Result) []RemainingPolicy {
	byPolicy := rulesByPolicy(result)
	var out []RemainingPolicy
	for _, s := range sources {
		left, ok := s.remaining()
		if !ok {
			continue
		}
		some := false
		for _, r := range byPolicy[s.policy] {
			if !isLeft(r) {
				continue
			}
			some = true
			if r.Source != nil {
				left.Rules = append(left.Rules, r.Source)
			}
		}
		if some {
			out = append(out, left)
		}
	}
	return out
}

// kept are the rules of enforced policies that the webhook is to judge and does not, by
// the names that native policies call them: what judges by them stays.
func (o *outcome) kept(sources []*policySource) map[string]bool {
	if o.fallback == nil {
		return nil
	}
	out := map[string]bool{}
	for _, s := range sources {
		if s.policy == nil || s.mode != v1alpha1.ModeEnforce {
			continue
		}
		for _, r := range o.rules[s.policy] {
			if !isLeft(r) {
				continue
			}
			for _, form := range []string{"", "autogen-", "autogen-cronjob-"} {
				out[r.PolicyName()+"/"+form+r.Name()] = true
			}
		}
	}
	return out
}
