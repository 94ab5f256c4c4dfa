package mutate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/vap"
)

// A MutatingPolicy is a MutatingAdmissionPolicy but for what Kyverno adds, as a
// ValidatingPolicy is one that validates. Besides, Kyverno works a variable out once, and
// the API server anew for each mutation; an error takes all of the policy's changes back
// there, and only its own mutation's natively.

// mutatingDrafts are the drafts of a MutatingPolicy; all or none.
func mutatingDrafts(p *policy.Policy, o *api.Options) (drafts []*mutating.Draft, notes diag.List, why *diag.Diagnostic) {
	if why := noMutations(p, p.Pos, o); why != nil {
		return nil, nil, why
	}
	matched := match.ConstraintsOf(p.Mutating.MatchConstraints)
	matched.Rules = changing(matched.Rules)
	if slices.ContainsFunc(matched.Rules, func(r vap.ResourceRule) bool {
		return slices.Contains(r.Groups, "*") && slices.ContainsFunc(r.Resources, func(name string) bool { return slices.Contains(match.WrittenBy("*", name), match.EveryKind) })
	}) {
		notes = append(notes, changesEverything(p.Pos))
	}
	for _, form := range celrule.FormsOf(p.Mutating.Autogen, matched) {
		if p.Namespaced() {
			form.Constraints.Rules = withinNamespaces(form.Constraints.Rules)
			if slices.ContainsFunc(form.Constraints.Rules, func(r vap.ResourceRule) bool {
				return r.Scope == "Namespaced" && r.MatchesNamespaces()
			}) {
				d := diag.Warnf(p.Pos, diag.NoExpression, "a %s that matches its own Namespace by a wildcard, which no rule of a namespace reaches natively; the webhook will run this policy", p.Kind)
				return nil, nil, &d
			}
		}
		if len(form.Constraints.Rules) == 0 {
			continue
		}
		w := newMutatingWalk(p, form, o, &notes)
		if w.lower(); w.Why != nil {
			return nil, nil, w.Why
		}
		if w.idle {
			continue
		}
		if w.out.Repeatable = isRepeatableDraft(w.out); !w.out.Repeatable && o.Repeatable {
			d := runsOnce(p.Pos)
			return nil, nil, &d
		}
		if o.Repeatable && o.HasLate(w.out.Constraints.Rules) {
			d := lateKind(p.Pos)
			return nil, nil, &d
		}
		drafts = append(drafts, w.out)
	}
	return drafts, notes, nil
}

// withinNamespaces are rules for what is in namespaces, and for Namespaces: a selector of the
// namespace asks these for their own labels.
func withinNamespaces(rules []vap.ResourceRule) (out []vap.ResourceRule) {
	for _, r := range rules {
		if slices.Contains(r.Groups, "") && slices.Contains(r.Resources, "namespaces") {
			own, others := r, r
			own.Groups, own.Resources = []string{""}, []string{"namespaces"}
			others.Groups, others.Resources = slices.DeleteFunc(slices.Clone(r.Groups), func(g string) bool { return g == "" }), own.Resources
			if r.Scope != "Namespaced" {
				out = append(out, own)
			}
			if len(others.Groups) > 0 {
				out = append(out, celrule.WithinNamespaces([]vap.ResourceRule{others})...)
			}
			if r.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(name string) bool { return name == "namespaces" }); len(r.Resources) == 0 {
				continue
			}
		}
		out = append(out, celrule.WithinNamespaces([]vap.ResourceRule{r})...)
	}
	return out
}

// noMutations is why nothing of a policy that mutates is native on the release.
func noMutations(p *policy.Policy, at diag.Pos, o *api.Options) *diag.Diagnostic {
	if p.Rehearsed() {
		d := diag.Warnf(at, diag.OtherRule, "nothing is to follow from a policy in shadow, and a MutatingAdmissionPolicy always changes objects; the webhook runs the rule beside, without effect")
		return &d
	}
	if mutating.Version(o.Release) != "" {
		return nil
	}
	d := diag.Warnf(at, diag.NeedsNewer, "MutatingAdmissionPolicies need Kubernetes %s; the webhook will run this rule", mutating.Beta)
	return &d
}

// changing are rules without the operations on which nothing is changed: what is deleted
// stays as it is, and so is what a connection is to.
func changing(rules []vap.ResourceRule) []vap.ResourceRule {
	var out []vap.ResourceRule
	for _, r := range rules {
		operations := slices.DeleteFunc(slices.Clone(r.Operations), func(o string) bool { return o == "DELETE" })
		if slices.Contains(operations, "*") {
			operations = []string{"CREATE", "UPDATE"}
			if slices.ContainsFunc(r.Resources, func(name string) bool { return strings.ContainsAny(name, "/*") }) {
				operations = append(operations, "CONNECT")
			}
		}
		if r.Operations = operations; len(operations) > 0 {
			out = append(out, r)
		}
	}
	return out
}

