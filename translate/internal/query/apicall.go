package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// apiCall is the answer to a call that the API server has at hand: the object's
// namespace.
func apiCall(l *read.Lowering, e *policy.ContextEntry) read.Operand {
	c := e.APICall
	if c.Service == nil && c.Method != "POST" && asksForNamespace(l, c) {
		return namespaceCall(l, c)
	}
	if l.Opts.Library {
		return objectCall(l, e)
	}
	panic(l.Refuse(diag.OutsideData, "the answer of the API call %s is outside the request", e.Name))
}

// asksForNamespace tells that a call is for the namespace of the object.
func asksForNamespace(l *read.Lowering, c *policy.APICallEntry) bool {
	t := ParseTemplate(c.URLPath.Value, c.URLPath.Pos)
	if len(t.Parts) != 2 || t.Parts[0].Text != "/api/v1/namespaces/" || t.Parts[1].Var == nil || l.Target.Scope != native.Namespaced {
		return false
	}
	return isRequestNamespace(Variable(l, t.Parts[1].Var))
}

// namespaceCall reads the namespace of the object. One that is stored has a phase;
// where only its labels are known, as in a test, the call is an error.
func namespaceCall(l *read.Lowering, c *policy.APICallEntry) read.Operand {
	ns := cel.Ident("namespaceObject")
	known := ns.Field("status").Has("phase")
	if c.Default != nil && c.Default.Kind != policy.Null {
		return read.Choice(known, answer(l, c.JMESPath, namespaceValue(ns)), Node(l, c.Default))
	}
	return answer(l, c.JMESPath, namespaceValue(ns)).Demanding(read.DemandToLoad("namespace_is_not_known", known))
}

// someKeys is the hint of a hash of which only some keys are known.
const someKeys = "partial"

// namespaceValue is what policies can see of a namespace.
func namespaceValue(ns cel.Value) read.Operand {
	meta := ns.Field("metadata")
	texts := func(name string) read.Operand {
		return read.OperandAt(read.OptionalField(meta, name, read.MapOf(read.StringType())).From(read.FromConfiguration))
	}
	metadata := read.Operand{Form: read.HashForm, Hint: someKeys, Keys: []string{"name", "labels", "annotations"},
		Multi: []read.Operand{read.ConfiguredText(meta.Field("name")), texts("labels"), texts("annotations")}}
	return read.Operand{Form: read.HashForm, Hint: someKeys, Keys: []string{"apiVersion", "kind", "metadata"},
		Multi: []read.Operand{read.LitOf("v1"), read.LitOf("Namespace"), metadata}}
}

// answer is what the call's jmesPath makes of an answer. A key that is missing
// there makes the entry an error, which nothing takes for null.
func answer(l *read.Lowering, jmesPath *policy.Text, j read.Operand) read.Operand {
	if jmesPath == nil {
		return j
	}
	return hardened(eval(l, path(l, *jmesPath), &j))
}

func hardened(j read.Operand) read.Operand {
	switch j.Form {
	case read.ErrorForm:
		j.Hard = true
	case read.PlaceForm:
		if j.V.MayMiss() {
			return read.Choice(j.V.KeysFound(), j.Softly(), read.TypeError("key"))
		}
	case read.ChoiceForm:
		return j.With(hardened(*j.Then), hardened(*j.Els))
	}
	return j
}
