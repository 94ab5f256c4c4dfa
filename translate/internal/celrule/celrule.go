package celrule

import (
	"fmt"
	"maps"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// Holds is: all expressions of a CEL rule are true. In Kyverno an error of one is
// a violation. What is missing makes an expression false here too (see cel.Bool.Guarded);
// on any other error a native policy refuses if its failure policy is Fail. So it
// is, whatever that of the source (see unit.failurePolicy), and what Kyverno lets
// pass under Ignore must not err.
func Holds(l *read.Lowering, r *policy.CELRule, u *pack.Unit) partial.Bool {
	if l.Policy.FailurePolicy == policy.Ignore && (u.Pre.Errs || len(l.Policy.MatchConditions) > 0) {
		panic(l.Unsupported("failurePolicy Ignore for conditions beside CEL expressions, whose errors are violations all the same,"))
	}
	if l.Policy.FailurePolicy == policy.Ignore {
		noteRewritten(l.Notes, r.Pos, "the failure policy is Fail and not Ignore, since in Kyverno an error of a CEL expression is a violation all the same")
	}
	n := &native.Parts{}
	celParams(l, r, n)
	scope := celScope{l: l, parts: n}
	for _, v := range r.Variables {
		expr := scope.read(v.Expression, v.Pos)
		if why := Undeclared(expr, n.Written.Variables, v.Pos); why != nil {
			panic(read.Refusal{Diagnostic: *why})
		}
		n.Written.Variables = append(n.Written.Variables, vap.Variable{Pos: v.Pos, Name: v.Name, Expr: expr})
		n.Variables = append(n.Variables, vap.Variable{Pos: v.Pos, Name: v.Name, Expr: scope.portable(expr, v.Pos)})
	}
	found := celPreconditions(l, scope, n, u)
	for _, e := range r.Expressions {
		check := celCheck(l, scope, e)
		check.Expr = cel.And(found, check.Expr)
		n.Checks = append(n.Checks, check)
	}
	celAudits(l, scope, r, n)
	n.Written.Audits, n.Written.ParamKind = n.Audits, n.ParamKind
	u.CEL = n
	return partial.MayErr(cel.False()) // nobody asks: the checks stand for it
}

// celCheck is one expression with what is said where it is not true.
func celCheck(l *read.Lowering, scope celScope, e policy.CELValidation) vap.Validation {
	expr := scope.read(e.Expression, e.Pos)
	check := vap.Validation{Pos: e.Pos, Expr: expr.AsBool(), Message: e.Message, Reason: e.Reason}
	if !takesReason(e.Reason) { // the API server documents one that it does not take
		l.SetPos(e.Pos)
		l.Note(diag.LeftOut, "the API server does not take the reason %s; the reason of the denial is Invalid", e.Reason)
		check.Reason = ""
	}
	if check.Message == "" {
		check.Message = l.Rule.Validate.Message.Value
	}
	if check.Message == "" {
		check.Message = failedExpression(e.Expression)
	}
	if e.MessageExpression != "" {
		check.MessageExpression = scope.message(e)
	}
	scope.parts.Written.Validations = append(scope.parts.Written.Validations, check)
	check.Expr = scope.guarded(scope.portableCondition(expr, e.Pos), e.Pos)
	return check
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
func celPreconditions(l *read.Lowering, scope celScope, n *native.Parts, u *pack.Unit) (found cel.Bool) {
	found = cel.True()
	guards := u.ReadsNamespace || u.Pre.Errs
	around := scope.surroundings()
	for i := range around.Roots { // preconditions never see the namespace
		around.Roots[i].Null = around.Roots[i].Null || around.Roots[i].Name == "namespaceObject"
	}
	for _, c := range l.Rule.CELPreconditions {
		read := scope.read(c.Expression, c.Pos)
		n.Written.Conditions = append(n.Written.Conditions, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: vap.Inlined(read, n.Written.Variables).AsBool()})
		holds := scope.portableCondition(read, c.Pos)
		expr := vap.Inlined(holds.Value, n.Variables).AsBool()
		if !cel.Equal(expr.Value, holds.Value) {
			noteRewritten(l.Notes, c.Pos, "match conditions have no variables")
		}
		l.SetPos(c.Pos)
		if n.ParamRef != nil && n.ParamRef.Selector != nil && native.Mentions(expr.Value, "params") {
			panic(l.Unsupported("a CEL precondition on params of which there may be several: the first one that it is false of ends the rule,"))
		}
		holds = expr
		if refutation := expr.GuardedNot(around); !cel.Equal(refutation.Value, cel.Not(expr).Value) {
			holds = cel.Not(refutation).Simplify()
			found = cel.And(found, expr.Present(around))
			noteRewritten(l.Notes, c.Pos, "it lets through what it cannot tell, and the expressions ask for what it reads, since in Kyverno its error is a violation")
		}
		if native.Mentions(cel.And(holds, found).Value, "namespaceObject") && (guards || !cel.Equal(holds.Value, expr.Value)) {
			panic(l.Unsupported("a CEL precondition that reads namespaceObject, which is null there,"))
		}
		if guards {
			u.Pre = u.Pre.Then(partial.MayErr(holds))
			continue
		}
		n.Conditions = append(n.Conditions, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: holds})
	}
	return found
}