// A mutatingWalk fills the draft of a form. What the policy has in common with one that
// validates is read as there.
type mutatingWalk struct {
	*celrule.ValidatingWalk
	of  *policy.Mutating
	pos diag.Pos
	out *mutating.Draft
	// idle tells of a form for controllers by which nothing is changed, whatever they are.
	// Kyverno takes a JSON patch and variables over as they are: about the fields of a Pod.
	idle bool
}

func newMutatingWalk(p *policy.Policy, form celrule.ValidatingForm, o *api.Options, notes *diag.List) *mutatingWalk {
	of := inPodTemplates(p.Mutating, form.Template)
	out := &mutating.Draft{Draft: vap.Draft{
		Authored: true,
		Base:     form.Named(celrule.ValidatingName(p), "-"), FailurePolicy: string(p.FailurePolicy), Constraints: form.Constraints,
		Members: []vap.Member{{Pos: p.Pos, Policy: native.MemberName(p), Rule: form.Prefixed(p.Name), Origin: p.Name}},
	}}
	binding := vap.Binding{}
	if p.Namespaced() {
		binding.NamespaceSelector.Labels = []vap.Label{{Key: pack.NameLabel, Value: p.Namespace}}
	}
	out.Bindings = []vap.Binding{binding}
	pack.Describe(&out.Draft, p)
	form.Template = nil // of has been moved there
	w := &mutatingWalk{of: of, pos: p.Pos, out: out, ValidatingWalk: &celrule.ValidatingWalk{
		Form: form, Opts: o, Notes: notes, Draft: &out.Draft,
		Policy: &policy.Validating{MatchConditions: of.MatchConditions, Variables: of.Variables},
	}}
	w.Exceptions(p)
	return w
}

func (w *mutatingWalk) lower() {
	w.Variables()
	w.Conditions()
	if w.idle = w.Form.Expansion != "" && w.neverMatches(); w.idle {
		return
	}
	w.names()
	for i, m := range w.of.Mutations {
		w.mutation(i, m)
	}
	w.audits()
	if w.idle = w.Form.Expansion != "" && len(w.Draft.Conditions)+len(w.Guard) == 0 && w.changesNothing(); w.idle {
		return
	}
	w.CheckNamespaces(w.of.MatchConstraints.Pos, exprsOf(w.out.Mutations)...)
	w.checkVariables()
	w.checkFailures()
	w.checkBetween()
	if w.Why == nil {
		w.Why = refusedMutations(w.out, w.Opts)
	}
}

// audits are the audit annotations. They are written nowhere, but an error of one is an error
// of the policy:
//
//	auditAnnotations: [{key: n, valueExpression: string(object.data.n)}]
//	mutations: [..., {jsonPatch: {expression: "[string(object.data.n)].size() == 1 ? [] : ..."}}]
func (w *mutatingWalk) audits() {
	var texts []cel.Value
	for _, a := range w.of.AuditAnnotations {
		w.Note(a.Pos, diag.LeftOut, "a MutatingAdmissionPolicy writes no audit annotations; %s is left out", a.Name)
		v, why := celrule.Portable(w.Read(a.Expression, a.Pos), a.Pos, w.Draft.Variables, w.Opts, w.Rewrites())
		switch {
		case why != nil:
			w.Refuse(why)
		case celrule.Harmless(v):
		case !v.MakesText(): // null would be an error, too
			w.cannot(a.Pos, "an audit annotation, which may be an error,")
		default:
			texts = append(texts, v)
		}
	}
	if len(texts) > 0 {
		asked := cel.List(texts...).Size().Eq(cel.Int(int64(len(texts))))
		w.patch(w.of.AuditAnnotations[0].Pos, mutating.JSONPatch, cel.Cond(asked, cel.List(), noPatch()))
	}
}

// cannot refuses a construct.
func (w *mutatingWalk) cannot(at diag.Pos, what string) {
	d := diag.Warnf(at, diag.NoExpression, "%s has no native form; the webhook will run this policy", what)
	w.Refuse(&d)
}

