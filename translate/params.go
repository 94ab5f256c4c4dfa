package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/native"
)

// Kind is the kind of object that carries the data of a ConfigMap.
func (p Params) Kind() (apiVersion, kind string) {
	if p == ParamsKvap {
		return "kvap.dev/v1alpha1", "Params"
	}
	return "v1", "ConfigMap"
}

// useParams takes an object as the rule's params, of which there is one.
func (l *lowering) useParams(name, namespace string) cel.Value {
	apiVersion, kind := l.opts.Params.Kind()
	use := &native.Params{Kind: kind, APIVersion: apiVersion, Name: name, Namespace: namespace}
	if l.params != nil && *l.params != *use {
		panic(l.refuse(diag.OutsideData, "a second ConfigMap, %s, cannot be read: a policy has one object of params", name))
	}
	if l.params == nil && l.opts.Params == ParamsConfigMap {
		l.note(diag.ConfigMapParams, "the ConfigMap %s becomes the params of the policy; keep a binding that uses a ConfigMap at all times, or use --params kvap", name)
	}
	l.params = use
	return cel.Ident("params")
}
