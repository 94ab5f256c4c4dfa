package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// configMap is the data and metadata of a ConfigMap, which becomes the params of
// the policy. That takes a name which is known when compiling.
func (l *lowering) configMap(e *policy.ContextEntry) operand {
	name, ok := l.template(l.parseTemplate(e.ConfigMap.Name.Value, e.ConfigMap.Name.Pos)).lit.(string)
	if !ok || name == "" {
		panic(l.refuse(diag.OutsideData, "the ConfigMap %s is outside the request: its name is a variable", e.Name))
	}
	namespace, ok := l.configMapNamespace(e)
	if !ok {
		l.tells = true
		return typeError("the Policy " + native.MemberName(l.policy) + " may read ConfigMaps of its own namespace only, and not " + namespace + "/" + name)
	}
	params := l.useParams(name, namespace)
	data := place{expr: params.Field("data"), typ: mapOf(stringType()), opt: params.Opt("data"), guards: []guard{{cond: params.Has("data"), shape: true}}, origin: fromConfiguration}
	return operand{form: hashForm, keys: []string{"data", "metadata"}, multi: []operand{operandAt(data), l.paramsMetadata(params)}}
}

func (l *lowering) paramsMetadata(params cel.Value) operand {
	t := l.opts.Schemas.Type(schema.GVK{Version: "v1", Kind: "ConfigMap"})
	if t == nil || t.Fields["metadata"] == nil {
		return valueOf(params.Field("metadata"), anyType())
	}
	return valueOf(params.Field("metadata"), t.Fields["metadata"].Type)
}

// configMapNamespace is where the ConfigMap is; empty for the namespace of the
// object. It is false where the policy may not read there.
func (l *lowering) configMapNamespace(e *policy.ContextEntry) (namespace string, ok bool) {
	j := l.template(l.parseTemplate(e.ConfigMap.Namespace.Value, e.ConfigMap.Namespace.Pos))
	if s, isText := j.lit.(string); isText && j.form == litForm {
		switch {
		case l.policy.Namespaced() && s == "":
			return l.policy.Namespace, true
		case l.policy.Namespaced():
			return s, s == l.policy.Namespace
		case s == "":
			return "default", true
		}
		return s, true
	}
	if l.target.Scope == native.Namespaced && l.isRequestNamespace(j) {
		return "", true
	}
	panic(l.refuse(diag.OutsideData, "the ConfigMap %s is outside the request: its namespace is a variable", e.Name))
}

// isRequestNamespace tells that a value is request.namespace.
func (l *lowering) isRequestNamespace(j operand) bool {
	return j.form == placeForm && cel.Equal(j.v.expr, cel.Ident("request").Field("namespace"))
}

// likeText is a text that has j in it, and so comes from where j does.
func (l *lowering) likeText(j operand, text cel.Value) operand {
	if isConfigured(j) {
		return configuredText(text)
	}
	return stringOf(text)
}
