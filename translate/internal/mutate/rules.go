package mutate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/rule"
	"github.com/kvap/kvap/vap"
)

// Mutate rules of a policy run one after the other, each on what the ones before it made of
// the object. The API server makes the mutations of one policy object in their order, and
// promises no order among objects; a webhook comes behind all of them. So rules that may be
// about one object share a policy object, or all are the webhook's.

// A change is a mutate rule lowered for one target and some operations.
type change struct {
	index      int // of the rule among those of the policy
	rule       *policy.Rule
	target     native.Target
	ops        []native.Operation
	conditions []vap.Condition // of the policy
	selector   vap.Selector
	match      cel.Bool
	pre        partial.Bool // preconditions, and what the patch asks before it changes anything
	mutations  []mutating.Mutation
	parts      []mutating.Mutation // the same in two steps, where that is shorter
	edits      []edit              // the same, where it may come together with others
	effects    []effect
	errs       bool // a mutation may be an error
	variables  []vap.Variable
	params     *native.Params
	reaches    []string
}

// text is everything that a change says of an object.
func (c change) text() string {
	parts := []string{strconv.Itoa(c.index), c.match.String(), c.pre.Expr.String(), native.SelectorKey(c.selector), c.params.Key(), strings.Join(c.reaches, ",")}
	for _, m := range c.mutations {
		parts = append(parts, string(m.Type), m.Expr.String())
	}
	for _, v := range c.variables {
		parts = append(parts, v.Name, v.Expr.String())
	}
	return strings.Join(parts, "\x00")
}

// LowerRules lowers the mutate rules of a policy, which are among rules. Where those of several
// policies share objects, it gives what they can share.
func LowerRules(p *policy.Policy, rules []api.RuleResult, o *api.Options) (units []Unit) {
	w := &mutateRules{policy: p, opts: o, rules: rules, targets: make([][]native.Target, len(rules)), of: make([][]change, len(rules)), why: make([]*diag.Diagnostic, len(rules))}
	for i := range rules {
		if r := &rules[i]; r.Changes() {
			w.lower(i)
		}
	}
	for w.leave() { // each round leaves a rule less
		w.drafts = nil
		w.assemble()
	}
	for i := range rules {
		r := &rules[i]
		switch {
		case !r.Changes() || r.Rule.Invalid:
		case w.why[i] != nil:
			r.Refuse(*w.why[i])
		default:
			r.Target, r.Found = api.Native, r.Found.Sort()
			r.Codes = api.CodesOf(r.Found)
			for _, d := range w.drafts {
				if slices.Contains(d.rules, i) {
					r.Mutating = append(r.Mutating, d.Draft)
				}
			}
		}
	}
	for _, d := range w.drafts {
		units = append(units, w.unitOf(d))
	}
	return units
}

// mutateRules are the mutate rules of a policy on their way to drafts.
type mutateRules struct {
	policy  *policy.Policy
	opts    *api.Options
	rules   []api.RuleResult
	targets [][]native.Target // by rule; nil where they are not known
	of      [][]change        // by rule
	why     []*diag.Diagnostic
	drafts  []sharedDraft
	done    bool
}

// A sharedDraft is a draft and the rules that it is of.
type sharedDraft struct {
	*mutating.Draft
	rules []int
	same  []meeting
}

// lower lowers a rule in all its forms.
func (w *mutateRules) lower(i int) {
	r := &w.rules[i]
	why := rule.DependentRules(w.policy)
	if why == nil {
		why = noMutations(w.policy, r.Rule.Pos, w.opts)
	}
	if r.Rule.Invalid {
		d := diag.Warnf(r.Rule.Pos, diag.InvalidRule, "the rule %s could not be read", r.Rule.Name)
		why = &d
	}
	var rewritten diag.List
	conditions, refused := celrule.PolicyConditions(w.policy, w.opts, &rewritten)
	if why == nil {
		why = refused
	}
	if w.why[i] = why; why != nil {
		return
	}
	r.Found = append(r.Found, rewritten...)
	for _, f := range r.Forms {
		base := &read.Lowering{Opts: w.opts, Release: read.Release(w.opts.Release), Policy: w.policy, Rule: f.Rule, PolicyConditions: conditions, Pos: f.Rule.Pos, Notes: &r.Found, Gathered: read.NewGathered()}
		why := rule.RefusalOf(base, func() {
			targets := rule.Targets(base)
			if slices.ContainsFunc(targets, func(t native.Target) bool {
				return t.KindWild == "" && slices.Contains(match.WrittenBy(t.Group, t.Resource), match.EveryKind)
			}) {
				r.Found = append(r.Found, changesEverything(f.Rule.Pos))
			}
			noteCollapsed(base, targets)
			for _, t := range targets {
				if w.policy.Namespaced() && t.Scope == native.Cluster {
					continue
				}
				w.targets[i] = append(w.targets[i], t)
				w.of[i] = append(w.of[i], changesOf(base, i, t)...)
			}
		})
		if why != nil {
			w.why[i] = why
			return
		}
	}
}

