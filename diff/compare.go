package diff

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/verify"
)

// Options are the choices of a search. The same seed tries the same requests.
type Options struct {
	Schemas *schema.Set
	// Params are objects that rules of both sides look up. ConfigMaps that are not there are made up.
	Params []*unstructured.Unstructured
	Seed   uint64
	// Requests and Time bound the search for each pair of policies, whichever comes first; zero is no
	// bound. With neither, DefaultRequests are tried.
	Requests int
	Time     time.Duration
	// First ends the search for a pair of policies with the first difference.
	First bool
	// Ignore are the aspects that do not count.
	Ignore []Aspect
	// Progress, where not nil, is told of each pair that is done.
	Progress func(done, all int)
}

// DefaultRequests are tried for a pair of policies where nothing else is asked for.
const DefaultRequests = 4000

// A Comparison is what came of the search for one pair.
type Comparison struct {
	Old, New Part
	By       By
	// Written tells that both sides are written the same, so that nothing was searched.
	Written bool
	// Requests were tried. What the sides ask of them was seen both ways for so many questions; the
	// questions are those of the whole policies.
	Requests           int
	OldSeen, NewSeen   Seen
	Differences        []Difference // one of each kind at most, the gravest first
	OldWhole, NewWhole []string     // rules without a counterpart, where wholes are compared
	// LeftOut is how many of the requests were not compared: bindings of one side leave out their
	// namespaces by name, as Kyverno's configuration does on the other.
	LeftOut int
	Error   string // why it could not be searched
}

// A Part is what of a side was compared.
type Part struct {
	Policies []string
	Rules    []string
	Pos      diag.Pos
}

// Seen is what a side said of the requests, and how much of it was tried out.
type Seen struct {
	Matched, Violated, Passed, Erred int
	Changed                          int // objects, by mutations
	BothWays, Questions              int
	Unseen                           []string
}

// A Difference is a request on which the sides differ, as small as was found.
type Difference struct {
	Aspect   Aspect
	Old, New Answer
	Request  *verify.Request // as somebody would write its objects; nil where none was found
	Asked    *verify.Request // as it was judged
	Params   []*unstructured.Unstructured
	Tried    int
}

// Same tells whether no difference was found.
func (c Comparison) Same() bool { return len(c.Differences) == 0 }

// Compared is what came of comparing two sides.
type Compared struct {
	Comparisons []Comparison
	// Left are rules that were not judged, of either side. Those that both sides write the same are
	// among the comparisons.
	Left []Left
}

// Compare looks for requests of which the sides say different things.
func Compare(ctx context.Context, old, new Side, o Options) (Compared, error) {
	if o.Requests == 0 && o.Time == 0 {
		o.Requests = DefaultRequests
	}
	old, new = old.without(new.boundOf(old.Unbound)), new.without(old.boundOf(new.Unbound))
	pairs := pairGroups(&old, &new, o.Schemas)
	found := make([][]Comparison, len(pairs))
	done := make(chan struct{}, len(pairs))
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		n := 0
		for range done {
			if n++; o.Progress != nil {
				o.Progress(n, len(pairs))
			}
		}
	}()
	cores.Each(len(pairs), func(i int) {
		found[i] = comparePair(ctx, &old, &new, pairs[i], o)
		done <- struct{}{}
	})
	close(done)
	<-finished
	var out Compared
	exceptions := sameExceptions(&old, &new)
	for i, p := range pairs {
		out.Comparisons = append(out.Comparisons, found[i]...)
		out.leave(leftOf(p.old), leftOf(p.new), exceptions)
	}
	out.leave(old.aside(), new.aside(), exceptions)
	return out, ctx.Err()
}

// leftOf are the rules of groups that are not judged.
func leftOf(groups []*group) (out []Left) {
	for _, g := range groups {
		out = append(out, g.left...)
	}
	return out
}

// leave takes in what is not judged of both sides. It is the same where it is written the same and
// the exceptions are.
func (c *Compared) leave(olds, news []Left, exceptions bool) {
	for _, o := range olds {
		i := slices.IndexFunc(news, func(n Left) bool { return exceptions && n.written == o.written })
		if i < 0 {
			c.Left = append(c.Left, o)
			continue
		}
		c.Comparisons = append(c.Comparisons, Comparison{Old: o.part(), New: news[i].part(), By: ByName, Written: true})
		news = slices.Delete(slices.Clone(news), i, i+1)
	}
	for _, n := range news { // what both have, and write in two ways, is told once
		if !slices.ContainsFunc(c.Left, func(l Left) bool { return l.Policy == n.Policy && l.Rule == n.Rule && l.Why == n.Why }) {
			c.Left = append(c.Left, n)
		}
	}
}

func (l Left) part() Part {
	return Part{Policies: []string{l.Policy}, Rules: []string{l.Rule}, Pos: l.Pos}
}

