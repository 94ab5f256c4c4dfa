package celrule

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/read"
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

// A ValidatingWalk fills the draft of a form, and beside it written, which is what
// the author says; why is set by the first part that has no native form.
type ValidatingWalk struct {
	Form     ValidatingForm
	Policy   *policy.Validating
	Opts     *api.Options
	Draft    *vap.Draft
	Written  vap.Draft  // for the API server's compiler
	Guard    []cel.Bool // conditions that only a validation can ask
	excepted validatingExceptions
	Notes    *diag.List
	Why      *diag.Diagnostic
	// Validates tells that objects are validated by then, and those that are stored have a name.
	Validates bool
}

// Read is an expression of the source in the form at hand.
func (w *ValidatingWalk) Read(text string, at diag.Pos) cel.Value {
	v, why := readCELWith(text, at, w.Opts.Release, func(v cel.Value) cel.Value {
		in := w.excepted.in(v)
		out := w.known(in)
		if !cel.Equal(in, out) {
			noteRewritten(w.Rewrites(), at, "what a function of Kyverno's asks, the API server knows under another name")
		}
		return out
	})
	if why != nil {
		w.Refuse(why)
		return cel.Null()
	}
	return w.withEmpty(inTemplate(v, w.Form.Template), at)
}

// withEmpty is an expression that takes an object which a request does not have for an
// empty one, as Kyverno does; natively it is null.
func (w *ValidatingWalk) withEmpty(v cel.Value, at diag.Pos) cel.Value {
	out := v
	if w.on("CREATE", "CONNECT") {
		out = out.OrEmpty("oldObject")
	}
	if w.on("DELETE") {
		out = out.OrEmpty("object")
	}
	if !cel.Equal(v, out) {
		noteRewritten(w.Rewrites(), at, "an object that the request does not have is empty in Kyverno, and null natively")
	}
	return out
}

// CheckNamespaces refuses what reads the namespace of a Namespace, in some expressions or in
// those of the draft. In Kyverno it is the one that is stored, and natively there is none.
func (w *ValidatingWalk) CheckNamespaces(at diag.Pos, exprs ...cel.Value) {
	if !slices.ContainsFunc(w.Form.Constraints.Rules, vap.ResourceRule.MatchesNamespaces) || !w.on("UPDATE", "DELETE") {
		return
	}
	for _, v := range w.Draft.Variables {
		exprs = append(exprs, v.Expr)
	}
	for _, v := range w.Draft.Validations {
		exprs = append(exprs, v.Expr.Value)
		if v.MessageExpression != nil {
			exprs = append(exprs, *v.MessageExpression)
		}
	}
	if slices.ContainsFunc(exprs, func(v cel.Value) bool { return !v.IsZero() && native.Mentions(v, "namespaceObject") }) {
		d := diag.Warnf(at, diag.NoExpression, "the namespace of a Namespace, which in Kyverno is the one that is stored, has no native form; the webhook will run this policy")
		w.Refuse(&d)
	}
}

// on tells that the form is about one of some operations.
func (w *ValidatingWalk) on(operations ...string) bool {
	return slices.ContainsFunc(w.Form.Constraints.Rules, func(r vap.ResourceRule) bool {
		return slices.ContainsFunc(r.Operations, func(o string) bool { return o == "*" || slices.Contains(operations, o) })
	})
}

// Refuse leaves the policy to the webhook, for the first reason that is given.
func (w *ValidatingWalk) Refuse(why *diag.Diagnostic) {
	if w.Why == nil {
		w.Why = why
	}
}

// condition is an expression that must be a boolean, as it is to be evaluated.
func (w *ValidatingWalk) condition(v cel.Value, at diag.Pos) cel.Bool {
	out, why := portableCondition(v.AsBool(), at, w.Draft.Variables, w.Opts, w.Rewrites())
	w.Refuse(why)
	return out
}

// Rewrites is where it is told what comes out changed: once, for the policy as written.
func (w *ValidatingWalk) Rewrites() *diag.List {
	if w.Form.Expansion != "" {
		return nil
	}
	return w.Notes
}

// Note tells the user of a difference.
func (w *ValidatingWalk) Note(at diag.Pos, code diag.Code, format string, args ...any) {
	*w.Notes = append(*w.Notes, diag.Warnf(at, code, format, args...))
}

// Variables takes over the variables of the policy.
func (w *ValidatingWalk) Variables() {
	for _, v := range w.Policy.Variables {
		expr := w.Read(v.Expression, v.Pos)
		if why := Undeclared(expr, w.Written.Variables, v.Pos); why != nil {
			w.Refuse(why)
			continue
		}
		w.Written.Variables = append(w.Written.Variables, vap.Variable{Pos: v.Pos, Name: v.Name, Expr: expr})
		native, why := Portable(expr, v.Pos, w.Draft.Variables, w.Opts, w.Rewrites())
		w.Refuse(why)
		w.Draft.Variables = append(w.Draft.Variables, vap.Variable{Pos: v.Pos, Name: v.Name, Expr: native})
	}
}