// celParams says which params there are. Without both the kind and the reference
// there are none.
func celParams(l *read.Lowering, r *policy.CELRule, n *native.Parts) {
	if r.ParamKind == nil || r.ParamRef == nil {
		return
	}
	n.ParamKind = &vap.ParamKind{APIVersion: r.ParamKind.APIVersion, Kind: r.ParamKind.Kind}
	n.ParamRef = &vap.ParamRef{Name: r.ParamRef.Name, Namespace: r.ParamRef.Namespace, NotFound: "Deny"}
	if r.ParamRef.ParameterNotFoundAction == "Allow" {
		n.ParamRef.NotFound = "Allow"
	}
	if r.ParamRef.Selector != nil {
		s := native.PlainSelector(r.ParamRef.Selector)
		n.ParamRef.Selector = &s
	}
	if paramsOfNobody(l, n) {
		l.SetPos(r.ParamRef.Pos)
		panic(l.Unsupported("params in the namespace of an object that may have none, for which the API server refuses the request whatever the action,"))
	}
	if r.ParamKind.APIVersion == "v1" && r.ParamKind.Kind == "ConfigMap" {
		l.SetPos(r.ParamKind.Pos)
		l.Note(diag.ConfigMapParams, "up to Kubernetes 1.37, the API server stops following ConfigMaps once no binding has used one for a second")
	}
}

// paramsOfNobody tells whether an object without a namespace may look for params in
// its own, and Kyverno's error for that may be one that admits.
func paramsOfNobody(l *read.Lowering, n *native.Parts) bool {
	if n.ParamRef.Namespace != "" || l.Target.Scope == native.Namespaced {
		return false
	}
	kind, known := l.Opts.Schemas.ByKind(kindOfParams(n.ParamKind))
	denies := read.Action(l) == policy.Enforce && len(native.OverridesOf(l.Policy, l.Rule)) == 0 && l.Policy.FailurePolicy == policy.Fail
	return !denies && (kind.Namespaced || !known)
}

func kindOfParams(k *vap.ParamKind) schema.GVK {
	group, version, ok := strings.Cut(k.APIVersion, "/")
	if !ok {
		group, version = "", k.APIVersion
	}
	return schema.GVK{Group: group, Version: version, Kind: k.Kind}
}

