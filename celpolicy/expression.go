package celpolicy

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// width is how long the lines of expressions are.
const width = 100

// paramsName is the variable for what was the params of a native policy, unless it has one of
// that name.
const paramsName = "params"

// expressions are those of one object, on their way from the native form. What differs:
//
//	native                             here
//	object == null                     request.operation == 'DELETE'
//	oldObject == null                  !has(oldObject.metadata)
//	params.data.a                      variables.params.data.a
//	object.?a.orValue(true)            object.?a.orValue(true) == true
//	object.?a.orValue(object.b)        object.?a.or(optional.of(object.b)).value()
//
// An object that is not there is an empty map, in match conditions that Kyverno hands to the
// API server it is null: what is written here means the same in both.
type expressions struct {
	policy  *policy.Policy
	draft   *vap.Draft
	binding vap.Binding
	params  cel.Value // zero where there are none
	named   string    // the variable for them
	// untyped are variables of which nobody knows the type: those that end in orValue.
	untyped map[string]bool
	why     *diag.Diagnostic // the first thing that has no form
}

func newExpressions(p *policy.Policy, d *vap.Draft, b vap.Binding) *expressions {
	e := &expressions{policy: p, draft: d, binding: b, named: paramsName, untyped: map[string]bool{}}
	if b.Param != nil {
		e.params = e.paramsOf(*b.Param)
	}
	return e
}

// refuse leaves the object without a form.
func (e *expressions) refuse(what string) {
	if e.why == nil {
		pos := e.policy.Pos
		if len(e.draft.Members) > 0 {
			pos = e.draft.Members[0].Pos
		}
		d := diag.Warnf(pos, diag.NoKyvernoForm, "Kyverno's kinds in CEL have no form for %s; the rule stays as it is", what)
		e.why = &d
	}
}

// paramsOf is what reads the params.
func (e *expressions) paramsOf(ref vap.ParamRef) cel.Value {
	kind := e.draft.ParamKind
	if kind == nil || kind.APIVersion != "v1" || kind.Kind != "ConfigMap" || ref.Selector != nil {
		e.refuse("params that are not one ConfigMap")
		return cel.Null()
	}
	if ref.NotFound == "Allow" && e.draft.Authored {
		e.refuse("params that need not be there")
	}
	args := []cel.Value{cel.String("v1"), cel.String("configmaps")}
	switch {
	case !e.policy.Namespaced() && ref.Namespace == "":
		args = append(args, cel.Ident("request").Field("namespace"))
	case !e.policy.Namespaced():
		args = append(args, cel.String(ref.Namespace))
	case ref.Namespace != "" && ref.Namespace != e.policy.Namespace:
		e.refuse("a policy of a namespace that reads a ConfigMap of another")
	}
	// of any type, for what is not there is null
	return cel.Func(cel.FuncDyn, cel.Ident("resource").Call("Get", append(args, cel.String(ref.Name))...))
}

// text is an expression as Kyverno's kinds have it. Match conditions know no variables.
func (e *expressions) text(native string, variables bool) string {
	v := e.value(native, variables)
	if text := v.Written(); text != "" {
		return text
	}
	return v.Text(width)
}

func (e *expressions) value(native string, variables bool) cel.Value {
	v := e.parsed(native)
	if v.Count("authorizer") > 0 {
		e.refuse("a question to the authorizer, which Kyverno does not have")
	}
	if v.Count("params") > 0 {
		params := e.params
		if variables {
			params = cel.Ident("variables").Field(e.named)
		}
		v = v.Substitute("params", params)
	}
	v = rewrittenBy(v, askedOnce)
	v = e.namespaced(e.sure(present(v)))
	if e.policy.Namespaced() { // there Kyverno takes nothing that is called http
		v = v.Unbound("http")
	}
	if plain := v.WithoutDyn("object", "oldObject"); !e.draft.Authored && !cel.Equal(plain, v) {
		return plain // no object has a type here
	}
	return v
}

func (e *expressions) parsed(text string) cel.Value {
	v, err := cel.Parse(text)
	if err != nil {
		e.refuse("an expression that cannot be read")
		return cel.Null()
	}
	return v
}

// askedOnce is v with what the library is asked for an element of a list asked once.
func askedOnce(v cel.Value) cel.Value {
	return v.Once(func(w cel.Value) (hint string, ok bool) {
		switch name, args := w.Called(); {
		case len(args) == 0:
		case name == "GetMetadata" && cel.Equal(args[0], cel.Ident("image")):
			return "metadata", true
		case (name == "Get" || name == "List") && cel.Equal(args[0], cel.Ident("resource")):
			return "found", true
		}
		return "", false
	})
}

