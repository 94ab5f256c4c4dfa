package cel

// What a call means has changed with a few releases, since each brought another
// version of the CEL library. They were found by comparing the library's sources,
// from v0.17.8 (Kubernetes 1.30) to v0.29.2 (1.37).

// A Change is a call that means one thing before a release and another from it on.
type Change struct {
	Call  Value
	Since Release
}

// Function is the function that is called.
func (c Change) Function() string { return c.Call.n.name }

// Changes are the calls of v that do not mean the same in all releases from oldest
// to the latest. What v reads as variables.name is looked up; all else that it does
// not bind is data.
func (v Value) Changes(oldest Release, variables func(name string) (Value, bool)) []Change {
	var out []Change
	o := optionals{variables: variables, known: map[string]optionality{}}
	o.visit(v.n, nil, func(n *node, bound scoped[optionality]) {
		if since := o.changed(n, bound); since > oldest {
			out = append(out, Change{Value{n}, since})
		}
	})
	return out
}

// changed is the release with which the meaning of the call n has changed, or the
// zero release.
func (o *optionals) changed(n *node, bound scoped[optionality]) Release {
	if n.op != opMember {
		return 0
	}
	switch n.function() {
	case FuncOrValue, FuncOr:
		if len(n.args) == 2 && !o.of(n.args[0], bound).isOptional() {
			return strictOptionals
		}
	case FuncIndexOf, FuncLastIndexOf:
		switch {
		case len(n.args) == 3 && !n.args[1].isFilled():
			return 37 // '' beyond the end is found at the end: before, at the offset
		case n.args[0].op != opList && (len(n.args) == 3 || !n.args[0].isFilled()):
			return 32 // nothing is found in '', or beyond the end: before, an error
		}
	}
	return 0
}

// isFilled tells of a text that is not empty.
func (n *node) isFilled() bool { return n.op == opString && n.lit != "" }
