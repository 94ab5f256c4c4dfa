package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report/doc"
)

// mostInSummary is how many policies a person reads of. Of more, those that are native
// throughout are counted.
const mostInSummary = 40

// Summary has one line for each policy and the totals: what a person sees at the end of a run.
// Where all is not set, a long table is cut.
func (c Conversion) Summary(all bool) doc.Document {
	rows := [][]string{{"policy", "kind", "rules", "native", "webhook", "unsupported", "codes"}}
	if c.Totals.toKyverno() {
		rows = [][]string{{"policy", "kind", "rules", "in CEL", "left", "codes"}}
	}
	all = all || len(c.Policies) <= mostInSummary
	titles := c.titles()
	native, others := 0, 0 // that are not listed
	for i, p := range c.Policies {
		t := p.totals()
		switch {
		case all:
		case t.Native+t.CEL == t.Rules:
			native++
			continue
		case len(rows) > mostInSummary:
			others++
			continue
		}
		counts := []int{t.Rules, t.Native, t.Webhook, t.Unsupported}
		if c.Totals.toKyverno() {
			counts = []int{t.Rules, t.CEL, t.Left}
		}
		row := []string{titles[i], p.Kind}
		for _, n := range counts {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, append(row, codeTexts(c.told(p))))
	}
	return doc.Document{Totals: doc.Section{Text: unlisted(native, others) + c.totals()}, Sections: []doc.Section{{Table: rows}}}
}

// A ConversionView is what a report of a conversion has besides it.
type ConversionView struct {
	Pairs  []Pair // the rules beside what they became
	Strict bool   // for build servers, a rule that is not native fails
}

// A Pair is a rule of a conversion beside the expressions that enforce it.
type Pair struct {
	Policy, Rule    string // as in the conversion
	Namespace, File string
	Source          []doc.SourceLine
	Expressions     []doc.PairedExpression
}

// Document has one line for each rule, why it is not native, what the reader must know, and the
// totals.
func (c Conversion) Document(v ConversionView) doc.Document {
	rows := [][]string{{"policy", "rule", "type", "target", "codes", "objects"}}
	titles := c.titles()
	d := doc.Document{Title: "Conversion", Data: c, Totals: doc.Section{Text: c.totals()}, Suites: doc.Suites{Name: "kvap convert"}}
	for i, p := range c.Policies {
		suite := doc.JUnitSuite{Name: p.Kind + "/" + titleOf(p.Namespace, p.Name), File: p.File}
		for _, r := range p.Rules {
			rows = append(rows, []string{titles[i], doc.OrDash(r.Name), doc.OrDash(r.Type), string(r.Target), codeTexts(r.Codes), doc.OrDash(strings.Join(r.Objects, " "))})
			one := doc.JUnitCase{Class: suite.Name, Name: r.Name, File: p.File, Line: r.Line}
			switch message := (&doc.JUnitMessage{Message: codeTexts(r.Codes) + ": " + r.Reason}); {
			case !r.stays():
			case v.Strict:
				one.Failure = message
			default:
				one.Skipped = message
			}
			suite.Cases = append(suite.Cases, one)
		}
		d.Suites.Suites = append(d.Suites.Suites, suite)
	}
	for _, f := range c.Diagnostics {
		pos := diag.Pos{File: f.File, Line: f.Line, Col: f.Column, Path: f.Path}
		d.Alerts = append(d.Alerts, doc.Alert{Rule: f.Code.String(), Severity: f.Severity, Pos: pos, Message: f.Message, Of: f.Path})
	}
	d.Shares = []doc.Share{c.Totals.share()}
	d.Sections = []doc.Section{{In: doc.Terminal | doc.Markdown, Table: rows}, c.staying(), c.warnings(d.Alerts, doc.Markdown), c.warnings(d.Alerts, doc.HTML), c.became(v.Pairs)}
	return d
}

// staying are the rules that are not native, and why.
func (c Conversion) staying() doc.Section {
	s := doc.Section{In: doc.Pages, Title: "Rules that are not native", Grouped: true}
	if c.Totals.toKyverno() {
		s.Title = "Rules that are left"
	}
	titles := c.titles()
	for i, p := range c.Policies {
		for _, r := range p.Rules {
			if !r.stays() {
				continue
			}
			var code diag.Code
			if len(r.Codes) > 0 {
				code = r.Codes[0]
			}
			s.Items = append(s.Items, stayingItem(titles[i], p.File, r, code))
		}
	}
	return s
}

// stays reports whether a rule became nothing of what was asked for.
func (r Rule) stays() bool { return r.Target != Native && r.Target != CEL }

// stayingItem is a rule that stays where it is.
func stayingItem(policy, file string, r Rule, code diag.Code) doc.Item {
	class := "bad"
	if r.Target == Webhook {
		class = "fair"
	}
	pos := diag.Pos{File: file, Line: r.Line}
	return doc.Item{Of: []string{policy, r.Name}, Tag: string(r.Target), Text: doc.OrDash(r.Reason), Place: pos.String(), Class: class, Group: code}
}

