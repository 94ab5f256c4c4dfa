package translate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap"
)

// nativeParts is what a CEL rule brings along besides its verdict.
type nativeParts struct {
	checks     []vap.Validation // without their members
	conditions []vap.Condition
	variables  []vap.Variable
	audits     []vap.Audit
	paramKind  *vap.ParamKind
	paramRef   *vap.ParamRef // NotFound is for a binding that denies
	// written is what the author wrote, for the API server's compiler: what is
	// asked before an expression can hide that it is no condition.
	written vap.Draft
}

// key is everything that the parts say.
func (n *nativeParts) key() string {
	if n == nil {
		return ""
	}
	var parts []string
	for _, c := range n.checks {
		parts = append(parts, "check", c.Expr.String(), c.Message, c.Reason)
		if c.MessageExpression != nil {
			parts = append(parts, c.MessageExpression.String())
		}
	}
	return strings.Join(append(parts, n.own()), "\x00")
}

// own is what a policy object has only once; "" where there is none of it, so that
// the rule can share its object with others.
func (n *nativeParts) own() string {
	if n == nil {
		return ""
	}
	var parts []string
	for _, c := range n.conditions {
		parts = append(parts, "condition", c.Name, c.Expr.String())
	}
	for _, v := range n.variables {
		parts = append(parts, "variable", v.Name, v.Expr.String())
	}
	for _, a := range n.audits {
		parts = append(parts, "audit", a.Key, a.Value.String())
	}
	if n.paramKind != nil {
		parts = append(parts, "params", fmt.Sprint(*n.paramKind, *n.paramRef, n.paramRef.Selector))
	}
	return strings.Join(parts, "\x00")
}

// celRule is: all expressions of a CEL rule are true. In Kyverno an error of one is
// a violation. What is missing makes an expression false here too (see cel.Sure);
// on any other error a native policy refuses if its failure policy is Fail. So it
// is, whatever that of the source (see unit.failurePolicy), and what Kyverno lets
// pass under Ignore must not err.
func (l *lowering) celRule(r *policy.CELRule, u *unit) truthValue {
	if l.policy.FailurePolicy == policy.Ignore && (u.pre.errs || len(l.policy.MatchConditions) > 0) {
		panic(l.unsupported("failurePolicy Ignore for conditions beside CEL expressions, whose errors are violations all the same,"))
	}
	n := &nativeParts{}
	l.celParams(r, n)
	scope := celScope{l: l, parts: n}
	for _, v := range r.Variables {
		n.variables = append(n.variables, vap.Variable{Pos: v.Pos, Name: v.Name, Expr: scope.expression(v.Expression, v.Pos)})
	}
	found := l.celPreconditions(scope, n, u)
	for _, e := range r.Expressions {
		check := l.celCheck(scope, e)
		check.Expr = cel.And(found, check.Expr)
		n.checks = append(n.checks, check)
	}
	l.celAudits(scope, r, n)
	n.written.Variables, n.written.Audits, n.written.ParamKind = n.variables, n.audits, n.paramKind
	u.native = n
	return truthValue{cel.False(), true} // nobody asks: the checks stand for it
}

// celCheck is one expression with what is said where it is not true.
func (l *lowering) celCheck(scope celScope, e policy.CELValidation) vap.Validation {
	expr := scope.expression(e.Expression, e.Pos).AsBool()
	check := vap.Validation{Pos: e.Pos, Expr: expr, Message: e.Message, Reason: l.celReason(e)}
	if check.Message == "" {
		check.Message = l.rule.Validate.Message.Value
	}
	if check.Message == "" {
		check.Message = failedExpression(e.Expression)
	}
	if e.MessageExpression != "" {
		check.MessageExpression = scope.message(e)
	}
	scope.parts.written.Validations = append(scope.parts.written.Validations, check)
	check.Expr = expr.Sure(scope.surroundings())
	return check
}

// celReason is the reason of a denial. The API server documents one that it does
// not take.
func (l *lowering) celReason(e policy.CELValidation) string {
	if takesReason(e.Reason) {
		return e.Reason
	}
	l.at(e.Pos)
	l.note(diag.LeftOut, "the API server does not take the reason %s; the reason of the denial is Invalid", e.Reason)
	return ""
}

