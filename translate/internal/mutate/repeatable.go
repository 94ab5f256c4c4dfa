package mutate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// A policy makes the same of an object that it has changed already where nothing that decides
// what it writes is written by it. While a policy goes from the webhook to the API server, or
// back, both run it, one after the other; and an API server runs it again (reinvocation) when a
// webhook has changed the object.
//
// Of a rule alone the conditions may read what it writes: where they hold no more, nothing is
// done, and where they did not hold, nothing was. So may +(key): what was added is there then.

// runsOnce is why a policy that may be run twice has no native form.
func runsOnce(at diag.Pos) diag.Diagnostic {
	return diag.Warnf(at, diag.RunsOnce, "what the rule makes of an object that it has changed already may be something else, and while a rule goes from the webhook to the API server both run it; the webhook will run this rule")
}

// lateKind is why a policy on a kind that is not built in has no native form beside a webhook.
func lateKind(at diag.Pos) diag.Diagnostic {
	return diag.Warnf(at, diag.LateKind, "API servers refuse what a MutatingAdmissionPolicy changes of a kind for some seconds after it is defined, and the rule is about one that is not built in; the webhook will run this rule")
}

// isLate tells of a target that may be a kind which API servers come to know while they run.
func isLate(o *api.Options, t native.Target) bool {
	return isVague(t) || o.Schemas.Custom(t.Parent)
}

// An effect is what a patch does: what it writes, and what decides about that.
type effect struct {
	writes    [][]string
	additions [][]string // of these, those that are only made where nothing is
	reads     []placedValue
	zeros     [][]string // what is written as false, 0 or an empty text, or left to the API server's defaults
	orders    [][]string // the lists of which it writes to an element by its place
	never     bool       // it is another one each time
}

// A placedValue is an expression, and the places of the variables in it.
type placedValue struct {
	value  cel.Value
	places map[string][]string
}

// effectOf is the effect of edits, in which variables have places.
func (m *merging) effectOf(edits []edit, places map[string][]string) (out effect) {
	for _, e := range edits {
		out.join(m.effectOfEdit(e, places))
	}
	return out
}

func (m *merging) effectOfEdit(e edit, places map[string][]string) (out effect) {
	read := func(v cel.Value) {
		if !v.IsZero() {
			out.reads = append(out.reads, placedValue{v, places})
		}
	}
	read(e.key)
	switch {
	case e.list != nil:
		for _, item := range e.list.items {
			in := map[string][]string{}
			for name, path := range places {
				in[name] = path
			}
			if !item.x.IsZero() {
				in[item.x.VariableName()] = append(slices.Clone(e.path), cel.EachElement)
				// Where it is not chosen for want of something to add, it is not the next time.
				out.reads = append(out.reads, placedValue{item.asked.Value, in})
			}
			read(item.id)
			if item.x.IsZero() || !item.chosen.IsTrue() { // the order changes
				out.writes = append(out.writes, append(slices.Clone(e.path), cel.Order))
			}
			if item.x.IsZero() {
				out.writes = append(out.writes, append(slices.Clone(e.path), cel.EachElement, e.list.key))
				out.zeros = append(out.zeros, defaulted(e.path, func(field string) bool {
					return slices.ContainsFunc(item.fields, func(f edit) bool { return f.path[len(f.path)-1] == field })
				})...)
			}
			out.join(m.effectOf(item.fields, in))
		}
		return out
	case e.fields != nil:
		out.join(m.effectOf(e.fields, places))
		return out
	}
	out.writes = append(out.writes, e.path)
	if isZero(e.set) {
		out.zeros = append(out.zeros, e.path)
	}
	if !e.when.IsTrue() {
		out.additions = append(out.additions, e.path)
	}
	switch {
	case !e.set.IsZero():
		read(e.set)
	case e.value != nil:
		read(written(m.Lowering, e.value, e.at.Typ, ""))
	}
	return out
}

func (e *effect) join(other effect) {
	e.writes, e.additions, e.reads = append(e.writes, other.writes...), append(e.additions, other.additions...), append(e.reads, other.reads...)
	e.zeros, e.orders = append(e.zeros, other.zeros...), append(e.orders, other.orders...)
	e.never = e.never || other.never
}

