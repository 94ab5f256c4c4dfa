package celpolicy

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap"
)

// A Cleaned is a cleanup policy with the DeletingPolicies that take its place, or why there are
// none.
type Cleaned struct {
	Of      *policy.Cleanup
	Objects []Object
	Left    *diag.Diagnostic
	// Found is what there is to say of one that has objects.
	Found diag.List
}

// Cleanups makes DeletingPolicies of cleanup policies. Those that are written in CEL, and those
// with errors, are left out. how must be as for rules that Convert converts: without guards, and with
// no namespaces that bindings leave out.
//
// What a cleanup policy deletes is lowered as a rule that denies it under failurePolicy Ignore: there
// nothing of which an expression is an error is denied, as nothing of which one is an error is
// deleted.
func Cleanups(of []*policy.Cleanup, how compile.Options, o Options) (out []Cleaned) {
	var made []naming
	taken := map[place]bool{}
	for _, c := range of {
		if c.Deleting != nil {
			taken[place{c.Kind, c.Namespace, c.Name}] = true
		}
	}
	for _, c := range of {
		if c.Deleting == nil && !c.Invalid {
			out = append(out, cleanup(c, how, o))
		}
	}
	for _, one := range out {
		made = append(made, naming{one.Of.Name, one.Objects})
	}
	called(taken, made)
	return out
}

func cleanup(c *policy.Cleanup, how compile.Options, o Options) Cleaned {
	out := Cleaned{Of: c}
	if what := cmp.Or(noneOfRequests(c), unclear(c, how.Translate.Schemas)); what != "" {
		d := diag.Warnf(c.Pos, diag.NoKyvernoForm, "Kyverno's kinds in CEL have no form for %s", what)
		out.Left = &d
		return out
	}
	timeless := *c
	ages, rest := agesIn(c.Conditions)
	timeless.Conditions = rest
	p := timeless.AsRule()
	result := compile.Policies(compile.Input{Policies: []*policy.Policy{p}}, how)
	con := converter{options: o, result: result}
	for _, r := range result.Rules {
		if len(r.Objects) == 0 && r.Reason != "" {
			d := diag.Warnf(r.Pos(), slices.Concat(r.Codes, []diag.Code{diag.NoKyvernoForm})[0], "%s", r.Reason)
			out.Left = &d
		}
		for _, i := range r.Objects {
			one, why := con.deleting(c, p, result.Objects[i], ages)
			if why != nil {
				out.Left = why
			}
			out.Objects = append(out.Objects, one)
		}
	}
	for _, d := range result.Diagnostics {
		switch {
		case d.Code == diag.GuessedResource || d.Code == diag.UnknownField || ofTheRule(d.Code):
			out.Found = append(out.Found, d)
		case decidesOtherwise(d.Code) && out.Left == nil:
			d := diag.Warnf(d.Pos, d.Code, "%s", d.Message)
			out.Left = &d
		}
	}
	if out.Left == nil && len(out.Objects) == 0 {
		d := diag.Warnf(c.Pos, diag.NoKyvernoForm, "Kyverno's kinds in CEL have no form for a policy that deletes nothing")
		out.Left = &d
	}
	if out.Left != nil {
		out.Objects, out.Found = nil, nil
	}
	return out
}

// noneOfRequests is what a cleanup policy says that a rule would take for something of a request
// or for more kinds; "" where there is no such thing. A wildcard in a kind means none here.
func noneOfRequests(c *policy.Cleanup) string {
	for _, m := range []*policy.MatchBlock{c.Match, c.Exclude} {
		if m == nil {
			continue
		}
		for _, f := range m.Filters() {
			for _, k := range f.Kinds {
				kind, ok := policy.ParseKind(k.Value)
				if !ok || kind.Subresource != "" || strings.ContainsAny(k.Value, "*?") {
					return "the kind " + k.Value + ", which a cleanup policy takes literally"
				}
			}
			if len(f.Operations) > 0 {
				return "operations, which no schedule has"
			}
		}
	}
	if slices.ContainsFunc(c.Context, func(e *policy.ContextEntry) bool { return e.Name == "target" || strings.HasPrefix(e.Name, "target.") }) {
		return "a context entry in the place of the object"
	}
	for _, at := range []string{"context", "conditions"} {
		if of := c.Source.Get("spec").Get(at); of != nil && asksRequest(string(policy.Marshal(of))) {
			return "what a request would say: a cleanup policy knows of one the namespace alone"
		}
	}
	return ""
}