func takesReason(reason string) bool {
	switch reason {
	case "", "Invalid", "Forbidden", "RequestEntityTooLarge":
		return true
	}
	return false
}

// celPreconditions become match conditions; behind what only a validation can ask
// they become its guard. Kyverno skips the rule where one is false, and takes it for
// violated where none is false and one errs. So a match condition lets through what
// it cannot tell, and found is what the checks must ask before all else.
func (l *lowering) celPreconditions(scope celScope, n *nativeParts, u *unit) (found cel.Bool) {
	found = cel.True()
	guards := u.namespace || u.pre.errs
	around := scope.surroundings()
	for i := range around.Roots { // preconditions never see the namespace
		around.Roots[i].Null = around.Roots[i].Null || around.Roots[i].Name == "namespaceObject"
	}
	for _, c := range l.rule.CELPreconditions {
		expr := inlined(scope.expression(c.Expression, c.Pos), n.variables).AsBool()
		n.written.Conditions = append(n.written.Conditions, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: expr})
		l.at(c.Pos)
		if n.paramRef != nil && n.paramRef.Selector != nil && mentionsIdent(expr.Value, "params") {
			panic(l.unsupported("a CEL precondition on params of which there may be several: the first one that it is false of ends the rule,"))
		}
		holds := expr
		if refuted := expr.Refuted(around); !cel.Equal(refuted.Value, cel.Not(expr).Value) {
			holds = cel.Not(refuted).Simplify()
			found = cel.And(found, expr.Found(around))
		}
		if mentionsIdent(cel.And(holds, found).Value, "namespaceObject") && (guards || !cel.Equal(holds.Value, expr.Value)) {
			panic(l.unsupported("a CEL precondition that reads namespaceObject, which is null there,"))
		}
		if guards {
			u.pre = u.pre.andThen(truthValue{holds, true})
			continue
		}
		n.conditions = append(n.conditions, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: holds})
	}
	return found
}

// celParams says which params there are. Without both the kind and the reference
// there are none.
func (l *lowering) celParams(r *policy.CELRule, n *nativeParts) {
	if r.ParamKind == nil || r.ParamRef == nil {
		return
	}
	n.paramKind = &vap.ParamKind{APIVersion: r.ParamKind.APIVersion, Kind: r.ParamKind.Kind}
	n.paramRef = &vap.ParamRef{Name: r.ParamRef.Name, Namespace: r.ParamRef.Namespace, NotFound: "Deny"}
	if r.ParamRef.ParameterNotFoundAction == "Allow" {
		n.paramRef.NotFound = "Allow"
	}
	if r.ParamRef.Selector != nil {
		s := plainSelector(r.ParamRef.Selector)
		n.paramRef.Selector = &s
	}
	if r.ParamKind.APIVersion == "v1" && r.ParamKind.Kind == "ConfigMap" {
		l.at(r.ParamKind.Pos)
		l.note(diag.ConfigMapParams, "up to Kubernetes 1.37, the API server stops following ConfigMaps once no binding has used one for a second")
	}
}

// celAudits are the audit annotations. Kyverno never writes them, but the API
// server refuses a request on an error of one, whatever a binding's actions: so
// only those stay that cannot err.
func (l *lowering) celAudits(scope celScope, r *policy.CELRule, n *nativeParts) {
	for _, a := range r.AuditAnnotations {
		l.at(a.Pos)
		v, why := scope.quietly(a.Expression, a.Pos)
		if why == nil {
			if safe, ok := harmless(v, n.variables); ok {
				n.audits = append(n.audits, vap.Audit{Pos: a.Pos, Key: a.Name, Value: safe})
				continue
			}
		}
		l.note(diag.LeftOut, "the audit annotation %s may be an error, on which the API server would refuse the request; it is left out", a.Name)
	}
}

// A celScope reads the expressions of a rule as Kyverno does.
type celScope struct {
	l     *lowering
	parts *nativeParts
}