// effectOfOperations is the effect of operations that add, replace or remove.
func effectOfOperations(ops []operation, places map[string][]string) (out effect) {
	for _, o := range ops {
		path, at := []string{}, ""
		for _, part := range o.at {
			at += part.Prefix()
			if !part.IsText() {
				at += cel.EachElement
			}
		}
		for _, step := range strings.Split(at, "/")[1:] {
			if _, err := strconv.Atoi(step); err == nil {
				step = cel.EachElement
				out.orders = append(out.orders, append(slices.Clone(path), cel.Order))
			}
			path = append(path, strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~"))
		}
		last := path[len(path)-1]
		out.never = out.never || last == "-" || last == cel.EachElement || o.op == "move"
		out.writes = append(out.writes, path)
		if isZero(o.value) {
			out.zeros = append(out.zeros, path)
		}
		if (last == "-" || last == cel.EachElement) && !o.value.IsZero() {
			_, names, _ := o.value.Made()
			out.zeros = append(out.zeros, defaulted(path[:len(path)-1], func(field string) bool { return slices.Contains(names, field) })...)
		}
		if o.loop != nil {
			out.reads = append(out.reads, placedValue{o.loop.when.Value, places})
		}
		if !o.value.IsZero() {
			out.reads = append(out.reads, placedValue{o.value, places})
		}
	}
	return out
}

// isRepeatable tells that changes that run one after the other change nothing more when they
// run again.
func isRepeatable(changes []change) bool {
	var effects []effect
	var conditions []placedValue
	var variables []vap.Variable
	mayErr := false
	for _, c := range changes {
		effects, variables = append(effects, c.effects...), append(variables, c.variables...)
		mayErr = mayErr || c.pre.Errs || c.errs
		for _, one := range append([]vap.Condition{{Expr: c.match}, {Expr: c.pre.Expr}}, c.conditions...) {
			// has(labels) && has(labels.a) is about labels.a alone, and says so in its short form.
			conditions = append(conditions, placedValue{one.Expr.Value.Short(), nil})
		}
	}
	composed := byName(variables)
	var all effect
	for i, e := range effects {
		for k, other := range effects {
			if i != k && slices.ContainsFunc(slices.Concat(e.additions, e.orders), func(path []string) bool { return meets(path, other.writes) }) {
				return false
			}
		}
		all.join(e)
	}
	if len(effects) > 1 || mayErr {
		all.reads = append(all.reads, conditions...)
	}
	return !all.never && len(effects) > 0 && !slices.ContainsFunc(all.reads, func(r placedValue) bool { return r.meets(all.writes, composed) })
}

// meets tells that some place decides about a value.
func (r placedValue) meets(writes [][]string, composed map[string]cel.Value) bool {
	places := map[string][]string{"object": {}}
	for name, path := range r.places {
		places[name] = path
	}
	return slices.ContainsFunc(r.value.Decides(places, composed), func(path []string) bool { return meets(path, writes) })
}

// meets tells that a place is one of others, above or below one.
func meets(path []string, others [][]string) bool {
	return slices.ContainsFunc(others, func(other []string) bool {
		n := min(len(path), len(other))
		return slices.EqualFunc(path[:n], other[:n], func(a, b string) bool { return a == b || isAny(a, b) || isAny(b, a) })
	})
}

// isAny tells that a step stands for another one, among others.
func isAny(step, other string) bool {
	return (step == cel.EachElement || step == anyKeyStep) && other != cel.Order
}

// anyKeyStep is the step of a key of a map that is known at run time.
const anyKeyStep = "*"

// isRepeatableDraft is isRepeatable of a draft in CEL as it was written: nothing that it reads
// of the object is what it writes, and each operation writes a key of a map.
func isRepeatableDraft(d *mutating.Draft) bool {
	composed := byName(d.Variables)
	var reads []cel.Value
	for _, c := range d.Conditions {
		reads = append(reads, c.Expr.Value)
	}
	var writes [][]string
	for _, m := range d.Mutations {
		if m.Type == mutating.JSONPatch && !addsKeys(m.Expr) {
			return false
		}
		for _, path := range m.Expr.Sets() {
			writes = append(writes, strings.Split(path, "/"))
		}
		reads = append(reads, m.Expr)
	}
	return len(writes) > 0 && !slices.ContainsFunc(reads, func(v cel.Value) bool { return placedValue{v, nil}.meets(writes, composed) })
}

// addsKeys tells of operations that all write what they add at a path that is known, of a key.
func addsKeys(v cel.Value) bool {
	ops, paths := v.FieldsOf("JSONPatch", "op"), v.FieldsOf("JSONPatch", "path")
	for _, op := range ops {
		if !op.IsText() || op.Prefix() != "add" {
			return false
		}
	}
	for _, path := range paths {
		text := path.Prefix()
		last := text[strings.LastIndexByte(text, '/')+1:]
		if _, err := strconv.Atoi(last); !path.IsText() || err == nil || last == "-" {
			return false
		}
	}
	return len(ops) > 0 && len(ops) == len(paths)
}

// besideWebhook leaves to the webhook what is not to run beside it.
func (w *mutateRules) besideWebhook(same []meeting, repeatable bool) {
	late := slices.ContainsFunc(same, func(m meeting) bool { return isLate(w.opts, m.target) })
	if !w.opts.Repeatable || repeatable && !late {
		return
	}
	for _, c := range same[0].changes {
		if w.why[c.index] != nil {
			continue
		}
		d := runsOnce(c.rule.Pos)
		if late {
			d = lateKind(c.rule.Pos)
		}
		w.why[c.index], w.done = &d, false
	}
}

// What a mutate rule asks before it changes anything becomes match conditions where the rule has
// its policy object for itself; where others share it, each mutation asks. What has been asked is
// not asked again in what is made.

// inlined is a condition with the variables written out, for match conditions, which have none.
func (c change) inlined(b cel.Bool) cel.Bool {
	return vap.Inlined(b.Value, c.variables).AsBool()
}

// told is what holds where a mutation is made.
func (c change) told() cel.Bool {
	return c.inlined(c.guard())
}

// asked makes match conditions of what a change asks, where it is alone and they can ask it;
// guard is the rest.
func (c change) asked(d *mutating.Draft, alone bool) (guard cel.Bool) {
	if !alone || native.Mentions(c.told().Value, "namespaceObject") {
		return c.guard()
	}
	if !c.match.IsTrue() {
		d.Conditions = append(d.Conditions, vap.Condition{Pos: c.rule.Match.Pos, Name: "match", Expr: c.inlined(c.match).Rooted(), Sound: true})
	}
	if !c.pre.Expr.IsTrue() {
		d.Conditions = append(d.Conditions, vap.Condition{Pos: c.rule.Mutate.Pos, Name: "preconditions", Expr: c.inlined(c.pre.Expr).Rooted(), Sound: !c.pre.Errs})
	}
	return cel.True()
}

// guard is all that a change asks.
func (c change) guard() cel.Bool { return partial.Sure(c.match).Then(c.pre).Expr }

// mayBeIgnored tells that a change may be an error which a failure policy ignores.
func (c change) mayBeIgnored(ignores bool) bool { return ignores && (c.errs || c.pre.Errs) }

// asksAgain tells of a patch in several steps behind conditions about the object, which would be
// asked of what the first step has made of it.
func (c change) asksAgain(guard cel.Bool) bool {
	return len(c.mutations) > 1 && native.Mentions(guard.Value, "object")
}

// behind is a mutation that is made where guard holds.
func behind(guard cel.Bool, m mutating.Mutation) cel.Value {
	if guard.IsTrue() {
		return m.Expr
	}
	return cel.Cond(guard.Rooted(), m.Expr, nothing(m.Type))
}

// nothing is what changes nothing.
func nothing(kind mutating.PatchType) cel.Value {
	if kind == mutating.ApplyConfiguration {
		return cel.Struct("Object")
	}
	return cel.List()
}

// unread is what filling in a patch demands, and it does not look for itself when it is made: a
// mutation that reads what is not there is an error too. That is so where nothing is asked in
// between. What is demanded it reads then, and does not ask for.
func unread(l *read.Lowering, p patch) (left read.Demands, some bool) {
	if len(p.mutations) != 1 || !p.asked.Expr.IsTrue() {
		return p.filling, false
	}
	left = p.filling
	all := left.All()
	m := &p.mutations[0]
	m.Expr = m.Expr.Knowing(all)
	rest := m.Expr.AsBool().Unread(all, func(name string) (cel.Value, bool) { return read.Defined(l, name) })
	left.Conds, left.Loads = []cel.Bool{rest}, nil
	return left, !cel.Equal(rest.Value, all.Value)
}
