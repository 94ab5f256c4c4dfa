package compile

import (
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/generating"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// An Input is what was read.
type Input struct {
	Policies   []*policy.Policy
	Exceptions []*policy.Exception
	// Found is what reading them said. It explains the rules that could not be read.
	Found diag.List
}

// Options are the choices of a compilation.
type Options struct {
	Translate translate.Options // its Exceptions are those of the input, its ExcludedNamespaces those of Emit
	Emit      vap.EmitOptions
	// Cache is what compilations with these options have in common; nil for none.
	Cache *Cache
	// Stopped says that nobody wants the result any more. It is asked now and then, by
	// several at once; nil never says so.
	Stopped func() bool
	// Steps is how many steps lowering a policy may take; nil for what any may take.
	Steps func(*policy.Policy) int64
	// NamespaceLimit is how many native rules, and how many objects, the policies of one
	// namespace have at most; 0 for no limit.
	NamespaceLimit int
}

// A Result is what became of the input.
type Result struct {
	Policies []*policy.Policy
	Rules    []*Rule // in the order of the policies
	Objects  []vap.Objects
	// Mutating are the objects of the rules that mutate and are native.
	Mutating []mutating.Objects
	// Diagnostics are those of the compilation, without those of reading.
	Diagnostics diag.List
	// Stopped tells that there is nothing else here: nobody wanted it any more.
	Stopped bool

	lowered []translate.Lowered
	options translate.Options
}

// PackedByMatch are the drafts that the same rules would have if those of all policies
// shared them, of the rules on the resources that are asked about. ok is false where
// packing them so fails.
func (r Result) PackedByMatch(about func(group, resource string) bool) (drafts []*vap.Draft, ok bool) {
	o := r.options
	o.Pack, o.Each = translate.PackMatch, cores.Each
	fault := guard(diag.Pos{}, func() {
		ls := make([]translate.Lowered, len(r.lowered))
		for i, l := range r.lowered {
			ls[i] = l.About(about)
		}
		drafts = translate.Assemble(ls, o).Drafts
	})
	return drafts, fault == nil
}

// A Rule is what became of one rule as written.
type Rule struct {
	Policy *policy.Policy
	Source *policy.Rule // nil for a policy in CEL, which is one rule
	Target translate.Target
	Codes  []diag.Code // why it is not native, or what the user must know
	Reason string      // why it is not native, in words
	// Forms are the rule as Kyverno reports it: as written, and as expanded for the
	// controllers of pods.
	Forms []*Form
	// Objects are indexes of Result.Objects, and Mutating of Result.Mutating.
	Objects, Mutating []int
	// Generating are the drafts of a rule that generates.
	Generating []*generating.Draft `json:"-"`
	// Existing are the drafts of a rule with targets.
	Existing []*mutating.Existing `json:"-"`
	// Reaches are the excluded namespaces in which the rule counts, for it names them.
	Reaches []string
}

// ObjectNames are the names of the native policies that have a rule.
func (r Result) ObjectNames(rule *Rule) (names []string) {
	for _, i := range rule.Objects {
		names = append(names, r.Objects[i].Policy.Name)
	}
	for _, i := range rule.Mutating {
		names = append(names, r.Mutating[i].Policy.Name)
	}
	return names
}

// Pos is the place of the rule.
func (r *Rule) Pos() diag.Pos {
	if r.Source == nil {
		return r.Policy.Pos
	}
	return r.Source.Pos
}

// Name is the rule's name as written.
func (r *Rule) Name() string {
	if r.Source == nil {
		return r.Policy.Name
	}
	return r.Source.Name
}

// Type is validate, mutate, generate or verifyImages; "" when a rule has no body.
func (r *Rule) Type() string {
	switch {
	case r.Source != nil:
		return r.Source.Type()
	case r.Policy.Mutating != nil:
		return "mutate"
	case r.Policy.Generating != nil:
		return "generate"
	}
	return "validate"
}

// Mutates tells of a rule that changes the object of a request.
func (r *Rule) Mutates() bool {
	if r.Source != nil {
		return r.Source.Mutate != nil && !r.Source.Mutate.Existing
	}
	return r.Policy.Mutating != nil && !r.Policy.Mutating.ChangesOthers()
}

// PolicyName is how users call the policy: with the namespace of a namespaced one.
func (r *Rule) PolicyName() string {
	if r.Policy.Namespaced() {
		return r.Policy.Namespace + "/" + r.Policy.Name
	}
	return r.Policy.Name
}

// NotServed is why nothing of kvap carries out a rule that has no native form; empty where
// the webhook does.
func (r *Rule) NotServed() string {
	if r.Target != translate.Webhook || r.Source == nil {
		return ""
	}
	if what, more := r.Source.VerifiesMore(); more {
		return "kvap does not verify " + what.Value + "; leave the rule with Kyverno"
	}
	return ""
}

// A Form is a rule by a name that Kyverno reports.
type Form struct {
	Rule   *Rule
	Name   string
	Source *policy.Rule // as expanded; nil for a policy in CEL
	Places []Place
}

// A Place is where a form is in the objects.
type Place struct {
	Object int // index of Result.Objects
	Member int // of the object's draft
}

// Policies compiles policies that go into the same cluster.
func Policies(in Input, o Options) (result Result) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case budget.Stopped:
			result = Result{Stopped: true}
		default:
			panic(v)
		}
	}()
	o.Translate.Exceptions, o.Translate.ExcludedNamespaces = in.Exceptions, o.Emit.Excluded()
	if o.Translate.Mutations && o.Translate.Merging == nil {
		o.Translate.Merging = apiserver.NewMerging()
	}
	c := &compilation{options: o, crew: cores.NewCrew(), checkers: o.Cache.checkersFor(o)}
	c.lower(in.Policies)
	c.limit()
	c.assemble()
	for c.check() { // each round leaves a rule less
		c.assemble()
	}
	o.Cache.done()
	return c.result(in)
}

