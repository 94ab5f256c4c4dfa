package celrule

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
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