// comparePair compares two groups, rule by rule or as a whole.
func comparePair(ctx context.Context, old, new *Side, p pairing, o Options) (out []Comparison) {
	matters := p.matters()
	if len(matters) == 0 {
		return nil
	}
	s := &search{pair: p, options: o}
	if asWritten(old, new, p) {
		s.written = true
		s.about(matters)
		return s.comparisons()
	}
	rest, same := changed(old, new, p)
	if len(same) > 0 {
		unchanged := &search{pair: p, written: true}
		var list []matter
		for _, name := range same {
			list = append(list, matter{[]ruleName{{p.old[0].name, name}}, []ruleName{{p.new[0].name, name}}, ByName})
		}
		unchanged.about(list)
		out, s.pair, matters = unchanged.comparisons(), rest, rest.matters()
	}
	s.about(matters)
	begin := time.Now()
	err := s.prepare(old, new)
	if err == nil {
		err = s.run(ctx, begin)
	}
	if err != nil {
		s.fault = err.Error()
	}
	return append(out, s.comparisons()...)
}

// about has the search be about some matters.
func (s *search) about(matters []matter) {
	s.findings = make([]findings, len(matters))
	for i, m := range matters {
		s.findings[i].matter = m
	}
}

// A search looks for requests about the groups of a pairing.
type search struct {
	pair     pairing
	options  Options
	explore  *verify.Explorer
	defaults *defaulting.Defaulter
	worlds   [][]*unstructured.Unstructured
	old, new *panel
	findings []findings
	notes    map[note]bool
	tried    int
	written  bool
	fault    string
}

// findings are what came of one matter so far.
type findings struct {
	matter
	old, new    Seen
	differences map[Aspect]*Difference
	leftOut     int
}

// A note is what both sides said of a matter.
type note struct {
	matter   int
	old, new Outcome
	aspects  string
}

func (s *search) prepare(old, new *Side) (err error) {
	a, b := subjectOf(old, s.pair.old), subjectOf(new, s.pair.new)
	subject := verify.Subject{
		Policies: slices.Concat(a.Policies, b.Policies), Exceptions: slices.Concat(a.Exceptions, b.Exceptions), Data: slices.Concat(a.Data, b.Data),
	}
	s.explore = verify.NewExplorer(subject, s.options.Schemas, s.options.Seed)
	s.defaults, s.notes = defaulting.New(s.options.Schemas), map[note]bool{}
	s.worlds = s.explore.Worlds(s.options.Params, s.options.Seed)
	var objects [][]map[string]any
	for _, w := range s.worlds {
		var list []map[string]any
		for _, u := range w {
			list = append(list, u.Object)
		}
		objects = append(objects, list)
	}
	if s.old, err = newPanel(old, s.pair.old, s.options.Schemas, objects); err != nil {
		return fmt.Errorf("the old side cannot judge: %w", err)
	}
	if s.new, err = newPanel(new, s.pair.new, s.options.Schemas, objects); err != nil {
		return fmt.Errorf("the new side cannot judge: %w", err)
	}
	return nil
}

// leastRequests are tried even where a difference of verdicts is found before, so that the others
// are told too.
const leastRequests = 300