// A compilation is policies on their way to objects.
type compilation struct {
	options    Options
	crew       *cores.Crew
	checkers   *cores.Pool[*apiserver.Checker]
	lowered    []translate.Lowered
	translated translate.Result
	objects    []vap.Objects
	mutating   []mutating.Objects
	found      diag.List // of the output
}

// lower lowers each policy. One that makes the compiler fail has no native rule.
func (c *compilation) lower(ps []*policy.Policy) {
	c.lowered = make([]translate.Lowered, len(ps))
	costs := make([]lowerCost, len(ps))
	c.crew.Each(len(ps), func(i int) {
		p := ps[i]
		c.alive()
		steps := c.stepsOf(p)
		var known bool
		if c.lowered[i], costs[i], known = c.options.Cache.loweredBefore(p, steps); known {
			return
		}
		o := c.options.Translate
		o.Checker, o.Budget = pooled{c.checkers}, budget.New(steps, c.options.Stopped)
		if fault := guard(p.Pos, func() {
			o.Budget.Spend(p.Source.Bytes() + budget.OfSource(p))
			c.lowered[i] = translate.Lower(p, o)
		}); fault != nil {
			c.lowered[i] = translate.Refused(p, *fault)
		}
		costs[i] = lowerCost{steps: steps, spent: o.Budget.Spent()}
	})
	c.options.Cache.keepLowered(c.lowered, costs)
}

// stepsOf is how many steps lowering a policy may take.
func (c *compilation) stepsOf(p *policy.Policy) int64 {
	if c.options.Steps == nil {
		return budget.PerPolicy
	}
	return c.options.Steps(p)
}

// alive ends the compilation where nobody wants its result any more.
func (c *compilation) alive() {
	if c.options.Stopped != nil && c.options.Stopped() {
		panic(budget.Stopped{})
	}
}