// present asks in Kyverno's way whether there is an object, or an old one.
func present(v cel.Value) cel.Value {
	object, old := cel.Ident("object"), cel.Ident("oldObject")
	deletes := cel.Ident("request").Field("operation")
	return rewritten(v, func(w cel.Value) cel.Value {
		for _, question := range []struct{ asked, instead cel.Bool }{
			{object.Eq(cel.Null()), deletes.Eq(cel.String("DELETE"))},
			{object.Ne(cel.Null()), deletes.Ne(cel.String("DELETE"))},
			{old.Eq(cel.Null()), cel.Not(old.Has("metadata"))},
			{old.Ne(cel.Null()), old.Has("metadata")},
			{cel.Null().Eq(object), deletes.Eq(cel.String("DELETE"))},
			{cel.Null().Ne(object), deletes.Ne(cel.String("DELETE"))},
			{cel.Null().Eq(old), cel.Not(old.Has("metadata"))},
			{cel.Null().Ne(old), old.Has("metadata")},
		} {
			if cel.Equal(w, question.asked.Value) {
				return question.instead.Value
			}
		}
		return w
	})
}

// namespaced asks for the namespace in a way in which a Namespace is in none: to Kyverno it is in
// itself. What does not ask first is an error natively.
func (e *expressions) namespaced(v cel.Value) cel.Value {
	namespace := cel.Ident("namespaceObject")
	if v.Count("namespaceObject") == 0 || !slices.ContainsFunc(e.draft.Constraints.Rules, vap.ResourceRule.MatchesNamespaces) {
		return v
	}
	resource := cel.Ident("request").Field("resource")
	none := cel.Or(namespace.Eq(cel.Null()), cel.And(resource.Field("group").Eq(cel.String("")), resource.Field("resource").Eq(cel.String("namespaces"))))
	out := rewritten(v, func(w cel.Value) cel.Value {
		switch {
		case cel.Equal(w, namespace.Eq(cel.Null()).Value):
			return none.Value
		case cel.Equal(w, namespace.Ne(cel.Null()).Value):
			return cel.Not(none).Value
		}
		return w
	})
	if cel.Equal(out, v) {
		e.refuse("the namespace of a Namespace, which to Kyverno is the Namespace itself")
	}
	return out
}

// sure has what is after orValue computed only where it is needed: Kyverno does so always, and
// an error in it is one of the whole.
func (e *expressions) sure(v cel.Value) cel.Value {
	return rewritten(v, func(w cel.Value) cel.Value {
		name, args := w.Called()
		if name != string(cel.FuncOrValue) || len(args) != 2 || isSure(args[1]) {
			return w
		}
		if len(w.Changes(anyValue, func(string) (cel.Value, bool) { return cel.Value{}, false })) > 0 {
			e.refuse("an orValue of what may be no optional, with something that may be missing")
		}
		return args[0].Call(cel.FuncOr, cel.Func(cel.FuncOptionalOf, args[1])).Call(cel.FuncValue)
	})
}

// anyValue is the last release in which orValue can be asked of any value.
const anyValue cel.Release = 36

// isSure tells that computing v is no error.
func isSure(v cel.Value) bool {
	return cel.Equal(v, cel.Ident("object")) || cel.Equal(v, cel.Ident("oldObject")) || v.IsTotal(cel.Surroundings{})
}

// rewritten is v with what f puts in the place of its parts, and as it was written where f changes
// nothing.
func rewritten(v cel.Value, f func(cel.Value) cel.Value) cel.Value {
	return rewrittenBy(v, func(v cel.Value) cel.Value { return v.Rewrite(f) })
}

func rewrittenBy(v cel.Value, f func(cel.Value) cel.Value) cel.Value {
	if out := f(v); !cel.Equal(out, v) {
		return out
	}
	return v
}

// boolean is a condition. One of which Kyverno does not know the type is compared with true.
func (e *expressions) boolean(native string, variables bool) string {
	text := e.text(native, variables)
	if !e.isUntyped(text) {
		return text
	}
	v, _ := cel.Parse(text)
	return v.Eq(cel.Lit(true).Value).Text(width)
}

// message is what a violation says. It is evaluated of violations alone, so that it need not ask
// for one as a native one does.
func (e *expressions) message(native string, holds string) string {
	c, x, y, ok := e.parsed(native).Choice()
	if ok && cel.Equal(x, cel.String("")) && cel.Equal(c.Value, e.parsed(holds)) {
		return e.string(y.Text(width))
	}
	return e.string(native)
}

// string is a text. One of which Kyverno does not know the type is made a string.
func (e *expressions) string(native string) string {
	text := e.text(native, true)
	if !e.isUntyped(text) {
		return text
	}
	v, _ := cel.Parse(text)
	return cel.Func("string", v).Text(width)
}

// isUntyped tells that Kyverno does not know the type of an expression: orValue has none there.
func (e *expressions) isUntyped(text string) bool {
	v, err := cel.Parse(text)
	return err == nil && e.endsUntyped(v)
}

func (e *expressions) endsUntyped(v cel.Value) bool {
	if name, _ := v.Called(); name == string(cel.FuncOrValue) {
		return true
	}
	if of, name, ok := v.Selected(); ok {
		return cel.Equal(of, cel.Ident("variables")) && e.untyped[name]
	}
	_, x, y, ok := v.Choice()
	return ok && (e.endsUntyped(x) || e.endsUntyped(y))
}
