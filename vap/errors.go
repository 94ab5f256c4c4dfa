package vap

import "github.com/kvap/kvap/diag"

func expressionTooLong(pos diag.Pos, n int) diag.Diagnostic {
	return diag.Errorf(pos, diag.ExpressionTooLong,
		"the expression would have %d characters, and the API server takes %d; split the rule", n, MaxExpressionLength)
}

func variableTwice(pos diag.Pos, name string) diag.Diagnostic {
	return diag.Errorf(pos, diag.InvalidObject, "variable %q has two meanings in one policy; convert with --pack rule", name)
}

func staticParams(pos diag.Pos, why string) diag.Diagnostic {
	return diag.Errorf(pos, diag.StaticParams, "a static policy has no params, and these cannot be written into it: %s; give them with --param FILE, leave --static out, or put the values into the policy", why)
}

func tooManyAudits(pos diag.Pos, n int) diag.Diagnostic {
	return diag.Errorf(pos, diag.InvalidObject, "the policy would have %d audit annotations, and the API server takes %d; split the rule", n, MaxAuditAnnotations)
}

func auditTooLong(pos diag.Pos, n int) diag.Diagnostic {
	return diag.Errorf(pos, diag.ExpressionTooLong,
		"the audit annotation would have %d bytes, and the API server takes %d; shorten it", n, MaxAuditExpression)
}