// surroundings are what the rule's expressions read. What the rule sees on any of
// its operations counts for all, so that its objects need not differ by operation;
// ephemeral containers count as their pod here too.
func (s celScope) surroundings() cel.Surroundings {
	l := s.l
	has := func(op string) bool {
		return l.someFilterHas(op) && (slices.Contains(l.target.ops(), op) || l.target.sub == "ephemeralcontainers")
	}
	own := l.objectShape()
	roots := []cel.Root{
		{Name: "object", Shape: own, Null: has("DELETE")},
		{Name: "oldObject", Shape: own, Null: has("CREATE") || has("CONNECT")},
		{Name: "request", Shape: requestShape()},
		{Name: "namespaceObject", Shape: shapeOf(l.namespaceType()), Null: l.target.scope != namespaced},
	}
	if k := s.parts.paramKind; k != nil {
		gv := schema.GVK{Version: k.APIVersion, Kind: k.Kind}
		if group, version, ok := strings.Cut(k.APIVersion, "/"); ok {
			gv.Group, gv.Version = group, version
		}
		roots = append(roots, cel.Root{Name: "params", Shape: shapeOf(l.opts.Schemas.Type(gv))})
	}
	return cel.Surroundings{Roots: roots, Variables: func(name string) (cel.Value, bool) {
		for _, v := range s.parts.variables {
			if v.Name == name {
				return v.Expr, true
			}
		}
		return cel.Value{}, false
	}}
}

// expression is an expression of the source, as it is to be evaluated natively.
func (s celScope) expression(text string, pos diag.Pos) cel.Value {
	v, why := readCEL(text, pos, s.l.opts.Release)
	if why != nil {
		panic(refusal{*why})
	}
	s.l.at(pos)
	return s.l.madeUpRequest(v)
}

// quietly is expression with the reason why there is none.
func (s celScope) quietly(text string, pos diag.Pos) (v cel.Value, why *diag.Diagnostic) {
	defer func() {
		if p := recover(); p != nil {
			ref, ok := p.(refusal)
			if !ok {
				panic(p)
			}
			why = &ref.Diagnostic
		}
	}()
	return s.expression(text, pos), nil
}

// message is a message expression. The verdict does not depend on it: where it has
// no native form, the message stands alone.
func (s celScope) message(e policy.CELValidation) *cel.Value {
	v, why := s.quietly(e.MessageExpression, e.Pos)
	if why == nil {
		return &v
	}
	s.l.at(e.Pos)
	s.l.note(diag.MessageVariable, "the messageExpression has no native form; the message is shown instead")
	return nil
}

// inlined is an expression with the variables written out, for the match
// conditions, which have none.
func inlined(v cel.Value, variables []vap.Variable) cel.Value {
	for _, x := range slices.Backward(variables) { // a variable uses only those before it
		v = v.SubstituteField("variables", x.Name, x.Expr)
	}
	return v
}

// readCEL parses an expression of the source. The reason why it cannot be native
// names the function that the release does not have.
func readCEL(text string, pos diag.Pos, release cel.Release) (cel.Value, *diag.Diagnostic) {
	refuse := func(code diag.Code, format string, args ...any) (cel.Value, *diag.Diagnostic) {
		d := diag.Warnf(pos, code, format+"; the webhook will judge this rule", args...)
		return cel.Value{}, &d
	}
	v, err := cel.Parse(text)
	if err != nil {
		var d diag.Diagnostic
		if !errors.As(err, &d) {
			return refuse(diag.NoExpression, "the CEL expression cannot be read: %v", err)
		}
		return refuse(diag.NoExpression, "the CEL expression cannot be read: at %d:%d: %s", d.Line, d.Col, d.Message)
	}
	if unknown := v.Unknown(); len(unknown) > 0 {
		return refuse(diag.NoFunction, "the API server has no function %s", qualifiedName(v, unknown[len(unknown)-1]))
	}
	for _, name := range v.Idents() {
		if kyvernoOnly(name) {
			return refuse(diag.NoFunction, "the API server has no variable %s", name)
		}
	}
	if need := v.Needs(); !release.Supports(need) {
		return refuse(diag.NeedsNewer, "the function %s needs Kubernetes %s", newest(v, need), need)
	}
	return v, nil
}