// unclear is a kind that may stand for more than one kind of a cluster, or for none that the policy
// reaches; "" where there is none. A cleanup policy means the group and version that the cluster names
// first, and a DeletingPolicy each that it matches: the same object may be read in one as it is, and
// in another without the field that keeps it.
func unclear(c *policy.Cleanup, schemas *schema.Set) string {
	for _, f := range c.Match.Filters() {
		for _, k := range f.Kinds {
			kind, _ := policy.ParseKind(k.Value)
			resources := schemas.Resources(kind.Group, kind.Version, kind.Kind)
			var meant []string
			for _, r := range resources {
				for _, gvk := range r.Published {
					meant = append(meant, gvk.APIVersion())
				}
				if len(r.Published) == 0 && !r.Guessed {
					meant = append(meant, r.APIVersion())
				}
			}
			switch {
			case kind.Group != "*" && kind.Version != "*":
			case len(meant) == 0:
				return "the kind " + k.Value + " of an unknown group; write its group and version"
			case len(meant) > 1:
				return "the kind " + k.Value + ", which may be of " + strings.Join(meant, ", ") + "; write its group and version"
			}
			if c.Kind == "CleanupPolicy" && len(resources) == 1 && !resources[0].Guessed && !resources[0].Namespaced {
				return "the kind " + k.Value + ", of which no object is in a namespace"
			}
		}
	}
	return ""
}

// decidesOtherwise reports whether a code tells of requests that CEL decides otherwise than Kyverno.
// A rule that denies too much is noticed; what is deleted too much is gone.
func decidesOtherwise(c diag.Code) bool {
	return slices.Contains([]diag.Code{diag.ASCIICase, diag.TextEquality, diag.RuntimeText, diag.FirstImage}, c)
}

// ofTheRule reports whether a code tells what a policy does by itself, as it was written.
func ofTheRule(c diag.Code) bool { return c >= diag.DeniesEvery && c <= diag.OptionalField }

// asksRequest tells that a text may ask for more of a request than its namespace.
func asksRequest(text string) bool {
	return strings.Contains(text, `\u`) || regexp.MustCompile(`request\b`).MatchString(regexp.MustCompile(`\brequest\.namespace\b`).ReplaceAllString(text, ""))
}

// agesIn takes out of conditions those that compare an age with a duration, in the form
//
//	key: "{{ time_since('', '{{ target.metadata.creationTimestamp }}', '') }}"
//	operator: GreaterThan
//	value: 24h
//
// or of time_diff up to now, for which the API server has no clock. Conditions of which only some
// must hold stay together.
func agesIn(c *policy.Conditions) (ages []cel.Bool, rest *policy.Conditions) {
	if c == nil {
		return nil, nil
	}
	out := *c
	if len(c.Any) == 1 && len(c.All) == 0 { // any of one is all
		out.Any, out.All = nil, c.Any
	}
	out.All = slices.DeleteFunc(slices.Clone(out.All), func(one *policy.Condition) bool {
		age, ok := ageIn(one)
		if ok {
			ages = append(ages, age)
		}
		return ok
	})
	switch {
	case len(ages) == 0:
		return nil, c
	case out.Any == nil && len(out.All) == 0:
		return ages, nil
	}
	return ages, &out
}

func ageIn(c *policy.Condition) (cel.Bool, bool) {
	const (
		path = `target((?:\.[A-Za-z_][A-Za-z0-9_]*)+)`
		from = `(?:'\{\{\s*` + path + `\s*\}\}'|` + path + `)`
		now  = `(?:'\{\{\s*time_now(?:_utc)?\(\)\s*\}\}'|time_now(?:_utc)?\(\))`
	)
	form := regexp.MustCompile(`^\{\{\s*(?:time_since\(\s*''\s*,\s*` + from + `\s*,\s*(?:''|` + now + `)\s*\)|time_diff\(\s*` + from + `\s*,\s*` + now + `\s*\))\s*\}\}$`)
	operators := map[string]cel.Operator{
		"GreaterThan": cel.Greater, "GreaterThanOrEquals": cel.GreaterEqual, "LessThan": cel.Less, "LessThanOrEquals": cel.LessEqual,
		"DurationGreaterThan": cel.Greater, "DurationGreaterThanOrEquals": cel.GreaterEqual, "DurationLessThan": cel.Less, "DurationLessThanOrEquals": cel.LessEqual,
	}
	operator, ordered := operators[c.Operator]
	if c.Key == nil || c.Value == nil || c.Key.Kind != policy.String || c.Value.Kind != policy.String || !ordered {
		return cel.Bool{}, false
	}
	read := form.FindStringSubmatch(strings.TrimSpace(c.Key.Str))
	if read == nil || !isPeriod(c.Value.Str) {
		return cel.Bool{}, false
	}
	since := cel.Ident("object")
	for _, field := range strings.Split(strings.Join(read[1:], ""), ".")[1:] {
		since = since.Field(field)
	}
	if since.Text(width) != "object.metadata.creationTimestamp" { // a number is no time to Kyverno
		since = cel.Func(cel.FuncString, since)
	}
	age := cel.Ident("time").Call("now").Binary(cel.Minus, cel.Func("timestamp", since))
	return age.Compare(operator, cel.Func(cel.FuncDuration, cel.String(c.Value.Str))), true
}