// changesEverything tells of a rule on every kind.
func changesEverything(at diag.Pos) diag.Diagnostic {
	return diag.Warnf(at, diag.DefaultFilters, "the rule is on every kind, and so changes all Events, Leases and Nodes that the control plane writes; "+
		"Kyverno's default resource filters keep policies away from these, and do not travel with a policy: exclude what it is not meant for")
}

// leave leaves what is native to the webhook where it has to run with a rule that is the
// webhook's. It tells whether there are drafts to make.
func (w *mutateRules) leave() bool {
	before := w.done
	w.done = true
	changed := !before
	for again := true; again; {
		again = false
		for i := range w.rules {
			if w.why[i] == nil || !w.rules[i].Changes() {
				continue
			}
			for k := range w.rules {
				if w.why[k] == nil && w.rules[k].Changes() && w.meet(i, k) {
					d := diag.Warnf(w.rules[k].Rule.Pos, w.why[i].Code, "the mutate rules of a policy run in order, and the rule %s has no native form; the webhook will run this rule too", w.rules[i].Rule.Name)
					w.why[k], again, changed = &d, true, true
				}
			}
		}
	}
	return changed
}

// meet tells whether two rules may be about one object.
func (w *mutateRules) meet(i, k int) bool {
	if len(w.targets[i]) == 0 || len(w.targets[k]) == 0 {
		return true // nothing is known of one of them
	}
	return mayMeet(w.targets[i], w.targets[k])
}

// mayMeet tells whether an object may be of some of both targets.
func mayMeet(some, others []native.Target) bool {
	return slices.ContainsFunc(some, func(t native.Target) bool {
		return slices.ContainsFunc(others, func(u native.Target) bool { return t.Key() == u.Key() || isVague(t) || isVague(u) })
	})
}

// isVague tells of a target that other targets may be among.
func isVague(t native.Target) bool {
	return t.IsAnyResource() || t.KindWild != "" || t.Guessed || t.Group == "*" || t.Version == "*" || strings.Contains(t.Resource, "*")
}

// A meeting is a target and an operation, with the changes that it meets in order.
type meeting struct {
	target  native.Target
	op      native.Operation
	changes []change
	key     string
}

// assemble makes drafts: targets and operations that meet the same changes share one.
func (w *mutateRules) assemble() {
	var meetings []meeting
	rules := 0
	for i := range w.rules {
		if w.why[i] != nil || !w.rules[i].Changes() {
			continue
		}
		rules++
		for _, c := range w.of[i] {
			for _, op := range c.ops {
				k := slices.IndexFunc(meetings, func(m meeting) bool { return m.target.Key() == c.target.Key() && m.op == op })
				if k < 0 {
					k = len(meetings)
					meetings = append(meetings, meeting{target: c.target, op: op})
				}
				meetings[k].changes = append(meetings[k].changes, c)
				meetings[k].key += "\x01" + c.text() + c.rule.Expansion
			}
		}
	}
	if rules > 1 {
		w.refuseVague(meetings)
	}
	used := map[string]bool{}
	var keys []string
	for _, m := range meetings {
		if slices.Contains(keys, m.key) {
			continue
		}
		keys = append(keys, m.key)
		var same []meeting
		for _, n := range meetings {
			if n.key == m.key {
				same = append(same, n)
			}
		}
		w.draft(same, used, rules)
	}
}

