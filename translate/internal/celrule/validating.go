package celrule

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/vap"
)

// A ValidatingPolicy is a native policy but for what Kyverno adds: functions and
// variables of its own, which have no native form; match conditions that see the
// namespace; and forms for the controllers of pods. Errors count as they do
// natively.

// Lower lowers a ValidatingPolicy, which is one rule with the name of the
// policy.
func Lower(p *policy.Policy, o *api.Options) api.RuleResult {
	res := api.RuleResult{Policy: p, Target: api.Native, Forms: []api.Form{{Name: p.Name}}}
	if p.Invalid { // its error has been told where it was read
		res.Target = api.Unsupported
		return res
	}
	drafts, notes, why := validatingDrafts(p, o)
	if why != nil {
		res.Refuse(*why)
		return res
	}
	res.Found, res.Drafts = notes.Sort(), drafts
	res.Codes = api.CodesOf(res.Found)
	for i, d := range drafts {
		if i == 0 {
			res.Forms = nil
		}
		res.Forms = append(res.Forms, api.Form{Name: d.Members[0].Rule, Places: []api.Place{{Draft: d, Member: 0}}})
	}
	return res
}

// validatingDrafts are the drafts of a ValidatingPolicy; all or none.
func validatingDrafts(p *policy.Policy, o *api.Options) (drafts []*vap.Draft, notes diag.List, why *diag.Diagnostic) {
	v := p.Validating
	refuse := func(code diag.Code, message string) *diag.Diagnostic {
		d := diag.Warnf(p.Pos, code, "%s", message)
		return &d
	}
	switch {
	case v.Mode == "JSON":
		return nil, nil, refuse(diag.OtherPayload, "the policy is for JSON documents (evaluation.mode: JSON); nothing judges it at admission")
	case v.AdmissionOff:
		return nil, nil, refuse(diag.BackgroundOnly, "the policy is for background scans only (evaluation.admission.enabled: false); nothing judges it at admission")
	}
	matched := match.ConstraintsOf(v.MatchConstraints)
	if len(matched.Rules) == 0 {
		return nil, nil, refuse(diag.NoKinds, "matchConstraints without resourceRules match nothing; add the resources that the policy is for")
	}
	match.NoteConstraints(p, matched.Rules, &notes)
	match.NoteOwnConstraints(p, matched.Rules, &notes)
	for _, form := range FormsOf(v.Autogen, matched) {
		if p.Namespaced() {
			form.Constraints.Rules = WithinNamespaces(form.Constraints.Rules)
		}
		if len(form.Constraints.Rules) == 0 {
			continue
		}
		d, why := form.draft(p, o, &notes)
		if why != nil {
			return nil, nil, why
		}
		drafts = append(drafts, d)
	}
	return drafts, notes, nil
}

// A ValidatingForm is a ValidatingPolicy for pods as it is written, or for their
// controllers.
type ValidatingForm struct {
	Expansion   string   // as in policy.Rule
	Template    []string // where the pod stands in the controller
	Constraints vap.Constraints
}

// FormsOf are the policy as it is written and its forms for the controllers of
// pods. Like Kyverno, it makes these only of a policy whose one rule is about pods,
// with no wildcard, no name, no label and nothing left out; they have its operations
// and its selector of namespaces.
func FormsOf(controllers []string, matched vap.Constraints) []ValidatingForm {
	forms := []ValidatingForm{{Constraints: matched}}
	if len(matched.Rules) != 1 || len(matched.Exclude) > 0 || !matched.ObjectSelector.IsEmpty() || !isForPods(matched.Rules[0]) {
		return forms
	}
	operations := matched.Rules[0].Operations
	var others, cronJobs []vap.ResourceRule
	for _, c := range podControllers() {
		if controllers != nil && !slices.Contains(controllers, c.resource) {
			continue
		}
		rule := vap.ResourceRule{Groups: []string{c.group}, Versions: []string{"v1"}, Resources: []string{c.resource}, Operations: operations, Scope: "*"}
		switch {
		case c.resource == "cronjobs":
			cronJobs = append(cronJobs, rule)
		case len(others) > 0 && others[len(others)-1].Groups[0] == c.group:
			last := &others[len(others)-1]
			last.Resources = append(last.Resources, c.resource)
		default:
			others = append(others, rule)
		}
	}
	if others != nil {
		forms = append(forms, ValidatingForm{"autogen", []string{"spec", "template"}, vap.Constraints{Rules: others, NamespaceSelector: matched.NamespaceSelector}})
	}
	if cronJobs != nil {
		forms = append(forms, ValidatingForm{"autogen-cronjob", []string{"spec", "jobTemplate", "spec", "template"}, vap.Constraints{Rules: cronJobs, NamespaceSelector: matched.NamespaceSelector}})
	}
	return forms
}

