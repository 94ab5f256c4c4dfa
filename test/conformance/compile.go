package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// A compiler translates for one release.
type compiler struct {
	options translate.Options
	// interp asks the interpreter as well.
	interp bool
	// typeCheck runs the API server's type checker as well.
	typeCheck bool
}

// A compiled policy is ready to judge.
type compiled struct {
	policy *policy.Policy
	judges *judge.Judges
	// refused is what a check had against an object.
	refused []string
	// warned is what the API server's type checker would say.
	warned []string
}

// A ruleForm is a rule as Kyverno reports it, so with a form for each group of
// pod controllers that it is expanded for.
type ruleForm struct {
	name   string
	native bool
	codes  []string // why not
}

func (c *compiled) anyNative() bool {
	return slices.ContainsFunc(c.judges.Rules, isNative)
}

func isNative(f *compile.Form) bool { return f.Rule.Target == translate.Native }

// compile translates the one policy of a source and makes it judge.
func (c *compiler) compile(m material) (*compiled, error) {
	parsed, found := policy.Parse(m.file, m.source)
	if found.HasErrors() || len(parsed.Policies) != 1 {
		return nil, fmt.Errorf("%s: %d policies, %v", m.file, len(parsed.Policies), found)
	}
	in := compile.Input{Policies: parsed.Policies, Exceptions: parsed.Exceptions}
	judges, err := judge.Compile(in, compile.Options{Translate: c.options}, judge.ClusterState{Objects: m.objects, AllNamespaces: true})
	if err != nil {
		return nil, err
	}
	out := &compiled{policy: parsed.Policies[0], judges: judges}
	for _, d := range judges.Compiled.Diagnostics {
		if d.Code == diag.InvalidObject || d.Code == diag.CompilerFault {
			out.refused = append(out.refused, d.Message)
		}
	}
	if c.typeCheck {
		out.typeCheck(c.options)
	}
	return out, nil
}

func (c *compiled) typeCheck(o translate.Options) {
	for _, object := range c.judges.Compiled.Objects {
		for _, w := range apiserver.TypeCheck(object.Policy, o.Schemas.Resolver(), o.Schemas.RESTMapper()) {
			c.warned = append(c.warned, fmt.Sprintf("%s: %s", object.Policy.Name, w))
		}
	}
}

// ruleForms are the rules as written and their expansions.
func (c *compiled) ruleForms() []ruleForm {
	var out []ruleForm
	for _, f := range c.judges.Rules {
		form := ruleForm{name: f.Name, native: isNative(f)}
		for _, code := range f.Rule.Codes {
			form.codes = append(form.codes, code.String())
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
