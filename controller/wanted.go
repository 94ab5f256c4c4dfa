package controller

import (
	"cmp"
	"maps"
	"regexp"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// A wantedPolicy is a native policy with its bindings, as a compilation has it.
type wantedPolicy struct {
	policy   client.Object
	bindings []client.Object
	// rules are its rules, as policy/rule, with the names that Kyverno reports.
	rules []string
	waits bool  // for ConfigMaps that do not exist: it is not wanted meanwhile
	parts parts // once somebody has asked for them
}

// objects are the policy and its bindings.
func (o *wantedPolicy) objects() []client.Object {
	return append([]client.Object{o.policy}, o.bindings...)
}

// A configMapRef is a ConfigMap that native rules read. An empty namespace is that
// of each object under review.
type configMapRef struct{ namespace, name string }

// refOf is the ConfigMap that an object is, or that params were made of.
func refOf(o metav1.Object) configMapRef { return configMapRef{o.GetNamespace(), o.GetName()} }

func (r configMapRef) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: r.name}
}

// wantedPolicyOf is a native policy as it is compiled, with the controller's label.
func wantedPolicyOf[P, B client.Object](p P, bindings []B, members []vap.Member) *wantedPolicy {
	out := &wantedPolicy{policy: withOwnLabel(p)}
	for _, b := range bindings {
		out.bindings = append(out.bindings, withOwnLabel(b))
	}
	for _, m := range members {
		out.rules = append(out.rules, m.Policy+"/"+m.Rule)
	}
	return out
}

// wantedPolicies are the native policies of a compilation by key, but for those that wait.
func wantedPolicies(natives []*wantedPolicy) map[string]*wantedPolicy {
	out := map[string]*wantedPolicy{}
	for _, o := range natives {
		if !o.waits {
			out[keyOf(o.policy)] = o
		}
	}
	return out
}

// withOwnLabel is a copy with the controller's label.
func withOwnLabel(o client.Object) client.Object {
	out, _ := o.DeepCopyObject().(client.Object)
	out.SetLabels(ownLabels(out.GetLabels()))
	return out
}

func ownLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, labels)
	out[vap.ManagedByLabel] = Manager
	return out
}

// configMapsOf are the ConfigMaps that native rules read by kvap's params.
func configMapsOf(natives []*wantedPolicy) []configMapRef {
	var out []configMapRef
	for _, o := range natives {
		for _, ref := range o.configMaps() {
			if !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		}
	}
	return out
}

func (o *wantedPolicy) configMaps() []configMapRef {
	var out []configMapRef
	for _, b := range o.bindings {
		if ref, ok := configMapOf(o.policy, b); ok {
			out = append(out, ref)
		}
	}
	return out
}

// configMapOf is the ConfigMap behind the params of a binding.
func configMapOf(p, b client.Object) (configMapRef, bool) {
	kind, ref := field[*admissionregistrationv1.ParamKind](p, "ParamKind"), paramRefOf(b)
	if kind == nil || kind.Kind != "Params" || kind.APIVersion != v1alpha1.GroupVersion().String() || ref == nil || ref.Name == "" {
		return configMapRef{}, false
	}
	return configMapRef{ref.Namespace, ref.Name}, true
}

// configMaps are the ConfigMaps behind the params of what the controller made, but for what
// belongs to policies that are wanted.
func (l clusterState) configMaps(wanted map[string]*wantedPolicy) []configMapRef {
	var out []configMapRef
	for _, b := range l.bindings {
		if p := l.policies[boundTo(b)]; p != nil && wanted[boundTo(b)] == nil && isOurs(p) && isOurs(b) {
			if ref, ok := configMapOf(p, b); ok {
				out = append(out, ref)
			}
		}
	}
	return out
}

// rulesOf are the rules that a policy in the cluster judges by, as its source map
// says.
func rulesOf(p client.Object) []string {
	t, ok, err := vap.TranslationOf(p.GetAnnotations())
	if !ok || err != nil {
		return nil
	}
	var out []string
	for _, m := range t.Members {
		out = append(out, m.Policy+"/"+m.Rule)
	}
	return out
}

