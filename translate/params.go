package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// A paramUse is the params object that a unit reads. An empty namespace is that of
// the object under review.
type paramUse struct {
	kind, apiVersion, name, namespace string
}

func (p *paramUse) key() string {
	if p == nil {
		return ""
	}
	return p.apiVersion + "/" + p.kind + "/" + p.namespace + "/" + p.name
}

// paramsKind is what carries the data of a ConfigMap.
func (l *lowering) paramsKind() (apiVersion, kind string) {
	if l.opts.Params == ParamsKvap {
		return "kvap.dev/v1alpha1", "Params"
	}
	return "v1", "ConfigMap"
}

// useParams takes an object as the rule's params, of which there is one.
func (l *lowering) useParams(name, namespace string) cel.Value {
	apiVersion, kind := l.paramsKind()
	use := &paramUse{kind: kind, apiVersion: apiVersion, name: name, namespace: namespace}
	if l.params != nil && *l.params != *use {
		panic(l.refuse(diag.OutsideData, "a second ConfigMap, %s, cannot be read: a policy has one object of params", name))
	}
	if l.params == nil && l.opts.Params == ParamsConfigMap {
		l.note(diag.ConfigMapParams, "the ConfigMap %s becomes the params of the policy; keep a binding that uses a ConfigMap at all times, or use --params kvap", name)
	}
	l.params = use
	return cel.Ident("params")
}

// add gives a draft the kind of its params.
func (p *paramUse) add(d *vap.Draft) {
	if p != nil {
		d.ParamKind = &vap.ParamKind{APIVersion: p.apiVersion, Kind: p.kind}
	}
}

// refer gives a binding its params. Without them a rule that reads them is an
// error, which denies only under Enforce and Fail; the API server would refuse
// requests whatever the binding's actions.
func (p *paramUse) refer(b *vap.Binding, u unit, a policy.Action) {
	if p == nil {
		return
	}
	b.Param = &vap.ParamRef{Name: p.name, Namespace: p.namespace, NotFound: "Deny"}
	if a != policy.Enforce || u.policy.FailurePolicy == policy.Ignore {
		b.Param.NotFound = "Allow"
	}
}
