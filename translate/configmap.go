package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// configured is the format of a text that comes from the cluster's configuration
// and not from the request: unlike the request's, it may be a pattern, or a list
// in the form of JSON.
const configured = "configured"

func configuredText() *schema.Type { return &schema.Type{Kind: schema.String, Format: configured} }

// isConfigured tells that a value is a text of the cluster's configuration.
func isConfigured(j jval) bool {
	t := j.typ()
	return j.form == valForm && kindOf(t) == schema.String && t.Format == configured
}

// configMap is the data and metadata of a ConfigMap, which becomes the params of
// the policy. That takes a name which is known when compiling.
func (l *lowering) configMap(e *policy.ContextEntry) jval {
	name, ok := l.template(l.parseTemplate(e.ConfigMap.Name.Value, e.ConfigMap.Name.Pos)).lit.(string)
	if !ok || name == "" {
		panic(l.refuse(diag.OutsideData, "the ConfigMap %s is outside the request: its name is a variable", e.Name))
	}
	namespace, ok := l.configMapNamespace(e)
	if !ok {
		return typeError("configMap") // not the policy's own
	}
	params := l.useParams(name, namespace)
	data := val{expr: params.Field("data"), typ: mapOf(configuredText()), opt: params.Opt("data"), guards: []guard{{cond: params.Has("data"), shape: true}}}
	return jval{form: hashForm, keys: []string{"data", "metadata"}, multi: []jval{valOf(data), l.paramsMetadata(params)}}
}

func (l *lowering) paramsMetadata(params cel.Value) jval {
	t := l.opts.Schemas.Type(schema.GVK{Version: "v1", Kind: "ConfigMap"})
	if t == nil || t.Fields["metadata"] == nil {
		return valOf(at(params.Field("metadata"), anyType()))
	}
	return valOf(at(params.Field("metadata"), t.Fields["metadata"].Type))
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
	if l.target.scope == namespaced && l.isRequestNamespace(j) {
		return "", true
	}
	panic(l.refuse(diag.OutsideData, "the ConfigMap %s is outside the request: its namespace is a variable", e.Name))
}

// isRequestNamespace tells that a value is request.namespace.
func (l *lowering) isRequestNamespace(j jval) bool {
	return j.form == valForm && cel.Equal(j.v.expr, cel.Ident("request").Field("namespace"))
}

// likeText is a text that has j in it, and so comes from where j does.
func (l *lowering) likeText(j jval, text cel.Value) jval {
	if isConfigured(j) {
		return valOf(at(text, configuredText()))
	}
	return stringOf(text)
}
