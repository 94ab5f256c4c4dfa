package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap"
)

// A Source is where evidence comes from.
type Source string

// The sources, in the order in which they are told.
const (
	Objects  Source = "objects"  // that are there, before both judges
	Reports  Source = "reports"  // Kyverno's, about these objects
	Shadow   Source = "shadow"   // what kvap's webhook said of requests, and what became of them
	Requests Source = "requests" // that were recorded, before both judges
	Audit    Source = "audit"    // an API server's log of both sides at work
	Search   Source = "verify"   // requests that were made up
)

func sources() []Source { return []Source{Objects, Reports, Shadow, Requests, Audit, Search} }

// shown is how many disagreements of a rule and a source are kept.
const shown = 5

// Options are what is known beside the judges.
type Options struct {
	// Known are the objects that the judges look up, so that a rule which errs for want of
	// one is not held against anybody.
	Known []map[string]any
	// Natives were at work while an audit log was written.
	Natives []Native
	// Times say since when policies are judged by, by their names.
	Times map[string]Times
	// Since has what an audit log says of the time before count for nothing.
	Since time.Time
	// Whole tells that all policies by which Kyverno changes objects are among the compared,
	// so that each of its changes has to be explained by some rule.
	Whole bool
	// Making is of generate rules; nil where nothing is known of what they made.
	Making *Making
}

// A Ledger gathers the evidence for the rules of some policies. It is written by one
// goroutine.
type Ledger struct {
	Options
	judges  *judge.Judges
	rows    []*row                 // of the judges' rules
	natives map[string]auditNative // by name
	webhook bool                   // kvap's webhook has been heard of in the log
	strange map[string]bool        // native policies that were heard of and are not known
	// changing are the judges of what each of Kyverno's webhooks changes, by its name.
	changing map[string]*judge.Judges
}

// A row is the evidence for one rule.
type row struct {
	form    *compile.Form
	tallies map[Source]*tally
	earlier []report.Disagreement // on objects, found by earlier looks
	notes   []string
	// shadowed is what the webhook said in shadow, whatever became of it.
	shadowed shadowed
}

// A tally is what one source says of one rule.
type tally struct {
	report.Evidence
	passed        int // nobody found a violation
	disagreements []report.Disagreement
	unclear       map[string]int // by the reason
}

// New makes an empty ledger.
func New(judges *judge.Judges, o Options) *Ledger {
	l := &Ledger{Options: o, judges: judges, natives: map[string]auditNative{}, strange: map[string]bool{}, changing: map[string]*judge.Judges{}}
	for _, f := range judges.Rules {
		l.rows = append(l.rows, &row{form: f, tallies: map[Source]*tally{}})
	}
	for _, n := range o.Natives {
		text, ok, err := vap.TranslationOf(n.Policy.Annotations)
		if !ok || err != nil {
			continue
		}
		one := auditNative{Native: n, text: text}
		for _, m := range text.Members {
			one.places = append(one.places, l.place(m.Policy, m.Rule))
		}
		l.natives[n.Policy.Name] = one
	}
	return l
}

func (r *row) of(s Source) *tally {
	t := r.tallies[s]
	if t == nil {
		t = &tally{Evidence: report.Evidence{Source: string(s)}, unclear: map[string]int{}}
		r.tallies[s] = t
	}
	return t
}

// agree notes that both sides gave the same verdict.
func (t *tally) agree(violated bool) {
	t.Seen++
	t.Agreed++
	t.count(violated)
}

// disagree notes that they did not, and keeps the first few.
func (t *tally) disagree(violated bool, d func() report.Disagreement) {
	t.Seen++
	t.Disagreed++
	t.count(violated)
	if len(t.disagreements) < shown {
		one := d()
		one.Source = t.Source
		t.disagreements = append(t.disagreements, one)
	}
}

func (t *tally) count(violated bool) {
	if violated {
		t.Violated++
	} else {
		t.passed++
	}
}

// cannotTell notes that one side's answer is not known.
func (t *tally) cannotTell(why string) {
	t.Unclear++
	t.unclear[why]++
}

// Forget drops what the objects, the reports about them and the webhook in shadow said,
// before all are read anew. An object on which the judges disagreed counts on, though it may be gone: a
// report that disagreed does not, for Kyverno's reports lag behind.
func (l *Ledger) Forget() {
	for _, r := range l.rows {
		delete(r.tallies, Reports)
		delete(r.tallies, Shadow)
		r.shadowed = shadowed{}
		if t := r.tallies[Objects]; t != nil {
			for _, d := range t.disagreements {
				if !slices.ContainsFunc(r.earlier, func(e report.Disagreement) bool { return e.Subject == d.Subject }) {
					r.earlier = append(r.earlier, d)
				}
			}
			delete(r.tallies, Objects)
		}
	}
}

// recall adds the disagreements of earlier looks that this one has not.
func (r *row) recall(now tally) tally {
	for _, d := range r.earlier {
		if !slices.ContainsFunc(now.disagreements, func(n report.Disagreement) bool { return n.Subject == d.Subject }) {
			now.Seen++
			now.Disagreed++
			now.disagreements = append(slices.Clip(now.disagreements), d)
		}
	}
	return now
}

