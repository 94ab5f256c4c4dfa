package rule

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// nameElement lowers the message of a rule that is one foreach, where the message reads
// the element: that is the first one that does not pass. Those that do not pass become a
// variable; the rule holds where there are none.
//
//	message: "{{ element.image }} has no tag"
//	variables.badContainers[0].image + ' has no tag'
//
// It tells whether it could.
func nameElement(l *read.Lowering, u *pack.Unit) bool {
	v := l.Rule.Validate
	list, x, body, loops := u.Holds.Expr.Loop()
	if !loops || u.CEL != nil || len(v.ForEach) != 1 || !canTellApart(l, v.ForEach[0]) || !readsElement(v.Message.Value) {
		return false
	}
	var bad cel.Value
	var m native.Message
	var left []int
	stop := l.Attempt(func() {
		l := l.Inside()
		s := wholeList(l, entryList(l, v.ForEach[0]))
		if s == nil || !s.Ordered() {
			panic(l.Unsupported("a message about an element of no known list"))
		}
		whole := list
		for _, v := range slices.Backward(l.Variables) {
			whole = whole.SubstituteField("variables", v.Name, v.Expr)
		}
		if items, ok := s.List(l, false); !ok || !cel.Equal(items, whole) {
			panic(l.Unsupported("a message about an element of several lists"))
		}
		name := x.String()
		bad = read.Let(l, "bad"+strings.ToUpper(name[:1])+name[1:]+"s", list.Macro(cel.MacroFilter, x, cel.Not(body).Simplify().Value))
		in := Entered(l, v.ForEach[0], read.ValueOf(bad.Index(cel.Int(0)), s.Elem()), NoIndex(l), 0)
		if m = messageOf(in, v.Message, &left); m.Expr == nil || leavesElement(v.Message, left) {
			panic(l.Unsupported("a message that reads nothing of the element"))
		}
	})
	switch stop.(type) {
	case nil:
		noteLeft(l, v.Message, left)
		if u.Message = m; !u.Holds.Errs { // else the filter errs where all() finds a failure beside an error
			u.Holds.Expr = bad.Size().Eq(cel.Int(0))
		}
		return true
	case read.Refusal:
		return false
	}
	panic(stop)
}

// leavesElement tells that one of the variables at these places of a message reads the
// element.
func leavesElement(t policy.Text, left []int) bool {
	written := variables(query.ParseTemplate(t.Value, t.Pos))
	return slices.ContainsFunc(left, func(n int) bool { return readsElement(asWritten(written[n])) })
}

// readsElement tells that a template reads the element of a foreach.
func readsElement(text string) bool {
	t, bad := jmespath.ParseTemplate(text, policy.Text{}.Pos)
	reads := false
	if bad == nil {
		t.Walk(func(e *jmespath.Expr) bool {
			reads = reads || e.Op == jmespath.Field && e.Name == "element"
			return true
		})
	}
	return reads
}