// celAudits are the audit annotations. Kyverno never writes them, but the API
// server refuses a request on an error of one, whatever a binding's actions: so
// only those stay that cannot err.
func celAudits(l *read.Lowering, scope celScope, r *policy.CELRule, n *native.Parts) {
	for _, a := range r.AuditAnnotations {
		l.SetPos(a.Pos)
		v, why := scope.quietly(a.Expression, a.Pos)
		if why == nil && Harmless(v) {
			n.Audits = append(n.Audits, vap.Audit{Pos: a.Pos, Key: a.Name, Value: v})
			continue
		}
		l.Note(diag.LeftOut, "the audit annotation %s may be an error, on which the API server would refuse the request; it is left out", a.Name)
	}
}

// Harmless tells of an audit annotation that cannot err, because it is constant.
func Harmless(v cel.Value) bool { return len(v.Idents()) == 0 }

// refusedExpressions is why the API server would refuse an expression of a draft:
// what the source says in CEL has passed nobody's type checker yet. The verdict
// does not depend on message expressions; those that it would refuse are listed by
// their validations.
func refusedExpressions(d *vap.Draft, checker api.Checker) (why *diag.Diagnostic, messages []int) {
	objects, found := vap.Emit(d, vap.EmitOptions{ExcludeNamespaces: []string{}})
	for _, f := range found {
		if f.Severity == diag.Error {
			w := diag.Warnf(f.Pos, f.Code, "%s; the webhook will judge this rule", f.Message)
			return &w, nil
		}
	}
	for _, e := range checker.Refusals(objects.Policy) {
		var i int
		if Scan(e.Field, "spec.validations[%d]", &i) && strings.HasSuffix(e.Field, ".messageExpression") {
			messages = append(messages, i)
			continue
		}
		pos, _ := objects.MadeFrom(e.Field)
		// Of what a type checker says there is only the text. Names of Kyverno's own are told before.
		if _, what, _ := strings.Cut(e.Message, ": "); strings.HasPrefix(what, "undeclared reference to ") {
			w := Broken(pos, "at %s", e.Message)
			return &w, messages
		}
		w := diag.Warnf(pos, diag.NoExpression, "the API server would refuse %s: %s; the webhook will judge this rule",
			SubjectOf(e.Field), e.Message)
		return &w, messages
	}
	return nil, messages
}

// refusedDrafts is refusedExpressions of what is written, and of what comes of it,
// which may have lost what made it a boolean or a text.
func refusedDrafts(written, emitted *vap.Draft, checker api.Checker) (why *diag.Diagnostic, messages []int) {
	why, messages = refusedExpressions(written, checker)
	if why == nil {
		why, messages = refusedExpressions(emitted, checker)
	}
	return why, messages
}

// SubjectOf names what a field holds.
func SubjectOf(field string) string {
	switch {
	case strings.HasSuffix(field, "xpression"):
		return "the CEL expression"
	case strings.HasSuffix(field, ".key"):
		return "the key"
	}
	return strings.TrimPrefix(field, "spec.")
}

// Scan reads a number out of the path of a field, as the API server reports it.
func Scan(field, format string, i *int) bool {
	n, _ := fmt.Sscanf(field, format, i)
	return n == 1
}

// RefusedUnits looks through the units of a rule for what the API server would
// refuse. Units with the same text need to be asked about once.
func RefusedUnits(units []pack.Unit, o *api.Options, notes *diag.List) *diag.Diagnostic {
	asked := map[string][]int{}
	for _, u := range units {
		if u.CEL == nil {
			continue
		}
		key := u.Text()
		messages, done := asked[key]
		if !done {
			emitted, written := u.Alone(o.Packing()), u.CEL.Written
			emitted.Base = u.Policy.Name
			written.Base, written.Members, written.Constraints = emitted.Base, emitted.Members, emitted.Constraints
			var why *diag.Diagnostic
			if why, messages = refusedDrafts(&written, emitted, o.Checker); why != nil {
				return why
			}
			asked[key] = messages
		}
		for _, i := range messages { // the draft has one validation for each check
			c := &u.CEL.Checks[i]
			c.MessageExpression = nil
			*notes = append(*notes, diag.Warnf(c.Pos, diag.MessageVariable, "the messageExpression has no native form; the message is shown instead"))
		}
	}
	return nil
}