// mutation is one mutation.
func (w *mutatingWalk) mutation(i int, m policy.Mutation) {
	v, why := celrule.Portable(w.Read(m.Expression, m.Pos), m.Pos, w.Draft.Variables, w.Opts, w.Rewrites())
	w.Refuse(why)
	kind := mutating.PatchType(m.PatchType)
	switch {
	case kind == mutating.JSONPatch:
		v = w.onPaths(i, m.Pos, v)
	case w.of.ReplacesAtomic:
		w.cannot(m.Pos, "an apply configuration that may replace lists and maps as a whole (evaluation.useServerSideApply)")
	case v.MixesObjects():
		w.cannot(m.Pos, "a list of elements that are made and of others that are the object's, which the API server cannot merge,")
	}
	if w.putsParts(v) {
		w.cannot(m.Pos, "a part of the object in what is written, which Kubernetes 1.37 cannot write out,")
	}
	if i+1 < len(w.of.Mutations) && v.MakesEmpty() {
		w.cannot(m.Pos, "an empty map, which the API server drops before the next mutation,")
	}
	w.patch(m.Pos, kind, v)
}

func exprsOf(mutations []mutating.Mutation) (out []cel.Value) {
	for _, m := range mutations {
		out = append(out, m.Expr)
	}
	return out
}

// patch adds a mutation, which asks what no match condition can ask.
func (w *mutatingWalk) patch(at diag.Pos, kind mutating.PatchType, v cel.Value) {
	if len(w.Guard) > 0 {
		guard := cel.And(w.Guard...)
		if len(w.out.Mutations) > 0 && native.Mentions(guard.Value, "object") {
			w.cannot(at, "a match condition on the namespace and on the object, in front of several mutations,")
		}
		v = cel.Cond(guard, v, nothing(kind))
	}
	w.out.Mutations = append(w.out.Mutations, mutating.Mutation{Pos: at, Type: kind, Expr: v})
}

// neverMatches tells that the first match condition is false of every object.
func (w *mutatingWalk) neverMatches() bool {
	if w.Why != nil || len(w.Draft.Conditions) == 0 {
		return false
	}
	first := w.Draft.Conditions[0].Expr.Value
	return w.ofEachKind(func(k matchedKind) bool { return ofKind(first, k).AsBool().IsFalse() })
}

// changesNothing tells that no mutation has a patch.
func (w *mutatingWalk) changesNothing() bool {
	return !slices.ContainsFunc(w.out.Mutations, func(m mutating.Mutation) bool { return !cel.Equal(m.Expr, noPatch()) })
}

// names asks for the names of a rule where objects are made: the API server has none yet for
// an object with a generateName, of which Kyverno takes a name for the beginning.
//
//	request.?name.orValue("") in ["a"] || request.?name.orValue("") == "" && object.metadata.?generateName.orValue("").startsWith("a")
func (w *mutatingWalk) names() {
	rules := slices.Clone(w.Draft.Constraints.Rules)
	w.Draft.Constraints.Rules = rules
	for i, r := range rules {
		if len(r.Names) == 0 || !slices.Contains(r.Operations, "CREATE") {
			continue
		}
		if len(rules) > 1 {
			w.cannot(w.of.MatchConstraints.Pos, "resourceNames of objects that are created, in one of several rules,")
			return
		}
		name := cel.Ident("request").Optional("name").OrValue(cel.String(""))
		prefix := cel.Ident("object").Field("metadata").Optional("generateName").OrValue(cel.String(""))
		var begun []cel.Bool
		for _, n := range r.Names {
			begun = append(begun, prefix.StartsWith(cel.String(n)))
		}
		w.Draft.Conditions = append(w.Draft.Conditions, vap.Condition{
			Pos: w.of.MatchConstraints.Pos, Name: "named",
			Expr: cel.Or(name.In(cel.Strings(r.Names...)), cel.And(name.Eq(cel.String("")), cel.Or(begun...))),
		})
		rules[i].Names = nil
	}
}

// checkVariables refuses a variable that reads the object and is read before and after it is
// changed: Kyverno keeps the value that it has first.
func (w *mutatingWalk) checkVariables() {
	first := map[string]int{} // by name, the mutation that reads it first
	values := byName(w.Draft.Variables)
	var reads func(v cel.Value) bool
	reads = func(v cel.Value) bool {
		return native.Mentions(v, "object") || slices.ContainsFunc(v.Uses("variables"), func(name string) bool { return reads(values[name]) })
	}
	var visit func(v cel.Value, at int, pos diag.Pos)
	visit = func(v cel.Value, at int, pos diag.Pos) {
		for _, name := range v.Uses("variables") {
			before, read := first[name]
			switch {
			case !read:
				first[name] = at
			case before != at && reads(values[name]):
				w.cannot(pos, "the variable "+name+", which is read before and after the object changes,")
			}
			if !read {
				visit(values[name], at, pos)
			}
		}
	}
	for _, c := range w.Written.Conditions {
		visit(c.Expr.Value, 0, c.Pos)
	}
	for _, c := range w.of.MatchConditions { // with variables
		if v, err := cel.Parse(c.Expression); err == nil {
			visit(v, 0, c.Pos)
		}
	}
	for i, m := range w.out.Mutations {
		visit(m.Expr, i, m.Pos)
	}
}

