package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// apiCall is the answer to a call that the API server has at hand: the object's
// namespace, or whether its user may do something.
func (l *lowering) apiCall(e *policy.ContextEntry) operand {
	c := e.APICall
	switch {
	case c.Service != nil:
	case c.Method != "POST" && l.asksForNamespace(c):
		return l.namespaceCall(c)
	case c.Method == "POST" && l.asksForAccess(c):
		return l.accessCall(c)
	}
	panic(l.refuse(diag.OutsideData, "the answer of the API call %s is outside the request", e.Name))
}

// asksForNamespace tells that a call is for the namespace of the object.
func (l *lowering) asksForNamespace(c *policy.APICallEntry) bool {
	t := l.parseTemplate(c.URLPath.Value, c.URLPath.Pos)
	if len(t.Parts) != 2 || t.Parts[0].Text != "/api/v1/namespaces/" || t.Parts[1].Var == nil || l.target.Scope != native.Namespaced {
		return false
	}
	return l.isRequestNamespace(l.variable(t.Parts[1].Var))
}

// namespaceCall reads the namespace of the object. One that is stored has a phase;
// where only its labels are known, as in a test, the call is an error.
func (l *lowering) namespaceCall(c *policy.APICallEntry) operand {
	ns := cel.Ident("namespaceObject")
	known := ns.Field("status").Has("phase")
	if c.Default != nil && c.Default.Kind != policy.Null {
		return choice(known, l.answer(c, namespaceValue(ns)), l.node(c.Default))
	}
	l.load("namespace_is_not_known", known)
	return l.answer(c, namespaceValue(ns))
}

// someKeys is the hint of a hash of which only some keys are known.
const someKeys = "partial"

// namespaceValue is what policies can see of a namespace.
func namespaceValue(ns cel.Value) operand {
	meta := ns.Field("metadata")
	texts := func(name string) operand {
		return operandAt(optionalField(meta, name, mapOf(stringType())).from(fromConfiguration))
	}
	metadata := operand{form: hashForm, hint: someKeys, keys: []string{"name", "labels", "annotations"},
		multi: []operand{configuredText(meta.Field("name")), texts("labels"), texts("annotations")}}
	return operand{form: hashForm, hint: someKeys, keys: []string{"apiVersion", "kind", "metadata"},
		multi: []operand{litOf("v1"), litOf("Namespace"), metadata}}
}

// answer is what the call's jmesPath makes of an answer. A key that is missing
// there makes the entry an error, which nothing takes for null.
func (l *lowering) answer(c *policy.APICallEntry, j operand) operand {
	if c.JMESPath == nil {
		return j
	}
	return hardened(l.eval(l.path(*c.JMESPath), &j))
}

func hardened(j operand) operand {
	switch j.form {
	case errorForm:
		j.hard = true
	case placeForm:
		if j.v.mayMiss() {
			return choice(j.v.keysFound(), j.softly(), typeError("key"))
		}
	case choiceForm:
		return j.with(hardened(*j.then), hardened(*j.els))
	}
	return j
}

// asksForAccess tells that a call is a SubjectAccessReview.
func (l *lowering) asksForAccess(c *policy.APICallEntry) bool {
	path, ok := l.parseTemplate(c.URLPath.Value, c.URLPath.Pos).Constant()
	return ok && path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
}

// accessCall asks whether the user of the request may do something. It is native
// where the review is about that user with their groups, and only its verdict is
// read.
func (l *lowering) accessCall(c *policy.APICallEntry) operand {
	refusal := l.refuse(diag.OutsideData, "this SubjectAccessReview has no native form")
	var spec *policy.Node
	for _, d := range c.Data {
		if d.Key == "spec" {
			spec = d.Value
		}
	}
	if spec == nil || c.Default != nil || !l.isRequestUser(spec) {
		panic(refusal)
	}
	check, ok := l.authorizerCheck(spec.Get("resourceAttributes"))
	if !ok {
		panic(refusal)
	}
	allowed := boolOf(check.Call(cel.FuncAllowed).AsBool())
	status := operand{form: hashForm, hint: someKeys, keys: []string{"allowed"}, multi: []operand{allowed}}
	return l.answer(c, operand{form: hashForm, hint: someKeys, keys: []string{"status"}, multi: []operand{status}})
}

// isRequestUser tells that a review's spec has nothing but the user of the
// request, their groups and the attributes of a resource.
func (l *lowering) isRequestUser(spec *policy.Node) bool {
	user := cel.Ident("request").Field("userInfo")
	same := func(key string, v cel.Value) bool {
		n := spec.Get(key)
		if n == nil {
			return false
		}
		j := l.node(n)
		return j.form == placeForm && cel.Equal(j.v.expr, v)
	}
	for _, f := range spec.Fields {
		if !slices.Contains([]string{"user", "groups", "resourceAttributes"}, f.Key) {
			return false
		}
	}
	return same("user", user.Field("username")) && same("groups", user.Field("groups"))
}

func (l *lowering) authorizerCheck(attributes *policy.Node) (cel.Value, bool) {
	if attributes == nil || attributes.Kind != policy.Map {
		return cel.Value{}, false
	}
	texts := map[string]cel.Value{}
	for _, f := range attributes.Fields {
		j := l.node(f.Value)
		v, ok := l.expr(j)
		if !ok || kindOf(j.typ()) != schema.String || l.mayBeMissing(j) ||
			!slices.Contains([]string{"group", "resource", "subresource", "namespace", "name", "verb"}, f.Key) {
			return cel.Value{}, false
		}
		texts[f.Key] = v
	}
	text := func(key string) cel.Value {
		if v, ok := texts[key]; ok {
			return v
		}
		return cel.String("")
	}
	check := cel.Ident("authorizer").Call(cel.FuncGroup, text("group")).Call(cel.FuncResource, text("resource"))
	for _, key := range []cel.Function{cel.FuncSubresource, cel.FuncNamespace, cel.FuncName} {
		if v, ok := texts[string(key)]; ok {
			check = check.Call(key, v)
		}
	}
	return check.Call(cel.FuncCheck, text("verb")), texts["verb"] != (cel.Value{}) && texts["resource"] != (cel.Value{})
}

// unknownKey refuses a key of something of which only some are known.
func (l *lowering) unknownKey(j operand, name string) operand {
	if j.hint == someKeys {
		panic(l.refuse(diag.OutsideData, "the field %s of an answer of the API server cannot be read", name))
	}
	return operand{form: errorForm, hint: name}
}
