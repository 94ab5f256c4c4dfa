package cel

import "slices"

// scoped is what is known of the variables that macros bind, the inner ones last.
type scoped[T any] []binding[T]

type binding[T any] struct {
	name string
	is   T
}

// of is what is known of a variable, if it is bound.
func (s scoped[T]) of(name string) (is T, ok bool) {
	for _, b := range slices.Backward(s) {
		if b.name == name {
			return b.is, true
		}
	}
	return is, false
}

// in is s in the bodies of the macro n, whose last variable goes through elements; the
// first of two goes through the indexes or keys.
func (s scoped[T]) in(n *node, index, elem T) scoped[T] {
	s = slices.Clip(s)
	for i, x := range n.vars {
		if len(n.vars) == 2 && i == 0 {
			s = append(s, binding[T]{x, index})
		} else {
			s = append(s, binding[T]{x, elem})
		}
	}
	return s
}