// checkFailures refuses several mutations of which one may be an error that is ignored:
// natively the others stay.
func (w *mutatingWalk) checkFailures() {
	if w.Draft.FailurePolicy == string(policy.Ignore) && len(w.out.Mutations) > 1 {
		w.cannot(w.pos, "several mutations whose errors are ignored (failurePolicy: Ignore)")
	}
}

// refusedMutations is why the API server would refuse a draft.
func refusedMutations(d *mutating.Draft, o *api.Options) *diag.Diagnostic {
	objects, found := mutating.Emit(d, o.Release, vap.EmitOptions{ExcludeNamespaces: []string{}})
	for _, f := range found {
		if f.Severity == diag.Error {
			w := diag.Warnf(f.Pos, f.Code, "%s; the webhook will run this rule", f.Message)
			return &w
		}
	}
	refusals := o.Checker.MutatingRefusals(objects.Policy)
	if len(refusals) == 0 {
		return nil
	}
	e := refusals[0]
	pos := d.Members[0].Pos
	var i int
	if celrule.Scan(e.Field, "spec.mutations[%d]", &i) {
		pos = d.Mutations[i].Pos
	}
	w := diag.Warnf(pos, diag.NoExpression, "the API server would refuse %s: %s; the webhook will run this rule", celrule.SubjectOf(e.Field), e.Message)
	if _, what, _ := strings.Cut(e.Message, ": "); strings.HasPrefix(what, "undeclared reference to ") && d.Authored && !strings.Contains(what, "'JSONPatch'") && !strings.Contains(what, "'Object") {
		w = celrule.Broken(pos, "at %s", e.Message)
	}
	return &w
}

// What Kyverno looks for in the text of an expression about pods.
var (
	podSpecText     = regexp.MustCompile(`\b(object|oldObject|Object)\.spec`)
	podMetadataText = regexp.MustCompile(`\b(object|oldObject|Object)\.metadata\.(labels|annotations)`)
)

// inPodTemplates is a policy about pods as one about the templates of their controllers:
//
//	object.spec.hostPID              object.spec.template.spec.hostPID
//	object.metadata.labels           object.spec.template.metadata.labels
//	Object{spec: Object.spec{a: 1}}  Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{a: 1}}}}
//
// Kyverno looks for text, and in match conditions and apply configurations only.
func inPodTemplates(m *policy.Mutating, template []string) *policy.Mutating {
	if template == nil {
		return m
	}
	out := *m
	out.MatchConditions, out.Mutations = slices.Clone(m.MatchConditions), slices.Clone(m.Mutations)
	for i := range out.MatchConditions {
		out.MatchConditions[i].Expression = textInTemplate(out.MatchConditions[i].Expression, template)
	}
	for i := range out.Mutations {
		if out.Mutations[i].PatchType == policy.ApplyConfiguration {
			out.Mutations[i].Expression = textInTemplate(out.Mutations[i].Expression, template)
		}
	}
	return &out
}

func textInTemplate(text string, template []string) string {
	at := strings.Join(template, ".")
	text = podSpecText.ReplaceAllString(text, "${1}."+at+".spec")
	text = podMetadataText.ReplaceAllString(text, "${1}."+at+".metadata.${2}")
	rest, is := strings.CutPrefix(strings.TrimSpace(text), "Object")
	rest = strings.TrimLeft(rest, " \t\r\n")
	if !is || !strings.HasPrefix(rest, "{") {
		return text
	}
	end := closingBrace(rest)
	if end < 0 {
		return text
	}
	before, typ := "Object{", "Object"
	for _, name := range template {
		typ += "." + name
		before += name + ": " + typ + "{"
	}
	return before + rest[1:end] + strings.Repeat("}", len(template)+1) + rest[end+1:]
}

// closingBrace is where the brace is closed that a text begins with; -1 where it is not.
// Kyverno counts those in strings too.
func closingBrace(text string) int {
	open := 0
	for i, c := range text {
		switch c {
		case '{':
			open++
		case '}':
			open--
		}
		if open == 0 {
			return i
		}
	}
	return -1
}
