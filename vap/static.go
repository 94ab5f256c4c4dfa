package vap

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cel"
)

// writeParams writes the params of a static policy into its expressions, and those of a body
// that it has. It does not where they are not at hand, or where bindings have params of their
// own.
func (e *emitter) writeParams(body []Expression) {
	d := e.draft
	if !e.opts.Static || d.ParamKind == nil {
		return
	}
	object, why := e.staticParams()
	if object == nil {
		e.fail(staticParams(e.pos(), why))
		return
	}
	data := cel.Data(paramsData(object))
	for i := range d.Conditions { // which know no variables
		d.Conditions[i].Expr = d.Conditions[i].Expr.Substitute("params", data).AsBool()
	}
	d.Unguard()
	name := "params"
	for slices.ContainsFunc(d.Variables, func(v Variable) bool { return v.Name == name }) {
		name += "_"
	}
	e.readParams(cel.Ident("variables").Field(name), body)
	d.Variables = slices.Insert(d.Variables, 0, Variable{Pos: e.pos(), Name: name, Expr: data})
	d.ParamKind = nil
	for i := range d.Bindings {
		d.Bindings[i].Param = nil
	}
}

// readParams makes the expressions read the params where they are now. A variable it
// is, and no literal in each place: the API server works out what is constant when it
// compiles, and refuses what would be an error, even where nothing evaluates it.
func (e *emitter) readParams(from cel.Value, body []Expression) {
	d := e.draft
	read := func(v cel.Value) cel.Value { return v.Substitute("params", from) }
	for i := range body {
		body[i].Expr = read(body[i].Expr)
	}
	for i := range d.Variables {
		d.Variables[i].Expr = read(d.Variables[i].Expr)
	}
	for i := range d.Validations {
		v := &d.Validations[i]
		v.Expr = read(v.Expr.Value).AsBool()
		if v.MessageExpression != nil {
			text := read(*v.MessageExpression)
			v.MessageExpression = &text
		}
	}
	for i := range d.Audits {
		d.Audits[i].Value = read(d.Audits[i].Value)
	}
}

// paramsData is what expressions may read of params, without what a server keeps of them.
func paramsData(object *unstructured.Unstructured) map[string]any {
	out := maps.Clone(object.Object)
	metadata := map[string]any{}
	all, _, _ := unstructured.NestedMap(object.Object, "metadata")
	for _, key := range []string{"name", "namespace", "labels", "annotations"} {
		if value, ok := all[key]; ok {
			metadata[key] = value
		}
	}
	out["metadata"] = metadata
	return out
}

// staticParams is the object that all bindings name, or why there is none.
func (e *emitter) staticParams() (object *unstructured.Unstructured, why string) {
	d := e.draft
	for _, b := range d.Bindings {
		if b.Param == nil || b.Param.Name == "" || b.Param.Namespace == "" {
			return nil, "which params they are depends on the request"
		}
		i := slices.IndexFunc(e.opts.Params, func(u *unstructured.Unstructured) bool {
			return u.GetAPIVersion() == d.ParamKind.APIVersion && u.GetKind() == d.ParamKind.Kind && u.GetName() == b.Param.Name && u.GetNamespace() == b.Param.Namespace
		})
		if i < 0 {
			return nil, d.ParamKind.Kind + " " + b.Param.Namespace + "/" + b.Param.Name + " is not among the files of --param"
		}
		if object != nil && object != e.opts.Params[i] {
			return nil, "its bindings have different params"
		}
		object = e.opts.Params[i]
	}
	if object == nil {
		return nil, "no binding names them"
	}
	return object, ""
}
