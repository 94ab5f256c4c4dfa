package check

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/diag"
)

// The words of the lints; errors.go has the others.

func warn(code diag.Code, format string, args ...any) diag.Diagnostic {
	return diag.Warnf(diag.Pos{}, code, format, args...)
}

func note(code diag.Code, format string, args ...any) diag.Diagnostic {
	return diag.Notef(diag.Pos{}, code, format, args...)
}

func unbound(name string, elsewhere bool) diag.Diagnostic {
	const format = "no binding names the policy %s, so nothing enforces it; write a binding with policyName: %s"
	if elsewhere {
		return note(diag.PolicyWithoutBinding, format, name, name)
	}
	return warn(diag.PolicyWithoutBinding, format, name, name)
}

func noPolicy(name string, elsewhere bool) diag.Diagnostic {
	const format = "there is no policy %s among the input, and a binding without its policy does nothing; correct policyName, or check both together"
	if elsewhere {
		return note(diag.BindingWithoutPolicy, format, name)
	}
	return warn(diag.BindingWithoutPolicy, format, name)
}

func denyWithWarn() diag.Diagnostic {
	return diag.Errorf(diag.Pos{}, diag.DenyWithWarn, "the API server refuses a binding that denies and warns: who is denied is told why already; remove one of the two")
}

func noNotFound() diag.Diagnostic {
	return diag.Errorf(diag.Pos{}, diag.ParamNotFound, "the API server refuses a paramRef without parameterNotFoundAction; say Deny or Allow")
}

func noParamRef(kind string) diag.Diagnostic {
	return warn(diag.ParamNotFound, "the policy has params of kind %s, and this binding names none: params is null, and reading it is an error; add a paramRef", kind)
}

func uselessParamRef(policy string) diag.Diagnostic {
	return warn(diag.ParamNotFound, "the policy %s has no paramKind, so this paramRef does nothing; add a paramKind, or remove the paramRef", policy)
}

func notFoundAllows() diag.Diagnostic {
	return warn(diag.ParamNotFound, "while there are no params, this binding enforces nothing and says so nowhere; say Deny, or make sure that the params are there first")
}

func notFoundDenies(actions []admissionregistrationv1.ValidationAction) diag.Diagnostic {
	var words []string
	for _, a := range actions {
		words = append(words, string(a))
	}
	return warn(diag.ParamNotFound, "while there are no params, this binding denies every request although its actions are only %s: that is an error of configuration, which actions do not soften; say Allow", strings.Join(words, " and "))
}

func builtinParams(kind string, bindings []bound) diag.Diagnostic {
	after := "params are then missing or stale until the API server restarts"
	if denyMissing(bindings) {
		after = "params are then missing until the API server restarts, and parameterNotFoundAction: Deny blocks every request"
	}
	return warn(diag.BuiltinParamKind, "params of the built-in kind %s break when the last binding with that kind goes away for a second (kubernetes#130887): %s; "+
		"use a kind of your own, for instance with --params kvap, or keep such a binding", kind, after)
}

func deadlock(what string) diag.Diagnostic {
	return warn(diag.BootstrapDeadlock, "the policy denies when it errs, and this rule covers %s: a violation or an error keeps the control plane from writing what it lives on; "+
		"name the resources that the policy is meant for, or leave system users out with a match condition on request.userInfo", what)
}

func selectorOnClusterScoped(kinds []string) diag.Diagnostic {
	return warn(diag.NamespaceSelectorIgnored, "objects without a namespace match every namespaceSelector, and the rules cover %s; ask for the scope Namespaced, or write a policy for these", firstWords(kinds))
}

func eitherObject() diag.Diagnostic {
	return note(diag.ObjectSelectorOld, "on an update, objectSelector matches when the old or the new object has the labels: a change that removes them is judged too; "+
		"where only the new object counts, ask for its labels in a match condition")
}

func absentField(path string) diag.Diagnostic {
	return warn(diag.UnguardedRequestField, "%s is not there where it is empty, and reading it is an error then; ask with has(%s) first", path, path)
}

func manyChecks(n int) diag.Diagnostic {
	return warn(diag.TooManyChecks, "the expression asks the authorizer %d times at 350,000 each, and the API server stops at 1,000,000; ask at most twice in one expression", n)
}

func messageCanFail(path string) diag.Diagnostic {
	return note(diag.MessageExpressionFails, "%s is not in every object, and where it is missing the message is another one: the constant message, or the expression itself; read it as optional, with orValue()", path)
}

func alwaysTrue() diag.Diagnostic {
	return warn(diag.Unreachable, "this is true for each request that the policy is asked about, so it denies nothing; remove it, or correct the operations")
}

func neverMatches() diag.Diagnostic {
	return warn(diag.Unreachable, "this condition is false for each request that the policy is asked about, so the policy judges nothing; correct it, or the operations")
}

func sameAs(first string) diag.Diagnostic {
	return warn(diag.Unreachable, "this is the same as %s, which denies first; remove one of them", first)
}

func goneObject(apiVersion, kind string) diag.Diagnostic {
	return diag.Errorf(diag.Pos{}, diag.APIGone, "the release does not serve %s of %s; use a version that it serves", kind, apiVersion)
}

func goneGroup(group string, serves []string) diag.Diagnostic {
	return warn(diag.APIGone, "the release serves no group %q, so the rule matches nothing in it%s", group, inGroups(serves))
}

func goneResource(name string, groups []string, meant string, serves []string) diag.Diagnostic {
	text := isMeant(meant)
	if meant == "" {
		text = inGroups(serves)
	}
	return warn(diag.APIGone, "no resource of the group %q is called %s, so the rule matches none%s; resources are named in the plural, as in kubectl api-resources", fmt.Sprint(strings.Join(groups, ", ")), name, text)
}

// inGroups says where resources are that a rule looks for elsewhere.
func inGroups(serves []string) string {
	if len(serves) == 0 {
		return ""
	}
	return "; " + strings.Join(serves, ", ")
}

func goneRule(groups, versions, resources []string) diag.Diagnostic {
	return warn(diag.APIGone, "the release serves no %s in %s of the group %q, so the rule matches nothing; name a version that it serves",
		strings.Join(resources, ", "), strings.Join(versions, ", "), fmt.Sprint(strings.Join(groups, ", ")))
}