// kyvernoOnly tells of the variables that Kyverno adds to those of the API server.
func kyvernoOnly(name string) bool {
	switch name {
	case "images", "exceptions", "globalContext", "http", "resource", "generator", "time":
		return true
	}
	return false
}

// qualifiedName is a function with the variable in front of it that it belongs to, as in
// resource.Get.
func qualifiedName(v cel.Value, function string) string {
	for _, name := range v.Idents() {
		if strings.Contains(v.String(), name+"."+function+"(") {
			return name + "." + function
		}
	}
	return function
}

// newest is the function for which v needs a release.
func newest(v cel.Value, need cel.Release) string {
	found := ""
	v.Calls(func(name string, args int) {
		if found == "" && cel.Since(name, args) == need {
			found = name
		}
	})
	return found
}

// madeUpRequest is an expression that sees the request as it is here, where
// Kyverno makes one up from the object: it never has a subresource, options or a
// dry run, its kind is that of the top-level object as the policy matches it, and
// it names the object also where a collection is deleted.
func (l *lowering) madeUpRequest(v cel.Value) cel.Value {
	if v.UsesAll("request") {
		panic(l.unsupported("the request as a whole"))
	}
	for _, field := range v.Uses("request") {
		switch field {
		case "options":
			panic(l.unsupported("request.options in a CEL rule, which Kyverno leaves empty,"))
		case "subResource", "requestSubResource":
			if l.target.sub != "" {
				panic(l.unsupported("request." + field + " in a CEL rule, which Kyverno leaves empty,"))
			}
		case "kind", "requestKind":
			if l.target.sub != "" && l.target.sub != "ephemeralcontainers" {
				panic(l.unsupported("request." + field + " of a subresource in a CEL rule, which in Kyverno is that of the object,"))
			}
		case "namespace":
			if l.mayBeNamespace() {
				panic(l.unsupported("request.namespace of a Namespace in a CEL rule, which Kyverno leaves empty,"))
			}
		}
	}
	v = v.SubstituteField("request", "dryRun", cel.False().Value)
	v = v.RenameField("request", "requestKind", "kind")
	v = v.RenameField("request", "requestResource", "resource")
	if l.on("DELETE") && len(l.ops) == 1 {
		v = v.SubstituteField("request", "name", cel.Ident("oldObject").Field("metadata").Field("name"))
	}
	return v
}

// mayBeNamespace tells whether Namespaces are among the objects of the target.
func (l *lowering) mayBeNamespace() bool {
	return wildScope(l.target) || l.target.parent.Group == "" && l.target.parent.Kind == "Namespace"
}

func mentionsIdent(v cel.Value, name string) bool { return v.Count(name) > 0 }

// add puts the parts into the draft of the rule's object.
func (n *nativeParts) add(d *vap.Draft) {
	if n == nil {
		return
	}
	d.Conditions = append(d.Conditions, n.conditions...)
	d.Variables = append(d.Variables, n.variables...)
	d.Audits = append(d.Audits, n.audits...)
	if n.paramKind != nil {
		d.ParamKind = n.paramKind
	}
}

// harmless is an audit annotation that cannot err; false where that is not sure.
func harmless(v cel.Value, variables []vap.Variable) (cel.Value, bool) {
	return v, len(v.Idents()) == 0
}

// failurePolicy is that of the unit's object. An error of a CEL rule's expressions
// denies under Ignore too.
func (u unit) failurePolicy() string {
	if u.native != nil {
		return string(policy.Fail)
	}
	return string(u.policy.FailurePolicy)
}

// policyConditions are the policy's own match conditions, with the reason why
// there are none. They are those of a webhook, so they see the real request, but
// Kyverno asks them once more without an authorizer.
func policyConditions(p *policy.Policy, release cel.Release) (out []vap.Condition, why *diag.Diagnostic) {
	for _, c := range p.MatchConditions {
		v, why := readCEL(c.Expression, c.Pos, release)
		if why != nil {
			return nil, why
		}
		for _, name := range []string{"authorizer", "params", "variables", "namespaceObject"} {
			if mentionsIdent(v, name) {
				d := diag.Warnf(c.Pos, diag.NoExpression, "a match condition of a policy cannot read %s; the webhook will judge this policy", name)
				return nil, &d
			}
		}
		out = append(out, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: v.AsBool()})
	}
	return out, nil
}