// note adds a note, once.
func (r *row) note(text string) {
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// place finds a rule by the names that Kyverno reports. Rule may be empty where a
// policy has one rule only.
func (l *Ledger) place(policyName, rule string) int {
	found := -1
	for i, r := range l.rows {
		if r.form.Rule.PolicyName() != policyName {
			continue
		}
		if r.form.Name == rule {
			return i
		}
		if rule == "" {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// validates tells whether a rule says yes or no to requests.
func validates(f *compile.Form) bool {
	return f.Rule.Type() == "validate"
}

// Comparison is what was gathered so far.
func (l *Ledger) Comparison() report.Comparison {
	var rules []report.ComparedRule
	compared := map[*compile.Form]bool{}
	for _, f := range l.judges.Compared() {
		compared[f] = true
	}
	for i, r := range l.rows {
		if r.form.Rule.Policy.Kind == "ValidatingAdmissionPolicy" && !compared[r.form] {
			continue // only a native object knows of it, which it shares with rules that are compared
		}
		one := r.report(compared[r.form])
		if len(l.natives) > 0 && one.Target == report.Native && validates(r.form) && !l.native(i) {
			one.Notes = append(one.Notes, "no native object of the rule is there yet: what it would be translated to was judged")
		}
		rules = append(rules, one)
	}
	return report.NewComparison(rules)
}

func (r *row) report(compared bool) report.ComparedRule {
	out := report.ComparedRule{Policy: r.form.Rule.PolicyName(), Rule: r.form.Name, Target: report.Webhook}
	if compared {
		out.Target = report.Native
	}
	if r.form.Rule.NotServed() != "" {
		out.Target = report.Unsupported
	}
	for _, s := range sources() {
		if t := r.tallies[s]; t != nil {
			if s == Objects {
				with := r.recall(*t)
				t = &with
			}
			out.Evidence = append(out.Evidence, t.Evidence)
			out.Disagreements = append(out.Disagreements, t.disagreements...)
		}
	}
	out.Thin = r.thin(compared)
	out.Notes = slices.Concat(r.unclear(), r.shadowed.notes(!validates(r.form)), r.notes)
	return out
}

// thin says what the evidence lacks, for somebody who is about to rely on it.
func (r *row) thin(compared bool) []string {
	var seen, violated, passed, real, reallyViolated int
	for s, t := range r.tallies {
		seen, violated, passed = seen+t.Seen, violated+t.Violated, passed+t.passed
		if s != Search { // which is what could be; the others are what users do
			real, reallyViolated = real+t.Seen, reallyViolated+t.Violated
		}
	}
	mutates := r.form.Rule.Mutates() // the object of a request
	switch {
	case mutates && seen == 0:
		return []string{"the rule changes objects: only an audit log of the level Request has what Kyverno's webhook made of one, and none said anything of it"}
	case mutates && violated == 0:
		return []string{"it has changed nothing"}
	case generates(r.form) && seen == 0:
		return []string{"the rule makes other objects: only what it has made of objects that are there can be held against it, and nothing was found"}
	case mutates, generates(r.form):
		return nil
	case r.form.Rule.Type() == "mutate":
		return []string{"the rule changes objects that are there, and compare does not look at that"}
	case !validates(r.form):
		return []string{"the rule verifies images, and compare does not look at that"}
	case seen == 0 && !compared:
		return []string{"the rule is judged by kvap's webhook: only Kyverno's reports, what the webhook says in shadow and an audit log can be held against each other, and they said nothing of it"}
	case seen == 0:
		return []string{"no source said anything of this rule"}
	case real == 0:
		return []string{"only requests that were made up: no object, recorded request or log entry was about it"}
	case violated == 0:
		return []string{"nothing has violated it"}
	case passed == 0:
		return []string{"everything that was seen violates it"}
	case reallyViolated == 0:
		return []string{"no real request or object has violated it, only requests that were made up"}
	}
	return nil
}

// unclear says why something was not compared, the most frequent reason first.
func (r *row) unclear() []string {
	var out []string
	for _, s := range sources() {
		t := r.tallies[s]
		if t == nil || t.Unclear == 0 {
			continue
		}
		var reasons []string
		for why := range t.unclear {
			reasons = append(reasons, why)
		}
		slices.SortFunc(reasons, func(a, b string) int {
			return cmp.Or(cmp.Compare(t.unclear[b], t.unclear[a]), strings.Compare(a, b))
		})
		for i, why := range reasons {
			reasons[i] = fmt.Sprintf("%s (%d)", why, t.unclear[why])
		}
		out = append(out, fmt.Sprintf("%s, not compared: %s", s, strings.Join(reasons, "; ")))
	}
	return out
}

// enforced tells whether Kyverno denies what violates a rule, whatever the namespace;
// known is false where that depends on the namespace.
func enforced(f *compile.Form) (yes, known bool) {
	p := f.Rule.Policy
	if p.Validating != nil {
		return len(p.Validating.Actions) == 0 || slices.Contains(p.Validating.Actions, "Deny"), true
	}
	action, overrides := p.Action, p.Overrides
	if f.Source != nil && f.Source.Validate != nil {
		if v := f.Source.Validate; v.Action != "" {
			action, overrides = v.Action, nil
		}
		overrides = slices.Concat(overrides, f.Source.Validate.Overrides)
	}
	return action == policy.Enforce, len(overrides) == 0
}