// pooled checks for several at once.
type pooled struct {
	checkers *cores.Pool[*apiserver.Checker]
}

// Refusals implements translate.Checker.
func (p pooled) Refusals(of *admissionregistrationv1.ValidatingAdmissionPolicy) []vap.Refusal {
	checker := p.checkers.Take()
	defer p.checkers.Give(checker)
	return checker.Refusals(of)
}

// MutatingRefusals implements translate.Checker.
func (p pooled) MutatingRefusals(of *admissionregistrationv1.MutatingAdmissionPolicy) []vap.Refusal {
	checker := p.checkers.Take()
	defer p.checkers.Give(checker)
	return checker.MutatingRefusals(of)
}

// assemble packs what is native. Where that fails, the policies on which it fails
// alone are left out; each is packed by itself for that, on one core, so that its
// diagnostic names the function that failed.
func (c *compilation) assemble() {
	o := c.options.Translate
	o.Checker, o.Each = pooled{c.checkers}, c.crew.Each
	if guard(diag.Pos{}, func() { c.translated = translate.Assemble(c.lowered, o) }) == nil {
		return
	}
	alone := o
	alone.Each = nil
	for i, l := range c.lowered {
		if fault := guard(l.Policy.Pos, func() { translate.Assemble([]translate.Lowered{l}, alone) }); fault != nil {
			c.lowered[i] = translate.Refused(l.Policy, *fault)
		}
	}
	c.translated = translate.Assemble(c.lowered, o)
}

// check emits the drafts and has the objects checked. It tells whether a rule had
// to be left to the webhook, so that the drafts are no longer true.
func (c *compilation) check() (again bool) {
	c.objects, c.found = nil, nil
	refused := &refusals{drafts: c.translated.Drafts}
	emitter := vap.NewEmitter(c.options.Emit)
	alone := c.emitted()
	for i, d := range c.translated.Drafts {
		var objects vap.Objects
		var found diag.List
		if fault := guard(posOf(d), func() { objects, found = emitter.InCluster(alone[i].objects, alone[i].found) }); fault != nil {
			found = diag.List{*fault}
		}
		if found.HasErrors() {
			refused.emission(i, found)
			continue
		}
		c.objects, c.found = append(c.objects, objects), append(c.found, found...)
	}
	refused.invalid(c.objects, emitter, c.crew, c.checkers, c.options.Cache)
	c.emitMutating(refused)
	return c.leave(refused)
}

// emitMutating emits the drafts that mutate. The API server's compiler has been asked about
// their expressions before.
func (c *compilation) emitMutating(refused *refusals) {
	c.mutating = nil
	var all []mutating.Objects
	var found []diag.List
	if fault := guard(diag.Pos{}, func() {
		all, found = mutating.EmitAll(c.translated.Mutating, c.options.Translate.Release, c.options.Emit)
	}); fault != nil {
		for _, d := range c.translated.Mutating {
			refused.add(&d.Draft, d.AllMembers(), *fault)
		}
	}
	for i, o := range all {
		if d := c.translated.Mutating[i]; found[i].HasErrors() {
			refused.add(&d.Draft, d.AllMembers(), found[i][0])
			continue
		}
		c.mutating, c.found = append(c.mutating, o), append(c.found, found[i]...)
	}
}

// An emission is a draft as text, if only that were in the cluster.
type emission struct {
	objects vap.Objects
	found   diag.List
}

func (c *compilation) emitted() []emission {
	out := make([]emission, len(c.translated.Drafts))
	c.crew.Each(len(out), func(i int) {
		c.alive()
		d := c.translated.Drafts[i]
		if fault := guard(posOf(d), func() { out[i].objects, out[i].found = vap.Emit(d, c.options.Emit) }); fault != nil {
			out[i].found = diag.List{*fault}
		}
	})
	return out
}