// remainingOf are the policies that are enforced or in shadow, each with the rules that are
// served of it.
func remainingOf(
	sources []*policySource, rules map[*policy.Policy][]*compile.Rule, served func(RemainingPolicy, *compile.Rule) bool,
) (out []RemainingPolicy) {
	for _, s := range sources {
		left, ok := s.remaining()
		some := false
		for _, r := range rules[s.policy] {
			if !ok || r.Policy.Invalid || r.Source != nil && r.Source.Invalid || !served(left, r) {
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

// keptRules are the rules of enforced policies that the webhook is to judge and, because it
// fails, does not, by the names that native policies call them: what judges by them stays.
func keptRules(sources []*policySource, rules map[*policy.Policy][]*compile.Rule, failure error) map[string]bool {
	if failure == nil {
		return nil
	}
	out := map[string]bool{}
	for _, s := range sources {
		if s.policy == nil || s.mode != v1alpha1.ModeEnforce {
			continue
		}
		for _, r := range rules[s.policy] {
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

// Policies share native objects, so that a change in one of them changes an object that
// judges by the rules of others. A part is what of an object one rule, as policy/rule, is
// judged by: a text that stays the same while other rules of the object change.
type parts map[string]string

// partsOf are the parts of a native policy with its bindings; nil where nobody judges by it.
// The rules of one that mutates have all of it: each runs on what the others made.
func partsOf(o client.Object, bindings []client.Object) parts {
	bound := make([]string, len(bindings))
	for i, b := range bindings {
		bound[i] = asJSON(specOf(b))
	}
	slices.Sort(bound)
	out := parts{}
	p, ok := o.(*nativePolicy)
	if len(bound) == 0 {
		return nil
	}
	if !ok {
		for _, rule := range rulesOf(o) {
			out[rule] = hashOf(asJSON(specOf(o)) + asJSON(bound))
		}
		return out
	}
	source, ok, err := vap.TranslationOf(p.Annotations)
	if !ok || err != nil || len(source.Validations) != len(p.Spec.Validations) {
		return nil
	}
	common := p.Spec.DeepCopy()
	common.Validations, common.Variables, common.AuditAnnotations = nil, nil, nil
	if len(p.Spec.Validations) > 1 { // each says all; a single one may leave it to the guard
		common.MatchConditions = slices.DeleteFunc(common.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
			return c.Name == source.Guard
		})
	}
	shared := asJSON(common) + asJSON(bound)
	// Variables are called by what they say: their names depend on what else is in an object.
	// Each uses only those before it.
	names := map[string]string{}
	named := func(expression string) string {
		return variableCall.ReplaceAllStringFunc(expression, func(call string) string { return cmp.Or(names[call], call) })
	}
	for _, v := range p.Spec.Variables {
		names["variables."+v.Name] = "variables." + hashOf(named(v.Expression))
	}
	for _, m := range source.Members {
		out[m.Policy+"/"+m.Rule] = shared
	}
	for i, v := range p.Spec.Validations {
		v.Expression, v.MessageExpression = named(v.Expression), "" // which may list other rules, and decides nothing
		for _, member := range source.Validations[i].Members() {
			m := source.Members[member]
			out[m.Policy+"/"+m.Rule] += asJSON(v)
		}
	}
	for key, text := range out {
		out[key] = hashOf(text)
	}
	return out
}

// variableCall is a variable where an expression uses it. A text that looks like it is
// replaced too, which leaves what differs different.
var variableCall = regexp.MustCompile(`\bvariables\.\w+`)

// parts are those of the objects that the controller made, by the names of the objects.
func (l clusterState) parts() map[string]parts {
	bindings := map[string][]client.Object{}
	for _, b := range l.bindings {
		if isOurs(b) {
			bindings[boundTo(b)] = append(bindings[boundTo(b)], b)
		}
	}
	out := map[string]parts{}
	for name, p := range l.policies {
		if isOurs(p) && p.GetName() != canaryName {
			out[name] = partsOf(p, bindings[name])
		}
	}
	return out
}

// commonParts are the parts that are the same in both.
func commonParts(a, b map[string]parts) map[string]parts {
	out := map[string]parts{}
	for name, some := range a {
		same := maps.Clone(some)
		maps.DeleteFunc(same, func(rule, text string) bool { return b[name][rule] != text })
		if len(same) > 0 {
			out[name] = same
		}
	}
	return out
}

// judgedBy tells that a rule is in some parts as it is wanted in this object.
func (o *wantedPolicy) judgedBy(some map[string]parts, r *compile.Rule) bool {
	if o.parts == nil {
		o.parts = partsOf(o.policy, o.bindings)
	}
	found := false
	for _, f := range r.Forms {
		rule := r.PolicyName() + "/" + f.Name
		if text, ok := o.parts[rule]; ok {
			if some[keyOf(o.policy)][rule] != text {
				return false
			}
			found = true
		}
	}
	return found
}
