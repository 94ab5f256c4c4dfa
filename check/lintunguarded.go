package check

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/schema"
)

// lintUnguarded tells of fields that objects need not have, and that an expression reads
// although nothing asks for them. What kvap made asks for all that it reads, unless it took an
// expression over.
func lintUnguarded(r *Result, s *anyPolicy, set *schema.Set) {
	if s.object.Generated() && !s.object.authored {
		return
	}
	kinds := kindsOf(s.constraints, set)
	defaults := defaulting.New(set)
	composed := map[string]cel.Value{}
	for _, e := range s.expressions {
		if v, ok := s.tree(e); ok && e.role == variable {
			composed[e.name] = v
		}
	}
	for _, e := range s.expressions {
		v, ok := s.tree(e)
		if !ok || e.role == message { // lintMessages tells of these
			continue
		}
		for _, root := range []string{"object", "oldObject"} {
			read, asked := v.Reads(root, composed)
			asked = append(asked, s.askedFor(e, root, composed)...)
			var told [][]string
			for _, path := range read {
				if isBelow(path, told) || isAsked(path, asked) {
					continue
				}
				var without []string
				for _, k := range kinds {
					if mayLack(set.Type(k), path) && !isIdentity(path, k, set) && !defaults.FillsIn(k, path) {
						without = append(without, k.Kind)
					}
				}
				if len(without) > 0 {
					told = append(told, path)
					r.reportIn(0, e, 0, 0, unguarded(root, path, slices.Compact(without), s.fails))
				}
			}
		}
	}
}

// askedFor are the places that are asked for before an expression counts: by the match
// conditions, and by validations that deny what lacks them. A variable is evaluated for who
// reads it, so that any expression may ask in its place.
func (s *anyPolicy) askedFor(about expression, root string, composed map[string]cel.Value) (out [][]string) {
	for _, e := range s.expressions {
		v, ok := s.tree(e)
		if !ok || e.field == about.field {
			continue
		}
		switch {
		case e.role == condition || about.role == variable:
			_, asked := v.Reads(root, composed)
			out = append(out, asked...)
		case e.role == validation:
			for _, term := range v.AsBool().Conjuncts() {
				if path, ok := term.Asked(); ok && path[0] == root {
					out = append(out, path[1:])
				}
			}
		}
	}
	return out
}

// isBelow tells that a place is one of some, or below one.
func isBelow(path []string, of [][]string) bool {
	return slices.ContainsFunc(of, func(p []string) bool { return len(p) <= len(path) && slices.Equal(p, path[:len(p)]) })
}

// isAsked tells that a place is asked for, or all that is beside it.
func isAsked(path []string, asked [][]string) bool {
	all := append(slices.Clone(path[:len(path)-1]), cel.EachElement)
	return slices.ContainsFunc(asked, func(a []string) bool { return slices.Equal(a, path) || slices.Equal(a, all) })
}

// mayLack tells that objects of a type may be without the last step of a path where they
// have the steps before it. Of what the type does not know it is false.
func mayLack(t *schema.Type, path []string) bool {
	for i, name := range path {
		if t == nil {
			return false
		}
		last := i == len(path)-1
		switch t.Kind {
		case schema.List:
			t = t.Elem
		case schema.Map:
			if last {
				return name != cel.EachElement
			}
			t = t.Elem
		case schema.Object:
			f := t.Fields[name]
			if f == nil {
				return false
			}
			if last {
				return !f.Required && !f.Type.Nullable // what may be null is there
			}
			t = f.Type
		default:
			return false
		}
	}
	return false
}