// run tries requests until the budget is used up, or each pair has a difference of the gravest kind.
func (s *search) run(ctx context.Context, begin time.Time) error {
	for s.options.Requests == 0 || s.tried < s.options.Requests {
		if s.tried%32 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if s.options.Time > 0 && time.Since(begin) > s.options.Time {
				return nil
			}
		}
		if s.options.First && slices.ContainsFunc(s.findings, func(f findings) bool { return len(f.differences) > 0 }) {
			return nil
		}
		if s.tried >= leastRequests && !slices.ContainsFunc(s.findings, func(f findings) bool { return !f.decided() }) {
			return nil
		}
		if err := s.try(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f findings) decided() bool {
	return f.differences[Unpaired] != nil || f.differences[Verdict] != nil || f.differences[Object] != nil
}

// try asks both sides about one more request.
func (s *search) try(ctx context.Context) error {
	attempt := s.explore.Next()
	s.tried++
	a, b, fresh, err := s.ask(ctx, attempt.Request, true)
	if err != nil {
		return err
	}
	for i := range s.findings {
		f := &s.findings[i]
		x, y := f.of(a, b)
		if leftOut(x, y) {
			f.leftOut++
			continue
		}
		f.old.count(x)
		f.new.count(y)
		aspects := s.aspects(*f, x, y, attempt.Request)
		n := note{i, x.Outcome, y.Outcome, ""}
		for _, k := range aspects {
			n.aspects += string(k)
			if f.differences[k] == nil {
				s.found(ctx, f, k, attempt)
			}
		}
		fresh = fresh || !s.notes[n]
		s.notes[n] = true
	}
	if fresh {
		s.explore.Keep(attempt)
	}
	return nil
}

func (s *search) ask(ctx context.Context, r *verify.Request, watch bool) (a, b map[ruleName]Answer, fresh bool, err error) {
	asked := r.Filled(s.defaults)
	a, f, err := s.old.ask(ctx, asked, watch)
	if err != nil {
		return nil, nil, false, fmt.Errorf("a request cannot be judged: %w: %s", err, r)
	}
	b, g, err := s.new.ask(ctx, asked, watch)
	if err != nil {
		return nil, nil, false, fmt.Errorf("a request cannot be judged: %w: %s", err, r)
	}
	return a, b, f || g, nil
}

// of are the answers of both sides to a matter.
func (f findings) of(a, b map[ruleName]Answer) (Answer, Answer) {
	return joined(a, f.matter.old), joined(b, f.matter.new)
}

func joined(said map[ruleName]Answer, names []ruleName) Answer {
	out := Answer{Outcome: Silent}
	for i, name := range names {
		a, ok := said[name]
		switch {
		case !ok:
		case i == 0:
			out = a
		default:
			out = out.with(a)
		}
	}
	return out
}

// aspects are those in which two answers differ and that count.
func (s *search) aspects(f findings, x, y Answer, r *verify.Request) []Aspect {
	aspects := differ(x, y, r.Operation == "UPDATE")
	if f.by == ByNothing {
		if len(aspects) == 0 {
			return nil
		}
		aspects = []Aspect{Unpaired}
	}
	return slices.DeleteFunc(aspects, func(k Aspect) bool { return slices.Contains(s.options.Ignore, k) })
}

// mostShrinking bounds the requests that are tried to make one smaller.
const mostShrinking = 1200

// found makes the request smaller that shows a difference.
func (s *search) found(ctx context.Context, f *findings, aspect Aspect, attempt verify.Attempt) {
	d := &Difference{Aspect: aspect, Tried: s.tried}
	refused := func(a, b Answer) [2]bool { return [2]bool{a.refuses(), b.refuses()} }
	var want *[2]bool
	same := func(r *verify.Request) bool {
		a, b, _, err := s.ask(ctx, r, false)
		if err != nil {
			return false
		}
		x, y := f.of(a, b)
		is := refused(x, y)
		if !slices.Contains(s.aspects(*f, x, y, r), aspect) || want != nil && *want != is {
			return false
		}
		want, d.Old, d.New = &is, x, y
		return true
	}
	if !same(attempt.Request) {
		return
	}
	d.Request = s.explore.Shrink(ctx, attempt, mostShrinking, same)
	d.Asked = d.Request.Filled(s.defaults)
	d.Params = s.worlds[d.Request.World(len(s.worlds))]
	if f.differences == nil {
		f.differences = map[Aspect]*Difference{}
	}
	f.differences[aspect] = d
}

func (s *Seen) count(a Answer) {
	switch a.Outcome {
	case Silent:
		return
	case Admits:
		s.Passed++
	case Errs:
		s.Erred++
	case Violated:
		s.Violated++
	}
	s.Matched++
	if a.After != nil {
		s.Changed++
	}
}

func (s *search) comparisons() (out []Comparison) {
	for _, f := range s.findings {
		c := Comparison{
			Old: partOf(s.pair.old, f.matter.old), New: partOf(s.pair.new, f.matter.new), By: f.matter.by,
			Written: s.written, Requests: s.tried, OldSeen: f.old, NewSeen: f.new, LeftOut: f.leftOut, Error: s.fault,
		}
		if s.pair.by != ByName && c.By != ByNothing && c.By != ByWhole {
			c.By = s.pair.by
		}
		if f.matter.by == ByWhole {
			c.OldWhole, c.NewWhole = f.unmatched()
		}
		if !s.written && s.fault == "" {
			c.OldSeen.BothWays, c.OldSeen.Questions = s.old.covers()
			c.NewSeen.BothWays, c.NewSeen.Questions = s.new.covers()
			c.OldSeen.Unseen, c.NewSeen.Unseen = s.old.unseen(), s.new.unseen()
		}
		for _, k := range Aspects() {
			if d := f.differences[k]; d != nil {
				c.Differences = append(c.Differences, *d)
			}
		}
		ignored := slices.Contains(s.options.Ignore, Unpaired)
		if f.matter.by == ByNothing && len(c.Differences) == 0 && !ignored {
			c.Differences = []Difference{{Aspect: Unpaired, Old: Answer{Outcome: Silent}, New: Answer{Outcome: Silent}}}
		}
		out = append(out, c)
	}
	return out
}

func partOf(groups []*group, rules []ruleName) (out Part) {
	out.Policies, out.Rules = []string{}, []string{}
	for _, r := range rules {
		out.Rules = append(out.Rules, r.rule)
		if !slices.Contains(out.Policies, r.group) {
			out.Policies = append(out.Policies, r.group)
		}
	}
	for _, g := range groups {
		if len(rules) > 0 && slices.Contains(out.Policies, g.name) && out.Pos.File == "" {
			out.Pos = g.pos
		}
	}
	return out
}