// warnings are what the reader must know, once: forms of a rule, for one, are said the same of. In
// HTML, why a rule is not native stands with the rule.
func (c Conversion) warnings(alerts []doc.Alert, in doc.Media) doc.Section {
	s := doc.Section{In: in, Title: "Diagnostics", Grouped: true}
	seen, notes := map[Diagnostic]bool{}, 0
	for i, d := range c.Diagnostics {
		switch {
		case d.Severity == diag.Note:
			notes++
		case !seen[d] && (in == doc.Markdown || d.Code < 200 || d.Code > 299):
			s.Alerts = append(s.Alerts, alerts[i])
		}
		seen[d] = true
	}
	if notes > 0 {
		s.Text = doc.Count(notes, "note is", "notes are") + " left out here; the other formats have them"
	}
	return s
}

// became are the rules of each policy, beside what they became.
func (c Conversion) became(pairs []Pair) doc.Section {
	type key struct{ namespace, policy, file, rule string }
	beside := map[key]Pair{}
	for _, p := range pairs {
		beside[key{p.Namespace, p.Policy, p.File, p.Rule}] = p
	}
	s := doc.Section{In: doc.HTML, Title: "Policies"}
	for _, p := range c.Policies {
		fold := doc.Fold{Title: titleOf(p.Namespace, p.Name), Note: p.Kind + " " + p.File, Bars: p.totals().share().Bars}
		for _, r := range p.Rules {
			pair := beside[key{p.Namespace, p.Name, p.File, r.Name}]
			fold.Pairs = append(fold.Pairs, doc.Pair{
				Rule: r.Name, Target: string(r.Target), Codes: codeTexts(r.Codes), Reason: r.Reason, File: p.File, Source: pair.Source, Expressions: pair.Expressions,
			})
		}
		s.Folds = append(s.Folds, fold)
	}
	return s
}

func (t Totals) share() doc.Share {
	if t.toKyverno() {
		return doc.Share{What: "rules are in CEL", Bars: []doc.Bar{{Name: "in CEL", Class: "good", Count: t.CEL}, {Name: "left", Class: "fair", Count: t.Left}}}
	}
	return doc.Share{What: "rules are native", Bars: []doc.Bar{
		{Name: "native", Class: "good", Count: t.Native}, {Name: "webhook", Class: "fair", Count: t.Webhook}, {Name: "unsupported", Class: "bad", Count: t.Unsupported},
	}}
}

// told are the codes of a policy of which a line tells: others are of notes, which mostly nobody
// sees.
func (c Conversion) told(p Policy) []diag.Code {
	return slices.DeleteFunc(p.codes(), func(code diag.Code) bool {
		notes := 0
		for _, d := range c.Diagnostics {
			if d.Code == code && d.File == p.File {
				if d.Severity != diag.Note {
					return false
				}
				notes++
			}
		}
		return notes > 0
	})
}

// unlisted is the line about the policies that a summary leaves out; "" where it leaves
// out none.
func unlisted(native, others int) string {
	var parts []string
	if others > 0 {
		parts = append(parts, doc.Count(others, "more policy that is not native throughout", "more policies that are not native throughout"))
	}
	if native > 0 {
		parts = append(parts, doc.Count(native, "policy that is native throughout", "policies that are native throughout"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "not listed: " + strings.Join(parts, ", ") + "; -v or -o wide lists all\n"
}

// titles are the names of the policies, with a place where several have one name.
func (c Conversion) titles() []string {
	var names, places []string
	for _, p := range c.Policies {
		place := p.File
		if len(p.Rules) > 0 {
			place = diag.Pos{File: p.File, Line: p.Rules[0].Line}.String()
		}
		names, places = append(names, titleOf(p.Namespace, p.Name)), append(places, place)
	}
	return apart(names, places)
}

// apart adds its place to each name that stands more than once.
func apart(names, places []string) []string {
	times := map[string]int{}
	for _, name := range names {
		times[name]++
	}
	out := slices.Clone(names)
	for i, name := range names {
		if times[name] > 1 && places[i] != "" {
			out[i] += " (" + places[i] + ")"
		}
	}
	return out
}

// totals are the lines below a table.
func (c Conversion) totals() string {
	lines := []string{c.Totals.String()}
	for _, line := range []string{c.excluded(), c.busiest()} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// titleOf is a name as users write it: with the namespace of what is in one.
func titleOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func (p Policy) totals() Totals {
	var t Totals
	for _, r := range p.Rules {
		t.count(r.Target)
	}
	return t
}

// codes are those of the rules, each once, in order of appearance.
func (p Policy) codes() []diag.Code {
	var cs []diag.Code
	seen := map[diag.Code]bool{}
	for _, r := range p.Rules {
		for _, c := range r.Codes {
			if !seen[c] {
				seen[c] = true
				cs = append(cs, c)
			}
		}
	}
	return cs
}

func codeTexts(cs []diag.Code) string {
	words := make([]string, len(cs))
	for i, c := range cs {
		words[i] = c.String()
	}
	return doc.OrDash(strings.Join(words, " "))
}