// namespaceType is the type of namespaceObject.
func namespaceType(l *read.Lowering) *schema.Type {
	return native.ObjectWith(&schema.Field{Name: "metadata", Type: namedMeta(l)})
}

// objectShape is an object of the target, which has a name: the API server has
// generated it before it asks.
func objectShape(l *read.Lowering) cel.Shape {
	if l.Target.Scope == native.Namespaced {
		return shapeOfObject(l, "namespace")
	}
	return shapeOfObject(l)
}

// shapeOfObject is an object of the target with a name, and some more fields of its
// metadata that it always has.
func shapeOfObject(l *read.Lowering, more ...string) cel.Shape {
	t := read.ObjectType(l, l.Target) // a copy
	if !l.AsStored() {                // before it has a name
		return native.ShapeOf(t)
	}
	if _, ok := t.Fields["metadata"]; ok {
		t.Fields["metadata"] = &schema.Field{Name: "metadata", Type: namedMeta(l, more...), Required: true}
	}
	return native.ShapeOf(t)
}

// namedMeta is the metadata of an object with a name, and some more fields that it
// always has.
func namedMeta(l *read.Lowering, more ...string) *schema.Type {
	t := *l.Opts.Schemas.ObjectMeta()
	t.Fields = maps.Clone(t.Fields)
	for _, name := range append(more, "name") {
		t.Fields[name] = &schema.Field{Name: name, Type: read.StringType(), Required: true}
	}
	return &t
}

// IsTotal tells that a condition is never an error on the walk's operations.
func IsTotal(l *read.Lowering, b cel.Bool) bool {
	return b.IsTotal(surroundings(l, l.Environment))
}

// Simplified says t in a shorter way that says the same on the operations of e.
func Simplified(l *read.Lowering, t partial.Bool, e read.Environment) partial.Bool {
	around := surroundings(l, e)
	t.Expr = t.Expr.SimplifyIn(around)
	if t.Errs && !t.Expr.IsTotal(around) {
		return t
	}
	return partial.Sure(t.Expr.Counted())
}

// surroundings is what is known of the request on the operations of e. One that was
// recorded may be about an object without a namespace.
func surroundings(l *read.Lowering, e read.Environment) cel.Surroundings {
	own := shapeOfObject(l)
	return cel.Surroundings{Variables: func(name string) (cel.Value, bool) { return read.Defined(l, name) }, Roots: []cel.Root{
		{Name: "object", Shape: own, Null: e.On(native.Delete) && e.Trigger == nil},
		{Name: "oldObject", Shape: own, Null: e.On(native.Create) || e.On(native.Connect)},
		{Name: "request", Shape: native.RequestShape()},
	}}
}

// Some of Kyverno's own functions ask what the API server knows under another name:
//
//	parseServiceAccount(request.userInfo.username).Name            the fourth part of the name
//	resource.Get('v1', 'namespaces', '', request.namespace).metadata.labels
//	                                                               namespaceObject.metadata.labels
//
// A ConfigMap stays with the webhook, though its name may be known: where it is missing, Kyverno
// has null for it and goes on, and an API server without its params does not.

// accountName is what the name of a service account as a user looks like.
const accountName = "^system:serviceaccount:[^:]*:[^:]*$"

// known is an expression in which native forms stand for such functions.
func (w *ValidatingWalk) known(v cel.Value) cel.Value {
	accounts := map[string]cel.Value{}
	return v.Rewrite(func(v cel.Value) cel.Value {
		if of, name, ok := v.Selected(); ok {
			if user, is := accounts[of.String()]; is && (name == "Name" || name == "Namespace") {
				return accountPart(user, name)
			}
			if w.isOwnNamespace(of) && name == "metadata" {
				return cel.Ident("namespaceObject").Field(name)
			}
		}
		if user, ok := accountOf(v); ok {
			out := cel.Map(cel.Entry{Key: cel.String("Name"), Value: accountPart(user, "Name")}, cel.Entry{Key: cel.String("Namespace"), Value: accountPart(user, "Namespace")})
			accounts[out.String()] = user
			return out
		}
		return v
	})
}