// leave leaves the refused rules to the webhook.
func (c *compilation) leave(refused *refusals) (some bool) {
	left := map[*policy.Policy]translate.Left{}
	for _, r := range c.translated.Rules {
		if why := refused.of(r); why != nil {
			if left[r.Policy] == nil {
				left[r.Policy] = translate.Left{}
			}
			left[r.Policy][r.Rule] = *why
		}
	}
	for i, l := range c.lowered {
		if why := left[l.Policy]; why != nil {
			c.lowered[i] = l.Without(why)
		}
	}
	return len(left) > 0
}

// result is the list of all rules with their objects.
func (c *compilation) result(in Input) Result {
	out := Result{Policies: in.Policies, Objects: c.objects, Mutating: c.mutating, lowered: c.lowered, options: c.options.Translate}
	object := map[*vap.Draft]int{}
	for i, o := range c.objects {
		object[o.Draft] = i
	}
	errors := errorsOf(in)
	found := c.found
	for _, t := range c.translated.Rules {
		r := &Rule{Policy: t.Policy, Source: t.Rule, Target: t.Target, Codes: slices.Clone(t.Codes), Generating: t.Generating, Existing: t.Existing}
		for _, f := range t.Forms {
			r.addForm(f, object)
		}
		for i, o := range c.mutating {
			if slices.Contains(t.Mutating, o.Draft) {
				r.Mutating = append(r.Mutating, i)
			}
		}
		said := t.Found
		if r.Target == translate.Native && len(r.Objects)+len(r.Mutating)+len(r.Generating)+len(r.Existing) == 0 {
			note := diag.Warnf(r.Pos(), diag.NeedsNoObject, "no request can violate the rule %s, so it denies nothing and needs no object; look for what makes it always pass", r.Name())
			r.Codes, found = append(r.Codes, note.Code), append(found, note)
		}
		if r.Policy.Invalid || r.Source != nil && r.Source.Invalid {
			said = errors.within(r)
			r.addCodes(said)
		}
		r.addCodes(t.Doubts)
		r.Reason = r.reason(said)
		out.Rules = append(out.Rules, r)
	}
	found = append(found, c.tellOrder(out.Rules)...)
	out.Diagnostics = publishedOnce(append(found, c.translated.Diagnostics...).Sort())
	return out
}

// publishedOnce tells of the first kind whose fields are those that projects publish, and that
// there are others, which notes tell.
func publishedOnce(found diag.List) diag.List {
	first := -1
	told := map[string]bool{}
	for i, d := range found {
		switch {
		case d.Code != diag.PublishedKind:
		case first < 0:
			first = i
			told[d.Message] = true
		default:
			told[d.Message] = true
			found[i].Severity = diag.Note
		}
	}
	if len(told) > 1 {
		found[first].Message += "; it is the same with other kinds that the rules name, " + strconv.Itoa(len(told)) + " in all"
	}
	return found
}

func (r *Rule) addForm(f translate.Form, object map[*vap.Draft]int) {
	form := &Form{Rule: r, Name: f.Name, Source: f.Rule}
	for _, p := range f.Places {
		i := object[p.Draft]
		r.Reaches = p.Draft.Bindings[0].Reaches // which all bindings of a rule have
		form.Places = append(form.Places, Place{Object: i, Member: p.Member})
		if !slices.Contains(r.Objects, i) {
			r.Objects = append(r.Objects, i)
		}
	}
	r.Forms = append(r.Forms, form)
}

func (r *Rule) addCodes(ds diag.List) {
	for _, d := range ds {
		if !slices.Contains(r.Codes, d.Code) {
			r.Codes = append(r.Codes, d.Code)
		}
	}
}

// reason is the message of the first diagnostic of the rule's first code.
func (r *Rule) reason(ds diag.List) string {
	if r.Target == translate.Native || len(r.Codes) == 0 {
		return ""
	}
	for _, d := range ds {
		if d.Code == r.Codes[0] {
			return d.Message
		}
	}
	return "see kvap explain " + r.Codes[0].String()
}
