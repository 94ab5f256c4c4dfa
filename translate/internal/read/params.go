package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
)

// UseParams takes an object as the rule's params, of which there is one.
func UseParams(l *Lowering, name, namespace string) cel.Value {
	apiVersion, kind := l.Opts.Params.Kind()
	use := &native.Params{Kind: kind, APIVersion: apiVersion, Name: name, Namespace: namespace}
	if l.Params != nil && *l.Params != *use {
		panic(l.Refuse(diag.OutsideData, "a second ConfigMap, %s, cannot be read: a policy has one object of params", name))
	}
	if l.Params == nil && l.Opts.Params == api.ParamsConfigMap {
		l.Note(diag.ConfigMapParams, "the ConfigMap %s becomes the params of the policy; keep a binding that uses a ConfigMap at all times, or use --params kvap", name)
	}
	l.Params = use
	return cel.Ident("params")
}
