package court

import (
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// Options are what the judges know besides the policies.
type Options struct {
	Translate translate.Options // its Exceptions are set by New
	// Objects are ConfigMaps, Namespaces and others that rules look up.
	Objects []map[string]any
	// World is what the interpreter asks; nil is one that has the Objects.
	World interp.World
}

// A Rule is a rule as Kyverno reports it, so with one for each group of pod
// controllers that it is expanded for. A ValidatingPolicy is a rule of its own name.
type Rule struct {
	Policy *policy.Policy
	Name   string
	Source *policy.Rule // nil for a ValidatingPolicy
	// Origin is the rule as written. Its target is that of its expansions.
	Origin *policy.Rule
	Target translate.Target
	Codes  []diag.Code // why it is not native, or what the user must know
}

// PolicyName is how users call the policy: with the namespace of a namespaced one.
func (r *Rule) PolicyName() string { return fullName(r.Policy) }

func fullName(p *policy.Policy) string {
	if p.Namespaced() {
		return p.Namespace + "/" + p.Name
	}
	return p.Name
}

// A Court holds both judges of some policies. It is safe for concurrent use.
type Court struct {
	// Rules are in the order of the policies and their expansions.
	Rules []*Rule
	// Objects are what the policies were translated to.
	Objects []vap.Objects

	native  *vap.Judge
	members map[string][]int // by emitted policy: the rule of each member
	texts   map[string]vap.Translation
	benches []bench
}

// A bench is the interpreter of one policy, and where its rules begin in Rules.
type bench struct {
	policy *policy.Policy
	interp *interp.Interpreter
	rules  map[string][]int // by name: several where long names are cut to the same
}

// New compiles policies for both judges. The diagnostics are those of the
// translation; a rule that has no native form is judged by the interpreter only.
func New(policies []*policy.Policy, exceptions []*policy.Exception, o Options) (*Court, diag.List, error) {
	o.Translate.Exceptions = exceptions
	result := translate.Policies(policies, o.Translate)
	objects, found := vap.EmitAll(result.Drafts, vap.EmitOptions{ExcludeNamespaces: []string{}})
	c := &Court{Objects: objects, members: map[string][]int{}, texts: map[string]vap.Translation{}}
	world := o.World
	if world == nil {
		world = &interp.Offline{Objects: withNamespaceNames(o.Objects)}
	}
	for _, p := range policies {
		c.seat(p, exceptions, world, result)
	}
	c.demote(result)
	if err := c.compile(o); err != nil {
		return nil, nil, err
	}
	return c, slices.Concat(result.Diagnostics, found), nil
}

// seat lists the rules of a policy and makes its interpreter.
func (c *Court) seat(p *policy.Policy, exceptions []*policy.Exception, world interp.World, result translate.Result) {
	b := bench{policy: p, rules: map[string][]int{}}
	b.interp = interp.New([]*policy.Policy{p}, exceptions, world, interp.Limits{})
	for _, r := range forms(p, result) {
		b.rules[r.Name] = append(b.rules[r.Name], len(c.Rules))
		c.Rules = append(c.Rules, r)
	}
	c.benches = append(c.benches, b)
}

// forms are the rules of a policy and their expansions, which go where the rule as
// written goes.
func forms(p *policy.Policy, result translate.Result) []*Rule {
	var out []*Rule
	if p.Validating != nil {
		return validatingForms(p, result)
	}
	for _, source := range policy.Expand(p) {
		r := &Rule{Policy: p, Name: source.Name, Source: source, Origin: source, Target: translate.Unsupported}
		for _, t := range result.Rules {
			if t.Policy == p && t.Rule != nil && t.Rule.Index == source.Index {
				r.Origin, r.Target, r.Codes = t.Rule, t.Target, t.Codes
			}
		}
		out = append(out, r)
	}
	return out
}

// validatingForms are those of a ValidatingPolicy: it and what was made of it for
// the controllers of pods.
func validatingForms(p *policy.Policy, result translate.Result) []*Rule {
	var out []*Rule
	for _, t := range result.Rules {
		if t.Policy != p {
			continue
		}
		for _, d := range t.Drafts {
			for _, m := range d.Members {
				out = append(out, &Rule{Policy: p, Name: m.Rule, Target: t.Target, Codes: t.Codes})
			}
		}
		if len(out) == 0 {
			out = append(out, &Rule{Policy: p, Name: p.Name, Target: t.Target, Codes: t.Codes})
		}
	}
	return out
}

// demote leaves rules to the interpreter of which an object could not be emitted.
func (c *Court) demote(result translate.Result) {
	emitted := map[*vap.Draft]bool{}
	for _, o := range c.Objects {
		emitted[o.Draft] = true
	}
	for _, t := range result.Rules {
		if !slices.ContainsFunc(t.Drafts, func(d *vap.Draft) bool { return !emitted[d] }) {
			continue
		}
		for _, r := range c.Rules {
			if r.Policy == t.Policy && r.Origin == t.Rule && r.Target == translate.Native {
				r.Target = translate.Webhook
			}
		}
	}
}

func (c *Court) compile(o Options) error {
	var policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, object := range c.Objects {
		translation, ok, err := vap.TranslationOf(object.Policy.Annotations)
		if !ok || err != nil {
			return fmt.Errorf("object %s does not say what it was made from: %w", object.Policy.Name, err)
		}
		c.texts[object.Policy.Name] = translation
		c.members[object.Policy.Name] = c.rulesOf(object.Draft)
		policies = append(policies, object.Policy)
		bindings = append(bindings, object.Bindings...)
	}
	params := make([]*unstructured.Unstructured, 0, len(o.Objects))
	for _, object := range o.Objects {
		params = append(params, &unstructured.Unstructured{Object: object})
	}
	judge, err := vap.NewJudge(policies, bindings, vap.JudgeOptions{
		Params: params, Namespaces: namespaceLabels(o.Objects), Equivalent: nil,
	})
	c.native = judge
	return err
}

// rulesOf are the places in Rules of a draft's members; -1 for one that is not
// there.
func (c *Court) rulesOf(d *vap.Draft) []int {
	out := make([]int, len(d.Members))
	for i, m := range d.Members {
		out[i] = slices.IndexFunc(c.Rules, func(r *Rule) bool { return r.Name == m.Rule && r.pos() == m.Pos })
	}
	return out
}

func (r *Rule) pos() diag.Pos {
	if r.Source == nil {
		return r.Policy.Pos
	}
	return r.Source.Pos
}

// namespaceLabels are the labels of the Namespaces among objects.
func namespaceLabels(objects []map[string]any) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, o := range objects {
		if o["kind"] == "Namespace" && o["apiVersion"] == "v1" {
			u := unstructured.Unstructured{Object: o}
			out[u.GetName()] = u.GetLabels()
		}
	}
	return out
}

// withNamespaceNames gives Namespaces the label that the API server gives them.
func withNamespaceNames(objects []map[string]any) []map[string]any {
	out := slices.Clone(objects)
	for i, o := range out {
		if o["kind"] != "Namespace" || o["apiVersion"] != "v1" {
			continue
		}
		u := (&unstructured.Unstructured{Object: o}).DeepCopy()
		labels := maps.Clone(u.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/metadata.name"] = u.GetName()
		u.SetLabels(labels)
		out[i] = u.Object
	}
	return out
}