// Conditions are match conditions, but for those that read the namespace, which
// match conditions never see: these become a guard of the validations.
func (w *ValidatingWalk) Conditions() {
	for _, c := range w.Policy.MatchConditions {
		written := w.Read(c.Expression, c.Pos)
		w.Written.Conditions = append(w.Written.Conditions, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: vap.Inlined(written, w.Written.Variables).AsBool()})
		holds := w.condition(written, c.Pos)
		whole := vap.Inlined(holds.Value, w.Draft.Variables).Picked()
		if native.Mentions(whole, "namespaceObject") {
			w.Guard = append(w.Guard, holds)
			noteRewritten(w.Rewrites(), c.Pos, "match conditions do not see the namespace, so this one guards each validation")
			continue
		}
		if !cel.Equal(whole, holds.Value) {
			noteRewritten(w.Rewrites(), c.Pos, "match conditions have no variables")
		}
		w.Draft.Conditions = append(w.Draft.Conditions, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: whole.AsBool()})
	}
	if len(w.Guard) > 0 { // one that is false makes up for one that is an error
		w.Draft.Conditions = slices.DeleteFunc(w.Draft.Conditions, func(c vap.Condition) bool {
			total := c.Expr.IsTotal(w.everyObject())
			if !total {
				w.Guard = append(w.Guard, c.Expr)
			}
			return !total
		})
	}
	w.Draft.Conditions = w.excepted.before(w.Draft.Conditions)
}

// everyObject is what is known of each object: it has metadata with a name.
func (w *ValidatingWalk) everyObject() cel.Surroundings {
	if w.on("CONNECT") {
		return cel.Surroundings{}
	}
	meta := w.Opts.Schemas.ObjectMeta()
	if w.Validates && !w.isAboutReviews() {
		meta = read.Named(meta)
	}
	shape := native.ShapeOf(&schema.Type{Kind: schema.Object, Open: true, Fields: map[string]*schema.Field{"metadata": {Name: "metadata", Type: meta, Required: true}}})
	return cel.Surroundings{Roots: []cel.Root{{Name: "object", Shape: shape, Null: w.on("DELETE")}}}
}

// isAboutReviews tells that what is stored nowhere may be among what the form is about.
func (w *ValidatingWalk) isAboutReviews() bool {
	return slices.ContainsFunc(w.Form.Constraints.Rules, func(r vap.ResourceRule) bool {
		return slices.ContainsFunc(r.Groups, func(g string) bool { return g == "*" || g == "authentication.k8s.io" || g == "authorization.k8s.io" })
	})
}

func (w *ValidatingWalk) validations() {
	for _, e := range w.Policy.Validations {
		written := w.Read(e.Expression, e.Pos)
		holds := partial.MayErr(w.condition(written, e.Pos))
		v := vap.Validation{Pos: e.Pos, Expr: written.AsBool(), Message: e.Message, Reason: e.Reason}
		if !takesReason(e.Reason) {
			w.Note(e.Pos, diag.LeftOut, "the API server does not take the reason %s; the reason of the denial is Invalid", e.Reason)
			v.Reason = ""
		}
		if v.Message == "" {
			v.Message = failedExpression(e.Expression)
		}
		if e.MessageExpression != "" {
			v.MessageExpression = w.message(e)
		}
		w.Written.Validations = append(w.Written.Validations, v)
		v.Expr = holds.Expr
		if len(w.Guard) > 0 {
			v.Expr = partial.MayErr(cel.And(w.Guard...)).Implies(holds).Expr
		}
		w.Draft.Validations = append(w.Draft.Validations, v)
	}
}

// message is a message expression, or nil where it has no native form.
func (w *ValidatingWalk) message(e policy.CELValidation) *cel.Value {
	v, why := readCELWith(e.MessageExpression, e.Pos, w.Opts.Release, func(v cel.Value) cel.Value { return w.known(w.excepted.in(v)) })
	if why == nil {
		v, why = Portable(w.withEmpty(inTemplate(v, w.Form.Template), e.Pos), e.Pos, w.Draft.Variables, w.Opts, w.Rewrites())
	}
	if why != nil {
		w.Note(e.Pos, diag.MessageVariable, "the messageExpression has no native form; the message is shown instead")
		return nil
	}
	return &v
}

// audits are written by Kyverno for violations only, and by the API server always;
// an error of one would refuse a request that Kyverno admits.
func (w *ValidatingWalk) audits() {
	for _, a := range w.Policy.AuditAnnotations {
		v, why := ReadCEL(a.Expression, a.Pos, w.Opts.Release)
		if why == nil && Harmless(v) && len(w.Guard) == 0 {
			w.Draft.Audits = append(w.Draft.Audits, vap.Audit{Pos: a.Pos, Key: a.Name, Value: v})
			continue
		}
		w.Note(a.Pos, diag.LeftOut, "the audit annotation %s may be an error, on which the API server would refuse the request; it is left out", a.Name)
	}
}

// compiled asks the API server's compiler about what is written and about the draft.
// A message expression that it refuses goes.
func (w *ValidatingWalk) compiled() *diag.Diagnostic {
	d := w.Draft
	w.Written.Base, w.Written.Members, w.Written.Constraints = d.Base, d.Members, d.Constraints
	w.Written.Audits = d.Audits
	why, messages := refusedDrafts(&w.Written, d, w.Opts.Checker)
	for _, i := range messages {
		v := &d.Validations[i]
		v.MessageExpression = nil
		w.Note(v.Pos, diag.MessageVariable, "the messageExpression has no native form; the message is shown instead")
	}
	return why
}
