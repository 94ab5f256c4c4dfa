package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
)

// apiCall is the answer to a call that the API server has at hand: the object's
// namespace.
func (l *lowering) apiCall(e *policy.ContextEntry) operand {
	c := e.APICall
	if c.Service == nil && c.Method != "POST" && l.asksForNamespace(c) {
		return l.namespaceCall(c)
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

// unknownKey refuses a key of something of which only some are known.
func (l *lowering) unknownKey(j operand, name string) operand {
	if j.hint == someKeys {
		panic(l.refuse(diag.OutsideData, "the field %s of an answer of the API server cannot be read", name))
	}
	return operand{form: errorForm, hint: name}
}
