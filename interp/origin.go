package interp

import (
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/jmespath"
)

// An origin is where a value comes from. Of several, the highest counts.
type origin int

const (
	ofPolicy  origin = iota
	ofCluster        // a ConfigMap, an answer of the API server or of a service
	ofRequest
)

// A fieldOrigin is the origin of a value and, where the value is a field of an object of the
// request, that field: the keys on the way, and some key for an element of a list.
type fieldOrigin struct {
	origin origin
	at     []string // nil where it is no such field; empty for the object
}

// originOf is where the values of names come from.
func (v *vars) originOf(roots []string) origin {
	out := ofPolicy
	for _, name := range roots {
		out = max(out, v.sourceOfName(name).origin)
	}
	return out
}

// ofRequest tells whether the value of any of the names comes from the request.
func (v *vars) ofRequest(roots []string) bool { return v.originOf(roots) == ofRequest }

func (v *vars) sourceOfName(name string) fieldOrigin {
	if name == anyRoot {
		return fieldOrigin{origin: ofRequest}
	}
	for i := len(v.levels) - 1; i >= 0; i-- {
		if _, ok := v.levels[i].values[name]; ok {
			return v.levels[i].origins[name]
		}
	}
	if _, ok := v.request[name]; ok {
		return fieldOrigin{origin: ofRequest}
	}
	return fieldOrigin{}
}

// sourceOf is where the value of a document comes from.
func (v *vars) sourceOf(d *template) fieldOrigin {
	if d.text != nil && d.text.single() != nil {
		return v.sourceOfText(d.text)
	}
	return fieldOrigin{origin: v.originOf(documentRoots(d))}
}

// sourceOfText is sourceOf of a text that is one variable.
func (v *vars) sourceOfText(t *text) fieldOrigin {
	one := t.single()
	if v.deletes {
		one = t.onDelete.Single()
	}
	if one.Expr == nil {
		return fieldOrigin{origin: v.originOf(t.roots)}
	}
	return v.sourceOfExpr(one.Expr)
}

// sourceOfExpr is where what an expression gives comes from.
func (v *vars) sourceOfExpr(e *jmespath.Expr) fieldOrigin {
	taken := v.taken(e)
	return fieldOrigin{
		origin: min(v.originOf(expressionRoots(e)), v.originOf(expressionRoots(taken))),
		at:     v.fieldOf(taken, nil),
	}
}

// elementSource is the source of the elements of a list.
func (v *vars) elementSource(list *jmespath.Expr) fieldOrigin {
	return fieldOrigin{origin: v.originOf(expressionRoots(list)), at: v.elementsOf(list, nil)}
}

// someElement is a step to an element of a list, or to the value of some key.
const someElement = "*"

func below(at []string, key string) []string {
	if at == nil {
		return nil
	}
	return append(at[:len(at):len(at)], key)
}

// fieldOf is the field that an expression reads of what is at the field at; nil where it is
// none. At is nil at the root.
func (v *vars) fieldOf(e *jmespath.Expr, at []string) []string {
	switch e.Op {
	case jmespath.Current:
		return at
	case jmespath.Field:
		return v.keyOf(e, at)
	case jmespath.Sub:
		if left := v.fieldOf(e.Args[0], at); left != nil {
			return v.fieldOf(e.Args[1], left)
		}
	case jmespath.Pipe:
		if right := e.Args[1]; right.Op == jmespath.Index && right.Args[0].Op == jmespath.Current {
			return v.elementsOf(e.Args[0], at)
		}
		if left := v.fieldOf(e.Args[0], at); left != nil {
			return v.fieldOf(e.Args[1], left)
		}
	case jmespath.Index:
		return v.elementsOf(e.Args[0], at)
	default:
	}
	return nil
}

// keyOf is fieldOf of a key. What is under request is a field where it is in an object.
func (v *vars) keyOf(e *jmespath.Expr, at []string) []string {
	switch {
	case e.Dynamic != nil:
		return nil
	case at == nil && e.Name == "request":
		return []string{"request"}
	case at == nil:
		return v.sourceOfName(e.Name).at
	case len(at) == 1 && at[0] == "request":
		if e.Name == "object" || e.Name == "oldObject" {
			return []string{}
		}
		return nil
	}
	return below(at, e.Name)
}

// elementsOf is the field of the elements of the list that an expression gives.
func (v *vars) elementsOf(e *jmespath.Expr, at []string) []string {
	switch e.Op {
	case jmespath.Projection, jmespath.ValueProjection, jmespath.Filter:
		if elements := v.elementsOf(e.Args[0], at); elements != nil {
			return v.fieldOf(e.Args[1], elements)
		}
		return nil
	case jmespath.Flatten:
		of := e.Args[0]
		switch of.Op {
		case jmespath.Projection, jmespath.ValueProjection, jmespath.Filter:
			return below(v.elementsOf(of, at), someElement)
		default:
		}
		return v.elementsOf(of, at)
	case jmespath.Slice:
		return v.elementsOf(e.Args[0], at)
	default:
	}
	return below(v.fieldOf(e, at), someElement)
}

// taken is the part of an expression that its value is that of, where there are several
// to choose from: a || '*' is the policy's own text where a is not there. So it is
// in a text that is one variable: '{{ a || '*' }}'.
func (v *vars) taken(e *jmespath.Expr) *jmespath.Expr {
	switch {
	case e.Text != nil && e.Text.Single() != nil && e.Text.Single().Expr != nil:
		if inner := v.taken(e.Text.Single().Expr); inner.Op == jmespath.Literal {
			return inner
		}
	case e.Op == jmespath.Or || e.Op == jmespath.And:
		left, err := v.evaluate(e.Args[0])
		if isFalse := err != nil || expr.IsFalse(left); isFalse == (e.Op == jmespath.Or) {
			return v.taken(e.Args[1])
		}
		return v.taken(e.Args[0])
	case e.Op == jmespath.Call && e.Func == jmespath.FuncNotNull:
		for _, arg := range e.Args {
			if value, err := v.evaluate(arg); err == nil && value != nil {
				return v.taken(arg)
			}
		}
	}
	return e
}

// documentRoots lists the names that the variables of a document look up.
func documentRoots(d *template) []string {
	var roots []string
	if d.text != nil {
		roots = append(roots, d.text.roots...)
	}
	for _, item := range d.items {
		roots = append(roots, documentRoots(item)...)
	}
	for _, f := range d.fields {
		if f.text != nil {
			roots = append(roots, f.text.roots...)
		}
		roots = append(roots, documentRoots(f.value)...)
	}
	return roots
}
