package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/kvap/kvap/diag"
)

// A Page is one HTML page of its own: it loads nothing. What is nil is left out.
type Page struct {
	Title      string
	By         By
	Conversion *Conversion
	Check      *Check
	Tests      *TestRun
	Plan       *Plan
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

// A view is what the page shows.
type view struct {
	Title    string
	By       string
	Rules    *share // by where they are
	Found    *share // objects by the gravest that was found of them
	Budget   *share // policies by what they cost
	Passed   *share // tests by their results
	Dearest  *costBar
	Behind   []codeGroup // rules that are not native
	Known    bool        // whether there was something to look for
	Findings []codeGroup
	Notes    int
	Releases [][]string
	Tables   []shownTable
	Costs    []costBar
	Policies []shownPolicy
	Unpaired bool // there are more rules than are shown beside what they became
	Failed   []shownTest
	Unshown  int // tests that failed
	Suites   []shownSuite
}

// A share is how many of all are as they should be, and a bar of what all are.
type share struct {
	Good, All int
	What      string // they are
	Bars      []bar
	Note      string
}

// A bar is a part of a whole, from 0 to 100.
type bar struct {
	Name, Class string
	Count       int
	From, Width float64
}

// sharesOf puts the parts side by side. The first of them is what is good.
func sharesOf(what string, parts ...bar) *share {
	s := &share{Good: parts[0].Count, What: what}
	for _, b := range parts {
		s.All += b.Count
	}
	from := 0.0
	for _, b := range parts {
		if b.Count > 0 {
			b.From, b.Width = from, 100*float64(b.Count)/float64(s.All)
			from += b.Width
			s.Bars = append(s.Bars, b)
		}
	}
	return s
}

// A codeGroup is what has the same code. Items are as many as one page can have.
type codeGroup struct {
	Code, Title, Remedy, Class string
	Count                      int
	Open                       bool
	Items                      []item
}

// most is how many of one kind the page has: it must stay a page.
const most = 50

// add counts an item, and keeps it while there is room.
func (g *codeGroup) add(i item) {
	g.Count++
	if len(g.Items) < most {
		g.Items = append(g.Items, i)
	}
}

// More is how many items are not on the page.
func (g codeGroup) More() int { return g.Count - len(g.Items) }

// An item is something to tell of a place.
type item struct {
	Message, Place, Of, Releases string
	Expression                   []string
}

// addOnce adds what is not there yet: forms of a rule, for one, are said the same of.
func (g *codeGroup) addOnce(i item) {
	if !slices.ContainsFunc(g.Items, i.equal) {
		g.add(i)
	}
}

// equal tells that a reader sees no difference.
func (i item) equal(j item) bool {
	return i.Message == j.Message && i.Place == j.Place && i.Of == j.Of && i.Releases == j.Releases && slices.Equal(i.Expression, j.Expression)
}

// groupOf is the group of a code, which is made where there is none.
func groupOf(list []codeGroup, code diag.Code, class string) ([]codeGroup, *codeGroup) {
	name := code.String()
	for i := range list {
		if list[i].Code == name && list[i].Class == class {
			return list, &list[i]
		}
	}
	_, title := diag.Title(code)
	list = append(list, codeGroup{Code: name, Title: title, Remedy: diag.Remedy(code), Class: class})
	return list, &list[len(list)-1]
}

func (p Page) view() view {
	v := view{Title: p.Title}
	if p.By != (By{}) {
		v.By = "kvap " + p.By.Version + ", " + p.By.Date.UTC().Format(time.RFC3339) + ": " + p.By.Command
	}
	if p.Conversion != nil {
		v.conversion(*p.Conversion, p.Pairs)
		if p.Check == nil { // of which they are findings
			v.diagnostics(*p.Conversion)
		}
	}
	if p.Plan != nil {
		v.plan(*p.Plan)
	}
	if p.Check != nil {
		v.check(*p.Check)
	}
	if p.Tests != nil {
		v.tests(*p.Tests)
	}
	slices.SortStableFunc(v.Findings, func(a, b codeGroup) int {
		gravest := []string{diag.Error.String(), diag.Warning.String(), diag.Note.String()}
		return cmp.Or(cmp.Compare(slices.Index(gravest, a.Class), slices.Index(gravest, b.Class)), b.Count-a.Count)
	})
	for i := range v.Findings {
		v.Findings[i].Open = v.Findings[i].Class == diag.Error.String()
	}
	return v
}