// refuseVague leaves rules to the webhook of which nobody can tell whether they are about
// the same objects.
func (w *mutateRules) refuseVague(meetings []meeting) {
	for _, m := range meetings {
		if !isVague(m.target) || !slices.ContainsFunc(meetings, func(n meeting) bool { return n.target.Key() != m.target.Key() }) {
			continue
		}
		for _, c := range m.changes {
			w.refuse(c.index, c.rule.Pos, "a rule on any kind beside other mutate rules")
		}
	}
}

// refuse leaves a rule to the webhook.
func (w *mutateRules) refuse(rule int, at diag.Pos, what string) {
	if w.why[rule] == nil {
		d := diag.Warnf(at, diag.NoExpression, "%s has no native form; the webhook will run this rule", what)
		w.why[rule], w.done = &d, false
	}
}

// draft is the policy object of what meets the same changes.
func (w *mutateRules) draft(same []meeting, used map[string]bool, rules int) {
	changes := same[0].changes
	first := changes[0]
	d := &mutating.Draft{Draft: vap.Draft{
		Base: w.name(same, used, rules), FailurePolicy: string(w.policy.FailurePolicy),
		Conditions: slices.Clone(first.conditions),
	}}
	d.Constraints = vap.Constraints{Rules: w.resources(same), NamespaceSelector: first.selector}
	binding := vap.Binding{Reaches: first.reaches}
	if w.policy.Namespaced() {
		binding.NamespaceSelector.Labels = []vap.Label{{Key: pack.NameLabel, Value: w.policy.Namespace}}
	}
	out := sharedDraft{Draft: d, same: same}
	if slices.ContainsFunc(changes, func(c change) bool { return merges(c.rule.Mutate) }) {
		for _, m := range same {
			d.Collapsed = append(d.Collapsed, keyedLists(m.target.GVK)...)
		}
	}
	ignores := w.policy.FailurePolicy == policy.Ignore
	refuse := func(c change, what string) { w.refuse(c.index, c.rule.Pos, what) }
	var steps []step
	for member, c := range changes {
		out.rules = append(out.rules, c.index)
		w.add(d, &binding, c, first)
		if (len(changes) > 1 || len(c.mutations) > 1) && c.mayBeIgnored(ignores) {
			refuse(c, "several changes of which one may be an error that is ignored (failurePolicy: Ignore)")
		}
		if c.asksForZero(changes[:member]) {
			refuse(c, "a rule that asks for what one before it writes as false, 0 or an empty text, or leaves out of an element that it adds")
		}
		guard := c.asked(d, len(changes) == 1)
		if guard.IsTrue() && c.parts != nil && !(c.errs && ignores) {
			c.mutations, c.edits = c.parts, nil
		}
		if c.asksAgain(guard) {
			refuse(c, "a patch in several steps behind conditions that no match condition can ask")
		}
		steps = together(w.opts, steps, c.step(member, guard, ignores), readableLength)
	}
	d.Mutations = mutationsOf(steps)
	d.Repeatable = isRepeatable(changes)
	if d.Repeatable && !slices.ContainsFunc(d.Mutations, func(m mutating.Mutation) bool { return m.Type == mutating.JSONPatch }) {
		d.Reinvocation = mutating.IfNeeded // as Kyverno's webhook; a JSON patch may take away what others have added since
	}
	nameParts(d)
	w.besideWebhook(same, d.Repeatable)
	d.Bindings = []vap.Binding{binding}
	pack.Describe(&d.Draft, w.policy)
	if why := refusedMutations(d, w.opts); why != nil {
		for _, i := range out.rules {
			if w.why[i] == nil {
				w.why[i], w.done = why, false
			}
		}
	}
	w.drafts = append(w.drafts, out)
}

// add gives a draft what a change brings along: its rule, its params and its variables. It
// refuses the rule where these are not the first one's.
func (w *mutateRules) add(d *mutating.Draft, binding *vap.Binding, c, first change) {
	refuse := func(what string) { w.refuse(c.index, c.rule.Pos, what) }
	d.Members = append(d.Members, vap.Member{Pos: c.rule.Pos, Policy: native.MemberName(w.policy), Rule: c.rule.Name, Origin: c.rule.Origin})
	if native.SelectorKey(c.selector) != native.SelectorKey(first.selector) {
		refuse("a selector of namespaces that another mutate rule of the policy does not have")
	}
	if p := c.params; p != nil {
		if d.ParamKind != nil && p.Key() != first.params.Key() {
			refuse("a second ConfigMap")
		}
		p.AddTo(&d.Draft)
		binding.Param = &vap.ParamRef{Name: p.Name, Namespace: p.Namespace, NotFound: "Deny"}
	}
	for _, v := range c.variables {
		if slices.ContainsFunc(d.Variables, func(x vap.Variable) bool { return x.Name == v.Name && !cel.Equal(x.Expr, v.Expr) }) {
			refuse("a variable of the name of another")
		}
		d.Variables = append(d.Variables, v)
	}
}

