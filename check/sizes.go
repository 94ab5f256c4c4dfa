package check

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
)

// UnknownSize is the first of some names of fields, or of paths, that is of no field of any type
// and that no expression of some objects reads, with the name that may be meant.
func UnknownSize(names []string, objects []*Object, sets map[cel.Release]*schema.Set) (name, meant string) {
	known := map[string]bool{}
	for _, set := range sets {
		seen := map[*schema.Type]bool{}
		for _, r := range set.Resources("*", "*", "*") {
			addFields(set.Type(r.GVK), known, seen)
		}
	}
	for _, o := range objects {
		if s := subjectOf(o); s != nil {
			s.readFields(known)
		}
	}
	var all []string
	for field := range known {
		all = append(all, field)
	}
	slices.Sort(all)
	for _, name := range names {
		for i, part := range strings.Split(strings.ReplaceAll(name, "[]", ""), ".") {
			isRoot := i == 0 && slices.Contains([]string{"object", "oldObject", "params", "request", "namespaceObject", "variables"}, part)
			if !isRoot && !known[part] {
				return name, diag.Nearest(part, all)
			}
		}
	}
	return "", ""
}

// addFields adds the names of the fields of a type.
func addFields(t *schema.Type, known map[string]bool, seen map[*schema.Type]bool) {
	if t == nil || seen[t] {
		return
	}
	seen[t] = true
	addFields(t.Elem, known, seen)
	for name, f := range t.Fields {
		known[name] = true
		addFields(f.Type, known, seen)
	}
}

// readFields adds the names of the fields that expressions read, and those of variables.
func (s *anyPolicy) readFields(known map[string]bool) {
	for _, e := range s.expressions {
		if e.role == variable {
			known[e.name] = true
		}
		v, ok := s.tree(e)
		if !ok {
			continue
		}
		v.Walk(func(part cel.Value) bool {
			if path, ok := part.Selection(); ok {
				for _, name := range path {
					known[name] = true
				}
			}
			return true
		})
	}
}
