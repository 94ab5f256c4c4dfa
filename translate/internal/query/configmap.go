package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// configMap is the data and metadata of a ConfigMap, which becomes the params of
// the policy. That takes a name which is known when compiling.
func configMap(l *read.Lowering, e *policy.ContextEntry) read.Operand {
	name, ok := constantText(l, e.ConfigMap.Name)
	if l.Opts.Library && !isParams(l, e) {
		return configMapObject(l, e)
	}
	if !ok || name == "" {
		panic(l.Refuse(diag.OutsideData, "the ConfigMap %s is outside the request: its name is a variable", e.Name))
	}
	namespace, ok := configMapNamespace(l, e)
	if !ok {
		l.Tells = true
		return read.TypeError("the Policy " + native.MemberName(l.Policy) + " may read ConfigMaps of its own namespace only, and not " + namespace + "/" + name)
	}
	params := read.UseParams(l, name, namespace)
	return configMapValue(l, params)
}

// configMapValue is what policies can see of a ConfigMap.
func configMapValue(l *read.Lowering, object cel.Value) read.Operand {
	data := read.OptionalField(object, "data", read.MapOf(read.StringType())).From(read.FromConfiguration)
	data.Guards[0].Shape = true // it is null, and no error, where a ConfigMap has none
	return read.Operand{Form: read.HashForm, Keys: []string{"data", "metadata"}, Multi: []read.Operand{read.OperandAt(data), paramsMetadata(l, object)}}
}

func paramsMetadata(l *read.Lowering, params cel.Value) read.Operand {
	t := l.Opts.Schemas.Type(schema.GVK{Version: "v1", Kind: "ConfigMap"})
	if t == nil || t.Fields["metadata"] == nil {
		return read.ValueOf(params.Field("metadata"), read.AnyType())
	}
	return read.ValueOf(params.Field("metadata"), t.Fields["metadata"].Type)
}

// configMapNamespace is where the ConfigMap is; empty for the namespace of the
// object. It is false where the policy may not read there.
func configMapNamespace(l *read.Lowering, e *policy.ContextEntry) (namespace string, ok bool) {
	j := Template(l, ParseTemplate(e.ConfigMap.Namespace.Value, e.ConfigMap.Namespace.Pos))
	if s, isText := j.Lit.(string); isText && j.Form == read.LitForm && j.Anyway().None() {
		switch {
		case l.Policy.Namespaced() && s == "":
			return l.Policy.Namespace, true
		case l.Policy.Namespaced():
			return s, s == l.Policy.Namespace
		case s == "":
			return "default", true
		}
		return s, true
	}
	if l.Target.Scope == native.Namespaced && isRequestNamespace(j) {
		return "", true
	}
	panic(l.Refuse(diag.OutsideData, "the ConfigMap %s is outside the request: its namespace is a variable", e.Name))
}

// isRequestNamespace tells that a value is request.namespace.
func isRequestNamespace(j read.Operand) bool {
	return j.Form == read.PlaceForm && cel.Equal(j.V.Expr, cel.Ident("request").Field("namespace"))
}

// likeText is a text that has j in it, and so comes from where j does.
func likeText(j read.Operand, text cel.Value) read.Operand {
	if read.IsConfigured(j) {
		return read.ConfiguredText(text)
	}
	return read.StringOf(text)
}