// name is the policy's name, with as much behind it as tells the draft from its others.
func (w *mutateRules) name(same []meeting, used map[string]bool, rules int) string {
	c := same[0].changes[0]
	name := celrule.ValidatingName(w.policy)
	if len(same[0].changes) == 1 && rules > 1 {
		name += "-" + strings.ToLower(c.rule.Origin)
	}
	if c.rule.Expansion != "" {
		name += "-" + c.rule.Expansion
	}
	base := name
	for _, more := range []string{strings.ToLower(c.target.Parent.Kind), strings.ToLower(string(same[0].op))} {
		if used[name] && more != "" {
			name += "-" + more
		}
	}
	for i := 2; used[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	used[name] = true
	return name
}

// resources are the resource rules of meetings.
func (w *mutateRules) resources(same []meeting) []vap.ResourceRule {
	targets, ops := make([]native.Target, len(same)), make([]native.Operation, len(same))
	for i, m := range same {
		targets[i], ops[i] = m.target, m.op
	}
	return pack.ResourceRules(targets, ops, w.policy.Namespaced())
}

// changesOf lowers a rule for a target, once for all operations where it does not tell them
// apart.
func changesOf(l *read.Lowering, index int, t native.Target) (out []change) {
	l.SetPos(l.Rule.Pos)
	if l.Policy.EmitWarning {
		panic(l.Unsupported("a warning of what a rule changes (emitWarning)"))
	}
	for _, f := range query.Filters(l.Rule.Match) {
		if slices.Contains(f.Operations, string(native.Delete)) || slices.Contains(f.Operations, string(native.Connect)) {
			panic(l.Unsupported("a mutate rule on DELETE or CONNECT, which the API server never mutates,"))
		}
	}
	var ops []native.Operation
	for _, op := range t.PossibleOperations() {
		if (op == native.Create || op == native.Update) && query.SomeFilterHas(l, op) {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	return rule.ForOperations(l, ops, func(ops []native.Operation) (change, bool) { return changeOf(l, index, t, ops) })
}

// changeOf lowers a rule for a target and operations; false where it changes nothing.
func changeOf(l *read.Lowering, index int, t native.Target, ops []native.Operation) (change, bool) {
	w := rule.Walk(l, t, ops)
	c := change{index: index, rule: l.Rule, target: t, ops: ops, conditions: l.PolicyConditions, reaches: match.Reaches(l.Opts, l.Policy, l.Rule)}
	c.selector = native.PlainSelector(w.Selected)
	for _, e := range l.Opts.Exceptions {
		if !e.Invalid && len(e.PodSecurity) > 0 && match.Excepts(l, e) {
			panic(l.Unsupported("an exception for the Pod Security Standards"))
		}
	}
	var asked bool
	if c.match, c.pre, asked = rule.Asked(w); !asked {
		return c, false
	}
	// Variables are filled in before anything is asked: where one is missing the rule errs,
	// whatever the patch would do.
	patch := patchOf(w, l.Rule.Mutate)
	if patch.filling.Unsure {
		panic(l.Unsupported("a variable in a patch that may be an error"))
	}
	c.mutations, c.parts, c.edits, c.effects, c.errs = patch.mutations, patch.parts, patch.edits, patch.effects, patch.filling.Native
	if len(c.mutations) == 0 {
		if c.pre.Errs || patch.asked.Errs || !patch.filling.None() {
			panic(l.Unsupported("a rule that changes nothing, and may be an error,"))
		}
		return c, false
	}
	left, read := unread(w, patch)
	c.errs = c.errs || read
	filledIn := w.Told(left, cel.True())
	given := cel.Simplify(filledIn.Expr.Knowing(cel.And(c.match, c.pre.Expr))).AsBool() // without asking again
	c.pre = c.pre.Then(filledIn.As(given)).Then(patch.asked)
	c.variables, c.params = w.Variables, w.Params
	return c, true
}