func isForPods(r vap.ResourceRule) bool {
	return len(r.Names) == 0 && slices.Equal(r.Groups, []string{""}) && slices.Equal(r.Versions, []string{"v1"}) && slices.Equal(r.Resources, []string{"pods"})
}

type podController struct{ group, resource string }

func podControllers() []podController {
	return []podController{
		{"apps", "daemonsets"}, {"apps", "deployments"}, {"apps", "replicasets"}, {"apps", "statefulsets"}, {"batch", "jobs"}, {"batch", "cronjobs"},
	}
}

// WithinNamespaces are the rules for objects in namespaces. A selector of
// namespaces would not leave out the others.
func WithinNamespaces(rules []vap.ResourceRule) []vap.ResourceRule {
	var out []vap.ResourceRule
	for _, r := range rules {
		if r.Scope != "Cluster" {
			r.Scope = "Namespaced"
			out = append(out, r)
		}
	}
	return out
}

// draft is the native policy of a form.
func (f ValidatingForm) draft(p *policy.Policy, o *api.Options, notes *diag.List) (*vap.Draft, *diag.Diagnostic) {
	w := &ValidatingWalk{Validates: true, Form: f, Policy: p.Validating, Opts: o, Notes: notes, Draft: &vap.Draft{
		Authored: true,
		Base:     f.Named(ValidatingName(p), "-"), FailurePolicy: string(p.FailurePolicy), Constraints: f.Constraints, Bindings: validatingBindings(p),
		Members: []vap.Member{{Pos: p.Pos, Policy: native.MemberName(p), Rule: f.Prefixed(p.Name), Origin: p.Name}},
	}}
	pack.Describe(w.Draft, p)
	w.Exceptions(p)
	w.Conditions() // which know no variables
	w.Variables()
	w.validations()
	w.audits()
	w.CheckNamespaces(p.Pos)
	if w.Why == nil {
		w.Why = w.compiled()
	}
	return w.Draft, w.Why
}

// Named is a name with the form behind it.
func (f ValidatingForm) Named(name, sep string) string {
	if f.Expansion == "" {
		return name
	}
	return name + sep + f.Expansion
}

// Prefixed is a name as Kyverno prefixes those of forms.
func (f ValidatingForm) Prefixed(name string) string {
	if f.Expansion == "" {
		return name
	}
	return f.Expansion + "-" + name
}

// ValidatingName is the name that the objects of a policy in CEL get.
func ValidatingName(p *policy.Policy) string {
	if p.Namespaced() {
		return p.Namespace + "." + p.Name
	}
	return p.Name
}

// validatingBindings is the one binding. The API server does not take Deny
// together with Warn: of a request that is denied there is no warning.
func validatingBindings(p *policy.Policy) []vap.Binding {
	var out vap.Binding
	for _, a := range []string{"Deny", "Warn", "Audit"} {
		if slices.Contains(p.Validating.Actions, a) && !(a == "Warn" && slices.Contains(p.Validating.Actions, "Deny")) {
			out.Actions = append(out.Actions, a)
		}
	}
	if p.Namespaced() {
		out.NamespaceSelector.Labels = []vap.Label{{Key: pack.NameLabel, Value: p.Namespace}}
	}
	return []vap.Binding{out}
}

// inTemplate is an expression about a pod as one about the template of pods in a
// controller:
//
//	object.spec.hostPID           object.spec.template.spec.hostPID
//	object.metadata.namespace     object.metadata.namespace
//
// Kyverno looks for the text object.spec, so only plain selections and has() go along.
func inTemplate(v cel.Value, template []string) cel.Value {
	if template == nil {
		return v
	}
	type pair struct{ from, to cel.Value }
	var pairs []pair
	for _, root := range []string{"object", "oldObject"} {
		outside := cel.Ident(root)
		inside := outside
		for _, name := range template {
			inside = inside.Field(name)
		}
		for _, part := range []string{"spec", "metadata"} {
			in, out := inside.Field(part), outside.Field(part)
			pairs = append(pairs, pair{out, in}, pair{outside.Has(part).Value, inside.Has(part).Value},
				pair{in.Field("namespace"), out.Field("namespace")}, pair{in.Has("namespace").Value, out.Has("namespace").Value}) // parts go first
		}
	}
	return v.Rewrite(func(x cel.Value) cel.Value {
		for _, p := range pairs {
			if cel.Equal(x, p.from) {
				return p.to
			}
		}
		return x
	})
}

// failedExpression is what the API server says where a validation has no message.
func failedExpression(expression string) string {
	return "failed expression: " + strings.TrimSpace(expression)
}
