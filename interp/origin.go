package interp

import (
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/jmespath"
)

// ofRequest tells whether the value of any of the names comes from the request.
func (v *vars) ofRequest(roots []string) bool {
	for _, name := range roots {
		if v.rootOfRequest(name) {
			return true
		}
	}
	return false
}

func (v *vars) rootOfRequest(name string) bool {
	if name == anyRoot {
		return true
	}
	for i := len(v.levels) - 1; i >= 0; i-- {
		if _, ok := v.levels[i].values[name]; ok {
			return v.levels[i].fromData[name]
		}
	}
	_, ok := v.request[name]
	return ok
}

// isOfRequest tells whether the value of a document comes from the request.
func (v *vars) isOfRequest(d *document) bool {
	if d.text != nil && d.text.single() != nil {
		return v.textOfRequest(d.text)
	}
	return v.ofRequest(documentRoots(d))
}

// textOfRequest is isOfRequest of a text that is one variable.
func (v *vars) textOfRequest(t *text) bool {
	one := t.single()
	if v.deletes {
		one = t.onDelete.Single()
	}
	if one.Expr == nil {
		return v.ofRequest(t.roots)
	}
	return v.givesOfRequest(one.Expr)
}

// givesOfRequest tells whether what an expression gives comes from the request.
func (v *vars) givesOfRequest(e *jmespath.Expr) bool {
	return v.ofRequest(expressionRoots(e)) && v.ofRequest(expressionRoots(v.taken(e)))
}

// taken is the part of an expression that its value is that of, where there are several
// to choose from: a || '*' is the policy's own text where a is not there.
func (v *vars) taken(e *jmespath.Expr) *jmespath.Expr {
	switch {
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
func documentRoots(d *document) []string {
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
