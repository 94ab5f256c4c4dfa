package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A compiler translates for one release.
type compiler struct {
	release cel.Release
	options translate.Options
	engine  engine // nil for none
	// typeCheck runs the API server's type checker as well.
	typeCheck bool
}

// A compiled policy is ready to judge.
type compiled struct {
	policy *policy.Policy
	rules  []ruleForm
	judge  *vap.Judge
	// opinion is the second engine's; nil for none.
	opinion opinion
	// members are those of each emitted policy, by its name.
	members map[string]vap.Translation
	// refused is what the API server would refuse an object for.
	refused []string
	// warned is what the API server's type checker would say.
	warned []string
}

// A ruleForm is a rule as Kyverno reports it, so with a form for each group of
// pod controllers that it is expanded for.
type ruleForm struct {
	name   string
	source *policy.Rule
	native bool
	codes  []string // why not
}

func (c *compiled) anyNative() bool {
	return slices.ContainsFunc(c.rules, func(r ruleForm) bool { return r.native })
}

// compile translates the one policy of a source and makes it judge. Namespaces
// are not excluded: that belongs to a cluster, not to a rule.
func (c *compiler) compile(m material) (*compiled, error) {
	file := m.file
	parsed, found := policy.Parse(file, m.source)
	if found.HasErrors() || len(parsed.Policies) != 1 {
		return nil, fmt.Errorf("%s: %d policies, %v", file, len(parsed.Policies), found)
	}
	p := parsed.Policies[0]
	options := c.options
	options.Exceptions = parsed.Exceptions
	result := translate.Policies(parsed.Policies, options)
	objects, found := vap.EmitAll(result.Drafts, vap.EmitOptions{ExcludeNamespaces: []string{}})
	if found.HasErrors() {
		return nil, fmt.Errorf("%s: %v", file, found)
	}
	out := &compiled{policy: p, rules: ruleForms(p, result), members: map[string]vap.Translation{}}
	var policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, o := range objects {
		out.check(o, c.release)
		if c.typeCheck {
			out.typeCheck(o, c.options.Schemas)
		}
		translation, ok, err := vap.TranslationOf(o.Policy.Annotations)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s: object %s does not say what it was made from: %w", file, o.Policy.Name, err)
		}
		out.members[o.Policy.Name] = translation
		policies = append(policies, o.Policy)
		bindings = append(bindings, o.Bindings...)
	}
	var err error
	if out.judge, err = vap.NewJudge(policies, bindings, vap.JudgeOptions{Params: m.params}); err != nil {
		return nil, err
	}
	if c.engine != nil {
		out.opinion = c.engine(p, parsed.Exceptions, m.params)
	}
	return out, nil
}

func (c *compiled) check(o vap.Objects, release cel.Release) {
	add := func(object string, errs field.ErrorList) {
		for _, e := range errs { // without the value, which may be an expression of many lines
			c.refused = append(c.refused, fmt.Sprintf("%s: %s: %s", object, e.Field, strings.Join(strings.Fields(e.Detail), " ")))
		}
	}
	add(o.Policy.Name, vap.Validate(o.Policy, release))
	for _, b := range o.Bindings {
		add("binding "+b.Name, vap.ValidateBinding(b))
	}
}

func (c *compiled) typeCheck(o vap.Objects, schemas *schema.Set) {
	for _, w := range vap.TypeCheck(o.Policy, schemas.Resolver(), schemas.RESTMapper()) {
		c.warned = append(c.warned, fmt.Sprintf("%s: %s", o.Policy.Name, w))
	}
}

// ruleForms are the rules as written and their expansions, which go where the
// rule as written goes.
func ruleForms(p *policy.Policy, result translate.Result) []ruleForm {
	var out []ruleForm
	for _, rule := range policy.Expand(p) {
		form := ruleForm{name: rule.Name, source: rule}
		for _, r := range result.Rules {
			if r.Rule == nil || r.Rule.Name != rule.Origin {
				continue
			}
			form.native = r.Target == translate.Native
			for _, code := range r.Codes {
				form.codes = append(form.codes, code.String())
			}
		}
		out = append(out, form)
	}
	return out
}

// enforcing is the source with Enforce as the action of every rule.
func enforcing(source []byte) ([]byte, error) {
	var p map[string]any
	if err := yaml.Unmarshal(source, &p); err != nil {
		return nil, err
	}
	spec, _ := p["spec"].(map[string]any)
	if spec == nil {
		return source, nil
	}
	spec["validationFailureAction"] = "Enforce"
	delete(spec, "validationFailureActionOverrides")
	rules, _ := spec["rules"].([]any)
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		validate, _ := rule["validate"].(map[string]any)
		delete(validate, "failureAction")
		delete(validate, "failureActionOverrides")
	}
	return json.Marshal(p)
}
