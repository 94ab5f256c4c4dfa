package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// A Page is one HTML page of its own: it loads nothing. What is nil is left out.
type Page struct {
	Title      string
	Conversion *Conversion
	Check      *Check
	Tests      *TestRun
	// Pairs are the rules beside what they became.
	Pairs []Pair
}

// A Pair is a rule of the source beside the expressions that enforce it.
type Pair struct {
	Policy, Rule string // as in the conversion
	Namespace    string
	File         string
	Source       []SourceLine
	Expressions  []PairedExpression
}

// A SourceLine is a line of a rule. Mark is the number, from 1, that it has in common
// with the expressions that come from it; 0 where none does.
type SourceLine struct {
	Number int
	Text   string
	Mark   int
}

// A PairedExpression is an expression of a native object.
type PairedExpression struct {
	Object, Field, Text string
	Mark                int
}

//go:embed page.gohtml
var pageTemplate string

// WriteHTML writes the page.
func (p Page) WriteHTML(w io.Writer) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return err
	}
	return t.Execute(w, p.view())
}

// A view is what the template shows.
type view struct {
	Title    string
	Bars     []bar // rules by where they are
	Rules    string
	Behind   []reason // why rules are not native
	Findings []shownFinding
	Notes    int
	Counts   *CheckTotals
	Releases [][]string
	Costs    []costBar
	Policies []shownPolicy
	Suites   []shownSuite
	Tests    string
}

// A bar is a part of a whole, from 0 to 100.
type bar struct {
	Name, Class string
	Count       int
	From, Width float64
}

type reason struct {
	Code, Title string
	Count       int
	Rules       []string
}

type shownFinding struct {
	Code, Severity, Place, Object, Field, Message, Releases string
	Expression                                              []string
	Known                                                   bool
}

type costBar struct {
	Object, Field, Safe       string
	Estimate, Measured, Limit string
	Percent                   float64 // of the limit, at most 100
	Class                     string
	share                     float64
}

type shownPolicy struct {
	Title, Kind, File string
	Rules             []shownRule
	Targets           []bar
}

type shownRule struct {
	Name, Target, Codes, Reason string
	Pair                        *Pair
}

type shownSuite struct {
	Name, File string
	Rows       []TestRow
}

func (p Page) view() view {
	v := view{Title: p.Title}
	if p.Conversion != nil {
		v.conversion(*p.Conversion, p.Pairs)
	}
	if p.Check != nil {
		v.check(*p.Check)
	}
	if p.Tests != nil {
		v.Tests = p.Tests.Totals.String()
		for _, s := range p.Tests.Suites {
			v.Suites = append(v.Suites, shownSuite{s.title(), s.File, s.Rows})
		}
	}
	return v
}

func (v *view) conversion(c Conversion, pairs []Pair) {
	v.Rules, v.Bars = c.Totals.String(), c.Totals.bars()
	v.Behind = reasonsOf(c)
	for _, policy := range c.Policies {
		shown := shownPolicy{Title: policy.title(), Kind: policy.Kind, File: policy.File, Targets: policy.totals().bars()}
		for _, r := range policy.Rules {
			rule := shownRule{Name: r.Name, Target: string(r.Target), Codes: codes(r.Codes), Reason: r.Reason}
			i := slices.IndexFunc(pairs, func(q Pair) bool {
				return q.Policy == policy.Name && q.Namespace == policy.Namespace && q.File == policy.File && q.Rule == r.Name
			})
			if i >= 0 {
				rule.Pair = &pairs[i]
			}
			shown.Rules = append(shown.Rules, rule)
		}
		v.Policies = append(v.Policies, shown)
	}
}

// bars are the shares of the targets.
func (t Totals) bars() []bar {
	var out []bar
	from := 0.0
	for _, b := range []bar{{Name: "native", Class: "native", Count: t.Native}, {Name: "webhook", Class: "webhook", Count: t.Webhook}, {Name: "unsupported", Class: "unsupported", Count: t.Unsupported}} {
		if b.Count == 0 {
			continue
		}
		b.From, b.Width = from, 100*float64(b.Count)/float64(t.Rules)
		from += b.Width
		out = append(out, b)
	}
	return out
}

// reasonsOf are the codes for which rules are not native, the most frequent first.
func reasonsOf(c Conversion) []reason {
	var out []reason
	for _, p := range c.Policies {
		for _, r := range p.Rules {
			if r.Target == Native {
				continue
			}
			code := "no code"
			title := r.Reason
			if len(r.Codes) > 0 {
				code = r.Codes[0].String()
				_, title = diag.Title(r.Codes[0])
			}
			i := slices.IndexFunc(out, func(x reason) bool { return x.Code == code })
			if i < 0 {
				i = len(out)
				out = append(out, reason{Code: code, Title: title})
			}
			out[i].Count++
			out[i].Rules = append(out[i].Rules, p.title()+" / "+r.Name)
		}
	}
	slices.SortStableFunc(out, func(a, b reason) int { return b.Count - a.Count })
	return out
}

func (v *view) check(c Check) {
	v.Counts = &c.Totals
	if rows := c.byRelease(); len(rows) > 2 {
		v.Releases = rows
	}
	for _, o := range c.Objects {
		for _, g := range o.grouped() {
			if g.Severity == diag.Note {
				v.Notes++
				continue
			}
			v.Findings = append(v.Findings, shown(o, g))
		}
		for _, k := range o.Cost {
			v.Costs = append(v.Costs, costBarOf(o, k))
		}
	}
	slices.SortStableFunc(v.Findings, func(a, b shownFinding) int { return strings.Compare(a.Severity, b.Severity) })
	slices.SortStableFunc(v.Costs, func(a, b costBar) int { return -compareShares(a.share, b.share) })
	const most = 25
	v.Costs = v.Costs[:min(len(v.Costs), most)]
}

func compareShares(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func shown(o CheckedObject, g groupedFinding) shownFinding {
	f := shownFinding{
		Code: g.Code.String(), Severity: g.Severity.String(), Place: g.Pos().String(), Object: o.Name, Field: g.Field,
		Message: g.Message, Known: g.Known,
	}
	if len(o.Releases) > 1 {
		f.Releases = strings.Join(g.releases, ", ")
	}
	if g.Expression != "" {
		f.Expression = excerptOf(g.Finding)
	}
	return f
}

func costBarOf(o CheckedObject, k ExpressionCost) costBar {
	share := float64(max(k.Estimate, k.Measured)) / float64(max(k.Limit, 1))
	class := "cheap"
	switch {
	case k.Measured > k.Limit:
		class = "over"
	case share > 1.0/3:
		class = "near"
	}
	return costBar{
		Object: o.Name, Field: k.Field, Safe: k.Safe, Estimate: grouped(k.Estimate), Measured: grouped(k.Measured), Limit: grouped(k.Limit),
		Percent: min(100, 100*share), Class: class, share: share,
	}
}

// grouped is a number with commas.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
