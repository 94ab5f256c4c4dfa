package jmespath

// Walk visits e and everything in it, parents first, also the expressions of
// the variables in its strings and names. It does not enter an expression for
// which visit returns false.
func Walk(e *Expr, visit func(*Expr) bool) {
	if e == nil || !visit(e) {
		return
	}
	for _, arg := range e.Args {
		Walk(arg, visit)
	}
	e.Text.Walk(visit)
	e.Dynamic.Walk(visit)
}

// Walk visits the expressions of the template's variables, and of those that
// stand in a variable whose own expression is not known yet.
func (t *Template) Walk(visit func(*Expr) bool) {
	if t == nil {
		return
	}
	for _, p := range t.Parts {
		if p.Var != nil {
			Walk(p.Var.Expr, visit)
			p.Var.Body.Walk(visit)
		}
	}
}