// isPeriod tells of a text that Kyverno reads as a duration: 0 is a number to it.
func isPeriod(text string) bool {
	d, err := time.ParseDuration(text)
	return err == nil && (d != 0 || text != "0")
}

// deleting is the DeletingPolicy of a native object that denies what a cleanup policy deletes.
func (c *converter) deleting(of *policy.Cleanup, p *policy.Policy, o vap.Objects, ages []cel.Bool) (Object, *diag.Diagnostic) {
	e := newExpressions(p, o.Draft, o.Draft.Bindings[0])
	frame := e.frame(o.Policy.Spec)
	out := c.object(p, "DeletingPolicy", o.Policy.Name, o.Draft)
	out.Spec = Spec{Schedule: of.Schedule.Value, MatchConstraints: frame.MatchConstraints, Propagation: of.Propagation}
	e.plain(out.Spec.MatchConstraints)
	for _, v := range frame.Variables {
		out.Spec.Variables = append(out.Spec.Variables, admissionregistrationv1.Variable{Name: v.Name, Expression: e.ofObject(v.Expression)})
	}
	for _, m := range frame.MatchConditions {
		name := m.Name
		if name == "preconditions" {
			name = "conditions"
		}
		out.Spec.addDeletion(name, e.ofObject(m.Expression))
	}
	for _, age := range ages {
		out.Spec.addDeletion("age", age.Text(width))
	}
	for _, v := range o.Policy.Spec.Validations {
		if denied := e.parsed(v.Expression); !cel.Equal(denied, cel.False().Value) {
			out.Spec.addDeletion("conditions", e.ofObject(cel.Not(e.parsed(e.boolean(v.Expression, true)).AsBool()).Text(width)))
		}
	}
	e.dropUnread(&out.Spec)
	return out, e.why
}

// addDeletion adds a condition of what is deleted, of a name that no other has.
func (s *Spec) addDeletion(name, expression string) {
	name = vap.FreshName(name, "", func(name string) bool {
		return slices.ContainsFunc(s.Conditions, func(m admissionregistrationv1.MatchCondition) bool { return m.Name == name })
	})
	s.Conditions = append(s.Conditions, admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
}

// plain makes constraints those of objects that are there: of whatever operation, and without
// subresources.
func (e *expressions) plain(m *admissionregistrationv1.MatchResources) {
	var rules []admissionregistrationv1.NamedRuleWithOperations
	for _, r := range m.ResourceRules {
		r.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
		r.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(name string) bool { return strings.Contains(name, "/") })
		if len(r.Resources) > 0 {
			rules = append(rules, r)
		}
	}
	m.ResourceRules = rules
	if len(rules) == 0 {
		e.refuse("what is about subresources alone")
	}
	if m.NamespaceSelector != nil && slices.ContainsFunc(e.draft.Constraints.Rules, vap.ResourceRule.MatchesNamespaces) {
		e.refuse("the namespace of a Namespace, which to Kyverno is the Namespace itself")
	}
}

// ofObject is an expression about an object that nobody has sent: its namespace and its name are
// those that it has itself. In a DeletingPolicy there is no request and no old object.
func (e *expressions) ofObject(text string) string {
	request, metadata := cel.Ident("request"), cel.Ident("object").Field("metadata")
	v := e.parsed(text)
	out := rewritten(v, func(w cel.Value) cel.Value {
		for _, field := range []string{"namespace", "name"} {
			switch {
			case cel.Equal(w, request.Field(field)):
				return metadata.Field(field)
			case cel.Equal(w, request.Has(field).Value):
				return metadata.Has(field).Value
			case cel.Equal(w, request.Optional(field)):
				return metadata.Optional(field)
			}
		}
		return w
	})
	if out.Count("request")+out.Count("oldObject") > 0 {
		e.refuse("what a request would say")
	}
	if !cel.Equal(out, v) && slices.ContainsFunc(e.draft.Constraints.Rules, vap.ResourceRule.MatchesNamespaces) {
		e.refuse("the namespace of a Namespace, which a request has and the Namespace itself does not")
	}
	if cel.Equal(out, v) {
		return text
	}
	return out.Text(width)
}
