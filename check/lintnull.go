package check

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
)

// A nullOn is the object that a request of an operation does not have, and the one that it has.
type nullOn struct {
	operation     admissionregistrationv1.OperationType
	object, other string
}

// lintNull tells of fields of an object that is null on some operation, and that is read there.
func (c *checking) lintNull(r *Result, s *anyPolicy) {
	if s.object.Generated() {
		return
	}
	told := map[string]bool{}
	for _, n := range []nullOn{
		{admissionregistrationv1.Delete, "object", "oldObject"},
		{admissionregistrationv1.Create, "oldObject", "object"},
		{admissionregistrationv1.Connect, "oldObject", "object"},
	} {
		if !slices.ContainsFunc(s.rules(), func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
			return n.meets(rule) && !s.excludes(n, rule)
		}) {
			continue
		}
		read := s.readAt(n, n.known)
		if len(read) > 0 {
			read = s.readAt(n, func(v cel.Value) cel.Value { return c.evaluated(n, n.known(v)) })
		}
		for _, e := range s.expressions {
			if path := read[e.field]; path != "" && !told[e.field+n.object] {
				told[e.field+n.object] = true
				r.reportIn(0, e, 0, 0, nullObject(n, path, s.fails))
			}
		}
	}
}

// meets reports whether a rule is about requests of the operation: a subresource is not deleted,
// and nothing else is connected to.
func (n nullOn) meets(rule admissionregistrationv1.NamedRuleWithOperations) bool {
	return asksOn(rule, n.operation) && slices.ContainsFunc(rule.Resources, func(entry string) bool {
		_, sub, isSub := strings.Cut(entry, "/")
		switch n.operation {
		case admissionregistrationv1.Delete:
			return !isSub || sub == "*"
		case admissionregistrationv1.Connect:
			return isSub
		}
		return true
	})
}

// excludes reports whether the policy leaves out all that a rule is about on an operation.
func (s *anyPolicy) excludes(n nullOn, rule admissionregistrationv1.NamedRuleWithOperations) bool {
	all := func(of, in []string) bool {
		return !slices.ContainsFunc(of, func(v string) bool { return !has(in, v) })
	}
	return slices.ContainsFunc(s.constraints.ExcludeResourceRules, func(out admissionregistrationv1.NamedRuleWithOperations) bool {
		return asksOn(out, n.operation) && len(out.ResourceNames) == 0 && (out.Scope == nil || *out.Scope == admissionregistrationv1.AllScopes) &&
			all(rule.APIGroups, out.APIGroups) && all(rule.APIVersions, out.APIVersions) &&
			(all(rule.Resources, out.Resources) || slices.Contains(out.Resources, "*/*"))
	})
}

func asksOn(rule admissionregistrationv1.NamedRuleWithOperations, op admissionregistrationv1.OperationType) bool {
	return slices.Contains(rule.Operations, op) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll)
}

// readAt are the places that expressions read of the object that is null, by the fields of the
// expressions. A variable is among them where somebody reads it. They are none where a match
// condition or a validation is false on every such request: it decides without the others.
// Known gives an expression with what is decided on the operation.
func (s *anyPolicy) readAt(n nullOn, known func(cel.Value) cel.Value) map[string]string {
	found, used := map[string]string{}, map[string]bool{}
	erring := map[string][]string{}    // variables, with what they use of these
	harmless := map[string]cel.Value{} // the others
	for _, e := range s.expressions {
		v, ok := s.tree(e)
		if !ok || e.role == message { // lintMessages tells of these
			continue
		}
		for name, w := range harmless {
			v = v.SubstituteField("variables", name, w)
		}
		v = cel.Simplify(known(v))
		read, _ := v.Reads(n.object, nil)
		uses := slices.DeleteFunc(v.Uses("variables"), func(name string) bool { _, ok := erring[name]; return !ok })
		if len(read) > 0 {
			found[e.field] = n.object + "." + strings.Join(longest(read), ".")
		}
		switch {
		case e.role == variable && len(read)+len(uses) == 0:
			harmless[e.name] = v
		case e.role == variable:
			erring[e.name] = uses
		case (e.role == condition || e.role == validation) && v.AsBool().IsFalse():
			return nil
		default:
			for _, name := range uses {
				used[name] = true
			}
		}
	}
	for _, e := range slices.Backward(s.expressions) { // a variable reads those before it
		if e.role != variable {
			continue
		}
		if !used[e.name] {
			delete(found, e.field)
			continue
		}
		for _, name := range erring[e.name] {
			used[name] = true
		}
	}
	return found
}

// longest is the first of some places, or what is read below it at once.
func longest(read [][]string) []string {
	first := read[0]
	for _, path := range read[1:] {
		if isBelow(path, [][]string{first}) {
			first = path
		}
	}
	return first
}

// known is v with what is decided on the operation: which it is, and which object there is.
func (n nullOn) known(v cel.Value) cel.Value {
	null, there := cel.Ident(n.object), cel.Ident(n.other)
	v = v.SubstitutePath([]string{"request", "operation"}, cel.String(string(n.operation)))
	decided := []struct {
		asked cel.Bool
		is    bool
	}{
		{null.Eq(cel.Null()), true}, {cel.Null().Eq(null), true},
		{null.Type().Eq(cel.Ident("null_type")), true},
		{there.Eq(cel.Null()), false}, {cel.Null().Eq(there), false},
	}
	return v.Rewrite(func(part cel.Value) cel.Value {
		if asked, ok := part.Asked(); ok && len(asked) == 2 && asked[0] == n.object {
			return cel.False().Value
		}
		for _, d := range decided {
			switch {
			case cel.Equal(part, d.asked.Value):
				return cel.Lit(d.is).Value
			case cel.Equal(part, cel.Not(d.asked).Value):
				return cel.Lit(!d.is).Value
			}
		}
		return part
	})
}

// evaluated is v with the value of each condition that reads nothing but the object that is null:
//
//	["CREATE", "UPDATE"].exists(o, o == "DELETE")     false
//	dyn(object) == null                               true
func (c *checking) evaluated(n nullOn, v cel.Value) cel.Value {
	given := map[string]any{n.object: nil}
	return v.Rewrite(func(part cel.Value) cel.Value {
		if slices.ContainsFunc(part.Idents(), func(name string) bool { return name != n.object && name != "null_type" }) {
			return part
		}
		if is, ok := c.meter().Decide(part.String(), given); ok {
			return cel.Lit(is).Value
		}
		return part
	})
}
