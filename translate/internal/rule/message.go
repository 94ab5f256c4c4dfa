package rule

import (
	"slices"
	"strings"
	"unicode"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// message lowers the rule's message. A variable in it that has no native form stays as it
// is written, and the user is told: the verdict does not depend on it.
//
//	message: "{{ request.object.metadata.name }} at {{ time_now() }}"
//	object.metadata.name + ' at {{ time_now() }}'
func message(l *read.Lowering, t policy.Text) (m native.Message) {
	var left []int
	pos := l.Pos
	stop := l.Attempt(func() { m = messageOf(l, t, nil) })
	if _, refused := stop.(read.Refusal); refused {
		stop = l.Attempt(func() { m = messageOf(l, t, &left) })
	}
	l.SetPos(pos)
	switch stop.(type) {
	case nil:
		noteLeft(l, t, left)
	case read.Refusal:
		m = native.Message{Text: messageText(l, t)}
		l.SetPos(t.Pos)
		l.Note(diag.MessageVariable, "the variables of the message have no native form; it is shown as written")
	default:
		panic(stop)
	}
	return m
}

// noteLeft tells which variables of a message are shown as they are written, by their
// places among them. A rule for pod controllers tells them as its author wrote them.
func noteLeft(l *read.Lowering, t policy.Text, left []int) {
	if len(left) == 0 {
		return
	}
	for _, r := range l.Policy.Rules {
		if r.Index == l.Rule.Index && r.Expansion == "" && r.Validate != nil {
			t = r.Validate.Message
		}
	}
	written := variables(query.ParseTemplate(t.Value, t.Pos))
	names := make([]string, len(left))
	for i, n := range left {
		names[i] = asWritten(written[n])
	}
	verb, them := "has", "it is"
	if len(left) > 1 {
		verb, them = "have", "they are"
	}
	pos := l.Pos
	l.SetPos(t.Pos)
	l.Note(diag.MessageVariable, "%s in the message %s no native form; %s shown as written", strings.Join(names, " and "), verb, them)
	l.SetPos(pos)
}

func variables(t *jmespath.Template) []*jmespath.Variable {
	var out []*jmespath.Variable
	for _, part := range t.Parts {
		if part.Var != nil {
			out = append(out, part.Var)
		}
	}
	return out
}

func isText(p jmespath.Part) bool { return p.Var == nil && p.Ref == nil }

func asWritten(v *jmespath.Variable) string {
	if v.Shallow {
		return "{{- " + v.Raw + " }}"
	}
	return "{{ " + v.Raw + " }}"
}

// messageText is the message as it is written, or one for a rule that has none.
func messageText(l *read.Lowering, t policy.Text) string {
	if text := strings.Join(strings.Fields(t.Value), " "); text != "" {
		return text
	}
	return violated(l)
}

// violated is the message of a rule that says none, as Kyverno and the webhook say it, with the
// name that its author gave it.
func violated(l *read.Lowering) string { return "validation error: rule " + l.Rule.Origin + " failed" }

// messageOf is the message with its variables filled in. Those that have no native form are
// left as they are written, and their places among them added to left; where that is nil
// they are a refusal. What else is to be told of the message is of no interest.
func messageOf(l *read.Lowering, t policy.Text, left *[]int) native.Message {
	m, first := native.Message{Text: messageText(l, t)}, l.Params == nil
	if t.Value == "" {
		return m
	}
	l = l.Quietly()
	filled := func(v *jmespath.Variable) read.Operand {
		j := read.InEach(query.Variable(l, v), func(j read.Operand) read.Operand { return shown(l, j) })
		if first && l.Params != nil {
			panic(l.Unsupported("params that only the message reads"))
		}
		return j
	}
	template := query.ParseTemplate(m.Text, t.Pos)
	if left != nil {
		*left = leaveOut(l, template, filled)
	}
	var known []string
	j := query.TemplateOf(l, template, func(v *jmespath.Variable) read.Operand {
		j, text := filled(v), nameOf(v)
		switch {
		case j.Form == read.LitForm:
			text = scalar.Text(j.Lit)
		case left != nil: // whether a wildcard of it would be a pattern's is of no interest
			said, _ := query.Text(l, j)
			j = read.StringOf(said)
		}
		known = append(known, text)
		return j
	})
	if s, ok := j.Lit.(string); ok && j.Form == read.LitForm {
		m.Text = s
		return m
	}
	v, _ := query.Text(l, j) // a message that errs is the constant one
	if !slices.ContainsFunc(template.Parts, isText) && !v.MakesText() {
		// Of variables alone the API server's compiler does not know that they are a text.
		v = cel.Func(cel.FuncString, read.Dyn(v))
	}
	m.Text = constant(l, template, known)
	m.Expr = &v
	return m
}

// leaveOut makes texts of the variables that have no native form. It gives their places
// among the variables.
func leaveOut(l *read.Lowering, t *jmespath.Template, filled func(*jmespath.Variable) read.Operand) []int {
	var left []int
	var parts []jmespath.Part
	seen := 0
	for _, part := range t.Parts {
		if v := part.Var; v != nil {
			stop := l.Attempt(func() { l.Probed(func(*read.Lowering) { query.Text(l, filled(v)) }) })
			switch stop.(type) {
			case nil:
			case read.Refusal:
				left = append(left, seen)
				part = jmespath.Part{Text: asWritten(v)}
			default:
				panic(stop)
			}
			seen++
		}
		if n := len(parts) - 1; n >= 0 && isText(part) && isText(parts[n]) {
			parts[n].Text += part.Text
			continue
		}
		parts = append(parts, part)
	}
	t.Parts = parts
	return left
}

// none stands in a message for a text that the object has not, as in Kubernetes' own.
const none = "<none>"

// nameOf stands in the constant message for what only the message expression knows.
func nameOf(v *jmespath.Variable) string {
	for _, root := range []string{"request.object.", "request.oldObject.", "element."} {
		if field, ok := strings.CutPrefix(v.Raw, root); ok {
			return field
		}
	}
	return v.Raw
}

// constant is the message that stands beside its expression, and is shown only where that
// errs: without {{ }}, which no user can read.
//
//	message: "{{ request.object.metadata.name }} has no owner"
//	metadata.name has no owner
func constant(l *read.Lowering, t *jmespath.Template, known []string) string {
	var b strings.Builder
	says := false
	for _, part := range t.Parts {
		if part.Var != nil {
			b.WriteString(known[0])
			known = known[1:]
			continue
		}
		b.WriteString(part.Text)
		says = says || strings.ContainsFunc(part.Text, unicode.IsLetter)
	}
	if !says {
		return violated(l)
	}
	return b.String()
}

// shown is a value in a message. One that is missing costs no more than its place in it. Of one
// of unknown type that is no text, number or boolean CEL makes no text; the API server shows the
// constant message then.
func shown(l *read.Lowering, j read.Operand) read.Operand {
	if j.Form == read.SequenceForm {
		return shownList(l, j)
	}
	if j.Form != read.PlaceForm || j.V.Never || read.IsConfigured(j) || !j.V.Dynamic() && j.V.Kind() != schema.String {
		return j
	}
	v, ok := read.Expr(l, j)
	if !ok {
		return j
	}
	if either, short := j.V.OrElse(cel.String(none)); short && j.V.MayMiss() {
		v = either
	}
	if j.V.Dynamic() {
		v = cel.Func(cel.FuncString, read.Dyn(v))
	}
	return read.StringOf(v)
}

// shownList is a list of texts as Kyverno shows one, in JSON:
//
//	{{ request.object.spec.containers[].name }}
//	'[' + object.spec.containers.map(container, '"' + container.name + '"').join(',') + ']'
//
// Lists of all else, and those that may be missing, have no text in CEL.
func shownList(l *read.Lowering, j read.Operand) read.Operand {
	if read.KindOf(j.S.Elem()) != schema.String || !j.S.Ordered() || !j.S.Null().IsFalse() {
		return j
	}
	const quote = `"`
	quoted := func(l *read.Lowering, x read.Operand) read.Operand {
		v, _ := read.Expr(l, x)
		return read.StringOf(cel.String(quote).Plus(v).Plus(cel.String(quote)))
	}
	texts := read.Mapped{L: l, Of: j.S, F: quoted}
	if m, ok := j.S.(read.Mapped); ok && read.Present(l, m.F(l, read.ElementOf(m.Of, cel.Ident("x")))).IsTrue() {
		texts = read.Mapped{L: l, Of: m.Of, F: func(l *read.Lowering, x read.Operand) read.Operand { return quoted(l, m.F(l, x).Settled()) }}
	}
	list, ok := texts.List(l, false)
	if !ok {
		return j
	}
	return read.StringOf(cel.String("[").Plus(list.Call(cel.FuncJoin, cel.String(","))).Plus(cel.String("]")))
}

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

// nameOffenders makes the message of a rule that is one loop over named elements,
// as containers are, say which of them violate it. The names become a variable;
// the rule holds where there are none.
func nameOffenders(l *read.Lowering, u *pack.Unit) {
	list, x, body, ok := u.Holds.Expr.Loop()
	if !ok || u.Holds.Errs || !namedElements(l, list) {
		return
	}
	fails := cel.Not(body).Simplify()
	if search := body.Violation(nil).Simplify(); negations(search) < negations(fails) {
		fails = search
	}
	bad := list.Macro(cel.MacroFilter, x, fails.Value).Macro(cel.MacroMap, x, x.Field("name"))
	binder := x.String()
	names := read.Let(l, "bad"+strings.ToUpper(binder[:1])+binder[1:]+"s", bad)
	u.Holds.Expr = names.Size().Eq(cel.Int(0))
	u.Message = u.Message.Naming(names)
}

// negations is how often a condition says not.
func negations(b cel.Bool) int { return strings.Count(b.String(), "!") }

// namedElements tells that the elements of a list, or of the variable for joined
// lists, always have a name.
func namedElements(l *read.Lowering, list cel.Value) bool {
	t := query.ListType(l, list)
	if path, ok := list.Path(); ok && len(path) == 2 && path[0] == "variables" {
		t = l.ListTypes[path[1]]
	}
	if t == nil || t.Elem == nil || t.Elem.Kind != schema.Object {
		return false
	}
	f, ok := t.Elem.Fields["name"]
	return ok && f.Required && f.Type.Kind == schema.String
}
