package translate

import (
	"maps"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A lowering is the walk over one rule for one kind of object and one set of
// operations. It decides and builds at once: where a construct has no native
// form it panics with a refusal, which lower turns into the rule's reason.
type lowering struct {
	b       *binders
	opts    *Options
	release release
	policy  *policy.Policy
	rule    *policy.Rule
	target  target
	ops     []string // the operations this walk is for
	pos     diag.Pos // of the construct at hand

	// object and old are the roots of the request's objects; literal null where the
	// operations have none.
	object, old jval
	// prior is set while the old object is judged in place of the new one.
	prior bool
	// now is the walk over the new object while the old one is judged.
	now *lowering
	// deleteRewrite makes request.object mean the old object, inside {{ }} on DELETE.
	deleteRewrite bool
	// errs is set by everything that builds an expression which may be an error.
	errs bool
	// readsImages is set by everything that reads images, which is an error where
	// one is no reference.
	readsImages bool
	// runtimeTexts are the texts that leaves of the pattern at hand stand for, and
	// patternNeeds what must be there for them.
	runtimeTexts []cel.Value
	patternNeeds []cel.Bool

	scope     map[string]jval // foreach variables
	element   *jval           // what patterns in a foreach look at
	facts     []cel.Bool      // what is known to hold where the walk is
	found     *[]cel.Bool     // where set, strict reads become soft and ask here for what must be there
	context   map[string]*contextVar
	variables []variable
	params    *paramUse
	listTypes map[string]*schema.Type // of the variables that are joined lists
	// usesNamespace is set where the match reads the labels of the namespace.
	usesNamespace bool
	// exception is set inside a PolicyException's match, which ignores operations
	// and does not apply namespace selectors to Namespaces.
	exception, ignoreOps bool
	notes                *diag.List
}

// A variable is a composed variable that the lowering made.
type variable struct {
	pos  diag.Pos
	name string
	expr cel.Value
}

// A refusal is why a rule has no native form.
type refusal struct{ diag.Diagnostic }

// unsupported refuses a construct for which the target has no expression.
func (l *lowering) unsupported(what string) refusal {
	return refusal{diag.Warnf(l.pos, diag.NoExpression, "%s has no native form; the webhook will judge this rule", what)}
}

// refuse is unsupported with a code of its own.
func (l *lowering) refuse(code diag.Code, format string, args ...any) refusal {
	return refusal{diag.Warnf(l.pos, code, format+"; the webhook will judge this rule", args...)}
}

// at sets the position for the refusals and notes of what follows.
func (l *lowering) at(pos diag.Pos) {
	if pos != (diag.Pos{}) {
		l.pos = pos
	}
}

// note tells the user of a difference, once.
func (l *lowering) note(code diag.Code, format string, args ...any) {
	if l.notes != nil {
		*l.notes = append(*l.notes, diag.Warnf(l.pos, code, format, args...))
	}
}

func (l *lowering) noteWildKey(pos diag.Pos, key string) {
	l.at(pos)
	l.note(diag.WildcardKey, "Kyverno takes an arbitrary one of the keys that match %s; here some matching key must satisfy the pattern, and under a negation none may match", key)
}

// failing is an expression that is an error, for what Kyverno errs on always.
func (l *lowering) failing(j jval) cel.Bool {
	l.errs = true
	name := j.hint
	if name == "" {
		name = "missing"
	}
	return dyn(cel.Map()).Field(name).Eq(cel.Lit(true).Value)
}

func (l *lowering) on(op string) bool { return slices.Contains(l.ops, op) }

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// template lowers a string of the source.
func (l *lowering) template(t *jmespath.Template) jval {
	if s, ok := t.Constant(); ok {
		return litOf(s)
	}
	if v := t.Single(); v != nil {
		return l.variable(v)
	}
	out := litOf("")
	for _, part := range t.Parts {
		switch {
		case part.Ref != nil:
			panic(l.unsupported("a reference $(...)"))
		case part.Var != nil:
			out = l.join(out, l.variable(part.Var))
		default:
			out = l.join(out, litOf(part.Text))
		}
	}
	return out
}

// join is the text of a and b.
func (l *lowering) join(a, b jval) jval {
	if b.form == choiceForm {
		return choice(b.c, l.join(a, *b.then), l.join(a, *b.els))
	}
	if a.form == choiceForm {
		return choice(a.c, l.join(*a.then, b), l.join(*a.els, b))
	}
	if a.form == litForm && b.form == litForm {
		return litOf(literalText(a.lit) + literalText(b.lit))
	}
	if a.form == litForm && literalText(a.lit) == "" {
		return l.likeText(b, l.text(b))
	}
	if b.form == litForm && literalText(b.lit) == "" {
		return l.likeText(a, l.text(a))
	}
	text := l.text(a).Plus(l.text(b))
	if isConfigured(b) {
		return l.likeText(b, text)
	}
	return l.likeText(a, text)
}

// text is j as it stands inside a longer string; an error where a key is missing.
func (l *lowering) text(j jval) cel.Value {
	if j.form == litForm {
		return cel.String(literalText(j.lit))
	}
	v, ok := l.expr(j)
	if ok {
		switch kindOf(j.typ()) {
		case schema.String:
			if shaped := j.v.shaped(); j.form == valForm && !shaped.IsTrue() {
				return cel.Cond(shaped, j.v.expr, cel.String("null"))
			}
			return v
		case schema.Int, schema.Bool, schema.IntOrString:
			if shaped := j.v.shaped(); j.form == valForm && !shaped.IsTrue() {
				return cel.Cond(shaped, cel.Func("string", j.v.expr), cel.String("null"))
			}
			return cel.Func("string", v)
		case schema.Any:
			// lists and maps, which Kyverno writes as JSON, are an error of string()
			l.note(diag.TextForm, "a list or map inside a text is an error here; Kyverno writes it as JSON")
			return cel.Cond(isNull(dyn(v)), cel.String("null"), cel.Func("string", dyn(v)))
		case schema.List:
			if j.form == streamForm {
				return cel.Cond(j.s.null(), cel.String("null"), l.jsonList(j))
			}
			return l.jsonList(j)
		}
	}
	panic(l.unsupported("the JSON text of a value inside a longer text"))
}

// jsonList is the JSON text of a list of strings.
func (l *lowering) jsonList(j jval) cel.Value {
	v, ok := l.expr(j)
	if !ok || kindOf(j.typ().Elem) != schema.String {
		panic(l.unsupported("the JSON text of a value inside a longer text"))
	}
	quoted := l.b.mapped(v, "item", func(x cel.Value) cel.Value { return cel.Func("strings.quote", x) })
	return cel.String("[").Plus(quoted.Call("join", cel.String(","))).Plus(cel.String("]"))
}

// variable lowers one {{ }}.
func (l *lowering) variable(v *jmespath.Variable) jval {
	if v.Pos != (diag.Pos{}) {
		l.at(v.Pos)
	}
	if v.Expr == nil {
		if j, ok := l.nested(v); ok {
			return j
		}
		panic(l.unsupported("an expression that is put together from variables"))
	}
	saved := l.deleteRewrite
	l.deleteRewrite = true
	defer func() { l.deleteRewrite = saved }()
	return l.query(v.Expr)
}

// nested handles a body that is nothing but an inner variable.
func (l *lowering) nested(v *jmespath.Variable) (jval, bool) {
	if v.Body == nil {
		return jval{}, false
	}
	j := l.template(v.Body)
	s, ok := j.lit.(string)
	if j.form != litForm || !ok {
		return jval{}, false
	}
	e, d := jmespath.Parse(s, v.Pos)
	if d != nil {
		return jval{}, false
	}
	return l.query(e), true
}

// node lowers a value of the source whose strings may hold variables.
func (l *lowering) node(n *policy.Node) jval {
	if n == nil {
		return litOf(nil)
	}
	l.at(n.Pos)
	switch n.Kind {
	case policy.String:
		return l.template(l.parseTemplate(n.Str, n.Pos))
	case policy.Int:
		return litOf(float64(n.Int))
	case policy.List:
		return l.listNode(n)
	case policy.Map:
		if !hasVariables(n) {
			return litOf(floats(n.Value()))
		}
		out := jval{form: hashForm}
		for _, f := range n.Fields {
			out.keys = append(out.keys, f.Key)
			out.multi = append(out.multi, l.node(f.Value))
		}
		return out
	}
	return litOf(n.Value())
}

func (l *lowering) listNode(n *policy.Node) jval {
	if !hasVariables(n) {
		return litOf(floats(n.Value()))
	}
	out := jval{form: multiForm}
	for _, item := range n.Items {
		out.multi = append(out.multi, l.node(item))
	}
	return out
}

func (l *lowering) parseTemplate(s string, pos diag.Pos) *jmespath.Template {
	t, d := jmespath.ParseTemplate(s, pos)
	if d != nil {
		panic(refusal{diag.Warnf(d.Pos, diag.NoExpression, "%s; the webhook will judge this rule", d.Message)})
	}
	return t
}

// hasVariables tells whether any string below n may hold a variable or reference.
func hasVariables(n *policy.Node) bool {
	if n.Kind == policy.String {
		t, d := jmespath.ParseTemplate(n.Str, n.Pos)
		if d != nil {
			return true
		}
		c, ok := t.Constant()
		return !ok || c != n.Str
	}
	for _, item := range n.Items {
		if hasVariables(item) {
			return true
		}
	}
	for _, f := range n.Fields {
		if hasVariables(f.Value) || hasVariables(&policy.Node{Kind: policy.String, Str: f.Key}) {
			return true
		}
	}
	return false
}

// floats makes the numbers of a literal float64, the one number type.
func floats(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = floats(v[k])
		}
	}
	return v
}
