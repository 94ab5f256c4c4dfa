package jmespath

import "github.com/kvap/kvap/diag"

// Check finds the calls in e that can never succeed: of functions that do not
// exist, with a wrong number of arguments, or with an &expression where none
// belongs or none where one does.
func Check(e *Expr) diag.List {
	var list diag.List
	Walk(e, checkInto(&list))
	return list
}

// Check is Check for all expressions of the template.
func (t *Template) Check() diag.List {
	var list diag.List
	t.Walk(checkInto(&list))
	return list
}

func checkInto(list *diag.List) func(*Expr) bool {
	return func(e *Expr) bool {
		if e.Op == Call {
			if d := checkCall(e); d != nil {
				*list = append(*list, *d)
			}
		}
		return true
	}
}

func checkCall(e *Expr) *diag.Diagnostic {
	f := e.Func.Signature()
	switch {
	case e.Func == FuncUnknown:
		return unknown(e)
	case !f.Accepts(len(e.Args)) && f.Variadic:
		return problem(e.Pos, "%s() has %d arguments and takes at least %d", e.Name, len(e.Args), len(f.Params))
	case !f.Accepts(len(e.Args)):
		return problem(e.Pos, "%s() has %d arguments and takes %d", e.Name, len(e.Args), len(f.Params))
	}
	for i, arg := range e.Args {
		if want := f.Param(i); !f.Lax && (arg.Op == ExpRef) != (want == ExprType) {
			return problem(arg.Pos, "argument %d of %s() must be: %s", i+1, e.Name, want)
		}
	}
	return nil
}

// unknown tells of a call of a function that does not exist, and which is meant.
func unknown(e *Expr) *diag.Diagnostic {
	if guess := diag.Nearest(e.Name, functionNames()); guess != "" {
		return problem(e.Pos, "there is no function %s() (did you mean %s()?)", e.Name, guess)
	}
	return problem(e.Pos, "there is no function %s()", e.Name)
}

func problem(pos diag.Pos, format string, args ...any) *diag.Diagnostic {
	d := diag.Errorf(pos, diag.BadExpression, format, args...)
	return &d
}
