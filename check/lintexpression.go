package check

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// lintRequest tells of fields of the request that are not there when they are empty.
func lintRequest(r *Result, s *anyPolicy, set *schema.Set) {
	absent := []string{"request.subResource", "request.requestSubResource", "request.userInfo.extra", "request.userInfo.uid"}
	if len(clusterScoped(s.rules(), set)) > 0 {
		absent = append(absent, "request.namespace")
	}
	if slices.ContainsFunc(s.rules(), deletes) {
		absent = append(absent, "request.name")
	}
	for _, e := range s.expressions {
		v, ok := s.tree(e)
		if !ok {
			continue
		}
		for _, path := range absent {
			if reads(v, path) && !s.asksFor(path, e) {
				r.reportIn(0, e, 0, 0, absentField(path))
			}
		}
	}
}

func deletes(rule admissionregistrationv1.NamedRuleWithOperations) bool {
	return asksOn(rule, admissionregistrationv1.Delete)
}

// reads tells that an expression reads a path as it is, and does not only ask for it.
func reads(v cel.Value, path string) bool {
	found := false
	v.Walk(func(part cel.Value) bool {
		names, ok := part.Selection()
		found = found || ok && strings.Join(names, ".") == path
		return !found
	})
	return found
}

// asksFor tells that an expression, or one that is evaluated before it, asks whether
// there is a path.
func (s *anyPolicy) asksFor(path string, about expression) bool {
	return slices.ContainsFunc(s.expressions, func(e expression) bool {
		v, ok := s.tree(e)
		return ok && (e.field == about.field || e.role == condition) && asksFor(v, func(asked []string) bool { return strings.Join(asked, ".") == path })
	})
}

// asksFor tells that an expression asks whether there is such a path.
func asksFor(v cel.Value, such func(path []string) bool) bool {
	found := false
	v.Walk(func(part cel.Value) bool {
		asked, ok := part.Asked()
		found = found || ok && such(asked)
		return !found
	})
	return found
}

// asksForNull tells that an expression compares a variable with null.
func asksForNull(v cel.Value, name string) bool {
	is := cel.Ident(name).Eq(cel.Null())
	found := false
	v.Walk(func(part cel.Value) bool {
		found = found || cel.Equal(part, is.Value) || cel.Equal(part, cel.Not(is).Value)
		return !found
	})
	return found
}

// mostChecks is how often one expression can ask the authorizer: the API server
// takes 350,000 of the million for each time.
const mostChecks = 2

func lintAuthorizer(r *Result, s *anyPolicy) {
	for _, e := range s.expressions {
		v, ok := s.tree(e)
		if !ok {
			continue
		}
		checks := 0
		v.Calls(func(name string, _ int) {
			if name == "check" {
				checks++
			}
		})
		if checks > mostChecks {
			r.reportIn(0, e, 0, 0, manyChecks(checks))
		}
	}
}

// lintMessages tells of message expressions that can be errors: the message is then
// another one than its author thinks. They are evaluated on each request.
func lintMessages(r *Result, s *anyPolicy, set *schema.Set) {
	if s.object.Policy == nil {
		return
	}
	kinds := kindsOf(s.constraints, set)
	deleting := slices.ContainsFunc(s.rules(), deletes)
	for _, e := range s.expressions {
		if e.role != message {
			continue
		}
		v, ok := s.tree(e)
		if !ok {
			continue
		}
		if path := canFail(v, kinds, set, deleting); path != "" {
			r.reportIn(0, e, 0, 0, messageCanFail(path))
		}
	}
}

// canFail is a path that a message expression reads, and that is not in every object
// of the kinds; "" for none. What it asks for is not looked at.
func canFail(v cel.Value, kinds []schema.GVK, set *schema.Set, deleting bool) string {
	bad := ""
	v.Walk(func(part cel.Value) bool {
		path, ok := part.Selection()
		if !ok || bad != "" || len(path) < 2 {
			return bad == ""
		}
		below := func(asked []string) bool { return slices.Equal(asked[:min(2, len(asked))], path[:2]) }
		switch {
		case asksFor(v, below), asksForNull(v, path[0]):
		case path[0] == "object" && deleting, path[0] == "oldObject":
			bad = strings.Join(path, ".")
		case path[0] == "object":
			for _, k := range kinds {
				if !isIdentity(path[1:], k, set) && !alwaysThere(set.Type(k), path[1:]) {
					bad = strings.Join(path, ".")
				}
			}
		}
		return false
	})
	return bad
}

// alwaysThere tells that every object of a type has a path.
func alwaysThere(t *schema.Type, path []string) bool {
	for _, name := range path {
		if t == nil || t.Kind != schema.Object {
			return false
		}
		f := t.Fields[name]
		if f == nil || !f.Required {
			return false
		}
		t = f.Type
	}
	return true
}

// isIdentity tells of the name that every object has, and of its namespace.
func isIdentity(path []string, kind schema.GVK, set *schema.Set) bool {
	resource, known := set.ByKind(kind)
	return slices.Equal(path, []string{"metadata", "name"}) || known && resource.Namespaced && slices.Equal(path, []string{"metadata", "namespace"})
}

// lintUnreachable tells of validations that deny nothing, and of conditions that no
// request meets.
func lintUnreachable(r *Result, s *anyPolicy) {
	seen := map[string]string{}
	for _, e := range s.expressions {
		if e.role != validation && e.role != condition {
			continue
		}
		v, ok := s.tree(e)
		if !ok {
			continue
		}
		value, constant := cel.Simplify(s.knownOperations(v)).AsBool().Const()
		first := seen[e.text]
		switch {
		case constant && value && e.role == validation:
			r.reportIn(0, e, 0, 0, alwaysTrue())
		case constant && !value && e.role == condition:
			r.reportIn(0, e, 0, 0, neverMatches())
		case e.role == validation && first != "":
			r.reportIn(0, e, 0, 0, sameAs(first))
		}
		if first == "" && e.role == validation {
			seen[e.text] = e.field
		}
	}
}

// knownOperations is v with the comparisons decided that ask for an operation on which
// the policy is not asked.
func (s *anyPolicy) knownOperations(v cel.Value) cel.Value {
	asked := map[string]bool{}
	for _, rule := range s.rules() {
		for _, op := range rule.Operations {
			asked[string(op)] = true
		}
	}
	if asked["*"] || !slices.Contains(v.Uses("request"), "operation") {
		return v
	}
	operation := cel.Ident("request").Field("operation")
	for _, op := range []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} {
		if asked[op] {
			continue
		}
		is := operation.Eq(cel.String(op))
		v = v.Rewrite(func(part cel.Value) cel.Value {
			switch {
			case cel.Equal(part, is.Value):
				return cel.Lit(false).Value
			case cel.Equal(part, cel.Not(is).Value):
				return cel.Lit(true).Value
			}
			return part
		})
	}
	return v
}
