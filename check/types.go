package check

import (
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

// types reports the expressions that do not fit what values really are. An expression
// that the API server refuses is not looked at again.
func (c *checking) types(r *Result, s *anyPolicy, release cel.Release, refused map[string]bool) {
	t := c.of(release)
	kinds := kindsOf(s.constraints, t.set)
	kinds = slices.DeleteFunc(kinds, func(k schema.GVK) bool { return t.set.Type(k) == nil })
	all := s.perKind(kinds, t.runtime, refused)
	for _, e := range s.expressions {
		seen := all[e.field]
		for _, p := range seen.problems {
			if release < strictOptionals && p.Optional() {
				continue // it is the value itself there; changes tells of it
			}
			r.reportIn(release, e, p.Line, p.Col, mismatch(p.Problem, kindNames(p.kinds), len(p.kinds) >= len(kinds)))
		}
		for _, m := range seen.misses {
			switch {
			case !slices.Contains(seen.hits, m.LineColumn) && (!seen.partly || len(m.kinds) >= len(kinds)):
				r.reportIn(release, e, m.Line, m.Col, noField(m.Miss, m.names()))
			case !m.Tested && !s.asks(e): // a patch, too, may be made for some kinds only
				r.reportIn(release, e, m.Line, m.Col, fieldOfSome(m.Miss, m.names()))
			}
		}
	}
}

type problemSeen struct {
	apiserver.Problem
	kinds []schema.GVK
}

type missSeen struct {
	apiserver.Miss
	kinds []schema.GVK
}

// names are the kinds of objects that lack the field; params are a kind by themselves.
func (m missSeen) names() []string {
	if strings.HasPrefix(m.Kind, "params ") {
		return []string{m.Kind}
	}
	return kindNames(m.kinds)
}

func kindNames(kinds []schema.GVK) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.Kind)
	}
	return slices.Compact(out)
}

// expressionFindings is what was found in an expression for any of the kinds.
type expressionFindings struct {
	problems []problemSeen
	misses   []missSeen
	hits     []apiserver.LineColumn
	partly   bool // for some kind the reads are not known, because of a problem
}

// perKind checks the expressions for each kind, and joins what is the same for several.
func (s *anyPolicy) perKind(kinds []schema.GVK, types *apiserver.RuntimeTypes, refused map[string]bool) map[string]*expressionFindings {
	all := map[string]*expressionFindings{}
	for _, e := range s.expressions {
		all[e.field] = &expressionFindings{}
	}
	if len(kinds) == 0 {
		kinds = []schema.GVK{{}} // params and the request have types all the same
	}
	for _, k := range kinds {
		about := apiserver.Subject{Object: k, HasParams: s.paramKind != nil, Patches: s.object.Mutating != nil}
		if s.paramKind != nil {
			about.Params = schema.GVK(apischema.FromAPIVersionAndKind(s.paramKind.APIVersion, s.paramKind.Kind))
		}
		typed, err := types.Of(about)
		if err != nil {
			continue // never: the types are our own
		}
		for _, e := range s.expressions {
			var checked apiserver.Checked
			switch {
			case e.role == variable:
				checked = typed.Declare(e.name, e.text)
			case !refused[e.field]:
				checked = typed.Check(e.text)
			}
			if !refused[e.field] {
				all[e.field].add(checked, k)
			}
		}
	}
	return all
}

func with(list []schema.GVK, k schema.GVK) []schema.GVK {
	if slices.Contains(list, k) {
		return list
	}
	return append(list, k)
}

func (s *expressionFindings) add(c apiserver.Checked, kind schema.GVK) {
	for _, p := range c.Problems {
		i := slices.IndexFunc(s.problems, func(q problemSeen) bool { return q.Alike(p) })
		if i < 0 {
			i = len(s.problems)
			s.problems = append(s.problems, problemSeen{Problem: p})
		}
		s.problems[i].kinds = with(s.problems[i].kinds, kind)
	}
	s.partly = s.partly || len(c.Problems) > 0
	for _, h := range c.Hits {
		if !slices.Contains(s.hits, h) {
			s.hits = append(s.hits, h)
		}
	}
	for _, m := range c.Misses {
		i := slices.IndexFunc(s.misses, func(n missSeen) bool { return n.LineColumn == m.LineColumn && n.Field == m.Field })
		if i < 0 {
			i = len(s.misses)
			s.misses = append(s.misses, missSeen{Miss: m})
		}
		s.misses[i].kinds = with(s.misses[i].kinds, kind)
	}
}

// strictOptionals is the release with which orValue() and or() want an optional value.
const strictOptionals cel.Release = 37

// asks tells that an expression, or what is evaluated before it, asks what there is or
// of what kind the object is. Then what it reads of kinds that do not have it may
// never be read.
func (s *anyPolicy) asks(about expression) bool {
	return slices.ContainsFunc(s.expressions, func(e expression) bool {
		if e.field != about.field && e.role != condition && e.role != variable {
			return false
		}
		v, ok := s.tree(e)
		return !ok || v.Asks() || asksForKind(v) // what cannot be read may ask
	})
}

// asksForKind tells that an expression reads of what kind the object is.
func asksForKind(v cel.Value) bool {
	return readsAny(v, "object", "kind", "apiVersion") || readsAny(v, "oldObject", "kind", "apiVersion") ||
		readsAny(v, "request", "kind", "resource", "requestKind", "requestResource")
}

func readsAny(v cel.Value, variable string, fields ...string) bool {
	return slices.ContainsFunc(v.Uses(variable), func(f string) bool { return slices.Contains(fields, f) })
}

// statusTypes predicts the status of a policy. What of it is not so is a known false
// alarm. It comes before lint and cost: what these tell is nothing the status warns of.
func (c *checking) statusTypes(r *Result, s *anyPolicy, release cel.Release) {
	if r.Object.Policy == nil {
		return
	}
	r.TypeChecking = c.of(release).status.Check(r.Object.Policy)
	for _, w := range r.TypeChecking {
		if r.troubled(w.Field, release) {
			continue
		}
		p, _ := apiserver.FirstProblem(w.Warning)
		before := len(r.Findings)
		r.reportIn(release, s.expression(w.Field), p.Line, p.Col, statusFalseAlarm(w, release))
		r.Findings[before].Known = true
	}
}

// changes reports what newer releases evaluate otherwise than the oldest one.
func (c *checking) changes(r *Result, s *anyPolicy, oldest cel.Release) {
	if r.Object.Policy == nil {
		return
	}
	for _, d := range apiserver.Differences(r.Object.Policy, oldest) {
		r.reportIn(0, s.expression(d.Field), 0, 0, changesMeaning(d))
	}
}