// refusedExpressions is why the API server would refuse an expression of a draft:
// what the source says in CEL has passed nobody's type checker yet. The verdict
// does not depend on message expressions; those that it would refuse are listed by
// their validations.
func refusedExpressions(d *vap.Draft, release cel.Release) (why *diag.Diagnostic, messages []int) {
	objects, found := vap.Emit(d, vap.EmitOptions{ExcludeNamespaces: []string{}})
	for _, f := range found {
		if f.Severity == diag.Error {
			w := diag.Warnf(f.Pos, f.Code, "%s; the webhook will judge this rule", f.Message)
			return &w, nil
		}
	}
	for _, e := range vap.Validate(objects.Policy, release) {
		var i int
		if scan(e.Field, "spec.validations[%d]", &i) && strings.HasSuffix(e.Field, ".messageExpression") {
			messages = append(messages, i)
			continue
		}
		w := diag.Warnf(place(d, objects, e.Field), diag.NoExpression, "the API server would refuse %s: %s; the webhook will judge this rule",
			subjectOf(e.Field), compilerMessage(e.Detail))
		return &w, messages
	}
	return nil, messages
}

// compilerMessage is the first message of a CEL compiler on one line.
func compilerMessage(detail string) string {
	if _, after, ok := strings.Cut(detail, "ERROR: <input>:"); ok {
		detail = after
	}
	first, _, _ := strings.Cut(detail, "\n")
	return strings.TrimSpace(first)
}

// subjectOf names what a field holds.
func subjectOf(field string) string {
	switch {
	case strings.HasSuffix(field, "xpression"):
		return "the CEL expression"
	case strings.HasSuffix(field, ".key"):
		return "the key"
	}
	return strings.TrimPrefix(field, "spec.")
}

// place is where the source of an emitted field stands.
func place(d *vap.Draft, o vap.Objects, field string) diag.Pos {
	var i int
	switch {
	case scan(field, "spec.validations[%d]", &i):
		return d.Validations[i].Pos
	case scan(field, "spec.auditAnnotations[%d]", &i):
		return d.Audits[i].Pos
	case scan(field, "spec.variables[%d]", &i):
		for _, v := range d.Variables {
			if v.Name == o.Policy.Spec.Variables[i].Name {
				return v.Pos
			}
		}
	case scan(field, "spec.matchConditions[%d]", &i):
		for _, c := range d.Conditions {
			if c.Name == o.Policy.Spec.MatchConditions[i].Name {
				return c.Pos
			}
		}
	}
	return d.Members[0].Pos
}

func scan(field, format string, i *int) bool {
	n, _ := fmt.Sscanf(field, format, i)
	return n == 1
}

// refusedUnits looks through the units of a rule for what the API server would
// refuse. Units with the same text need to be asked about once.
func refusedUnits(units []unit, o *Options, notes *diag.List) *diag.Diagnostic {
	asked := map[string][]int{}
	for _, u := range units {
		if u.native == nil {
			continue
		}
		key := u.text()
		messages, done := asked[key]
		if !done {
			g := group{units: []unit{u}, targets: []placed{{u.target, u.ops}}}
			emitted, written := g.draft(o), u.native.written
			emitted.Base = u.policy.Name
			written.Base, written.Members, written.Constraints = emitted.Base, emitted.Members, emitted.Constraints
			for _, d := range []*vap.Draft{&written, emitted} {
				var why *diag.Diagnostic
				if why, messages = refusedExpressions(d, o.Release); why != nil {
					return why
				}
			}
			asked[key] = messages
		}
		for _, i := range messages { // the draft has one validation for each check
			c := &u.native.checks[i]
			c.MessageExpression = nil
			*notes = append(*notes, diag.Warnf(c.Pos, diag.MessageVariable, "the messageExpression has no native form; the message is shown instead"))
		}
	}
	return nil
}