// accountOf is the user of parseServiceAccount(user).
func accountOf(v cel.Value) (user cel.Value, ok bool) {
	name, args := v.Called()
	switch {
	case name != "parseServiceAccount":
	case len(args) == 1:
		return args[0], true
	case len(args) == 2 && cel.Equal(args[0], cel.Ident("user")):
		return args[1], true
	}
	return cel.Value{}, false
}

func accountPart(user cel.Value, name string) cel.Value {
	at := map[string]int64{"Namespace": 2, "Name": 3}[name]
	return cel.Cond(user.Matches(accountName), user.Call(cel.FuncSplit, cel.String(":")).Index(cel.Int(at)), cel.String(""))
}

// isOwnNamespace tells of the namespace of the request, by resource.Get.
func (w *ValidatingWalk) isOwnNamespace(v cel.Value) bool {
	names := got(v)
	if len(names) != 4 || !cel.Equal(names[0], cel.String("v1")) || !cel.Equal(names[1], cel.String("namespaces")) || !cel.Equal(names[2], cel.String("")) {
		return false
	}
	return cel.Equal(names[3], cel.Ident("request").Field("namespace")) &&
		!w.Opts.SomeResource(w.Form.Constraints.Rules, func(of schema.Resource) bool { return !of.Namespaced })
}

// got are the version, resource, namespace and name that resource.Get asks for.
func got(v cel.Value) []cel.Value {
	name, args := v.Called()
	if name != "Get" && name != "get" || len(args) == 0 || !cel.Equal(args[0], cel.Ident("resource")) {
		return nil
	}
	return args[1:]
}

// A portable expression means the same in every release from the one asked for to
// the latest: what Kyverno takes it to mean.

// lenientOptionals is the last release that takes orValue as Kyverno does.
const lenientOptionals cel.Release = 36

// Portable is an expression of the source that means the same in all releases, or
// the reason why there is none.
func Portable(v cel.Value, pos diag.Pos, variables []vap.Variable, o *api.Options, notes *diag.List) (cel.Value, *diag.Diagnostic) {
	return checkedPortable(v, v.WithoutPlainOptionals(among(variables)), pos, variables, o, notes)
}

// portableCondition is portable for what must be a boolean.
func portableCondition(b cel.Bool, pos diag.Pos, variables []vap.Variable, o *api.Options, notes *diag.List) (cel.Bool, *diag.Diagnostic) {
	out, why := checkedPortable(b.Value, b.WithoutPlainOptionals(among(variables)).Value, pos, variables, o, notes)
	return out.AsBool(), why
}

func checkedPortable(written, out cel.Value, pos diag.Pos, variables []vap.Variable, o *api.Options, notes *diag.List) (cel.Value, *diag.Diagnostic) {
	if changes := out.Changes(min(o.Release, lenientOptionals), among(variables)); len(changes) > 0 {
		d := diag.Warnf(pos, diag.ReleaseDependent, "%s means one thing before Kubernetes %s and another since; the webhook will judge this rule", changes[0].Call, changes[0].Since)
		return out, &d
	}
	if !cel.Equal(written, out) {
		noteRewritten(notes, pos, "orValue of a value that is not optional is that value; from Kubernetes 1.37 on it would be an error")
	}
	return out, nil
}

// among looks a variable up.
func among(variables []vap.Variable) func(name string) (cel.Value, bool) {
	return func(name string) (cel.Value, bool) {
		for _, v := range variables {
			if v.Name == name {
				return v.Expr, true
			}
		}
		return cel.Value{}, false
	}
}

func noteRewritten(notes *diag.List, pos diag.Pos, why string) {
	if notes != nil {
		*notes = append(*notes, diag.Notef(pos, diag.Rewritten, "this does not come out as written: %s", why))
	}
}
