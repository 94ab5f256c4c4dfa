package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// A shownTable is rows below a header, as many as one page can have. More is how many
// are not on it.
type shownTable struct {
	Title, Note string
	Rows        [][]string
	More        int
}

// mostPlanned is how many rows a table of a plan has: a change request is read whole.
const mostPlanned = 500

func (t *shownTable) cut() shownTable {
	if n := len(t.Rows) - 1; n > mostPlanned {
		t.Rows, t.More = t.Rows[:mostPlanned+1], n-mostPlanned
	}
	return *t
}

// plan shows the waves, what existing objects violate, what a request costs, and what
// the codes mean.
func (v *view) plan(p Plan) {
	v.Rules = p.Totals.Rules.share()
	v.Rules.Note = p.Totals.String()
	for _, w := range p.Waves {
		v.Tables = append(v.Tables, p.shownWave(w))
	}
	if lines := p.upgradeLines(); len(lines) > 0 {
		v.Tables = append(v.Tables, shownTable{Title: "What Kyverno 1.20 and 1.21 change", Note: strings.Join(lines, ". ") + "."})
	}
	if p.Looked != nil {
		v.Tables = append(v.Tables, p.shownViolations())
	}
	if rows := p.costRows(mostOnPage); len(rows) > 1 {
		for i, heading := range rows[0] { // those of a page are no capitals
			rows[0][i] = heading[:1] + strings.ToLower(heading[1:])
		}
		v.Tables = append(v.Tables, shownTable{Title: "What a request costs", Note: costNote, Rows: rows})
	}
	v.Behind = p.behind()
	if codes := p.allCodes(); len(codes) > 0 {
		t := shownTable{Title: "What the codes mean", Note: "kvap explain says more of each.", Rows: [][]string{{"Code", "About", "Way out"}}}
		for _, c := range codes {
			t.Rows = append(t.Rows, []string{c.Code.String(), c.Title, c.Remedy})
		}
		v.Tables = append(v.Tables, t)
	}
}

func (p Plan) shownWave(w Wave) shownTable {
	t := shownTable{Title: fmt.Sprintf("Wave %d: %s", w.Number, w.Title), Note: w.Advice,
		Rows: [][]string{{"Policy", "Kind", "Becomes", "Action", "Rules", "Violated", "On 1.20", "On 1.21", "Codes"}}}
	for _, one := range p.Policies {
		if one.Wave == w.Number {
			t.Rows = append(t.Rows, []string{one.title(), one.Kind, one.Becomes, one.action(), fmt.Sprint(len(one.Rules)), one.violated(),
				orDash(one.Kyverno.On120), orDash(one.Kyverno.On121), codeList(one.codes())})
		}
	}
	return t.cut()
}

func (p Plan) shownViolations() shownTable {
	t := shownTable{Title: "What existing objects violate", Note: p.Looked.String()}
	for _, r := range p.violatedRules() {
		if len(t.Rows) == 0 {
			t.Rows = [][]string{{"Policy", "Rule", "Objects"}}
		}
		t.Rows = append(t.Rows, []string{r.policy, r.rule, r.Violations.String()})
	}
	return t.cut()
}

// behind are the codes for which rules are not native, the most frequent first.
func (p Plan) behind() []codeGroup {
	var out []codeGroup
	for _, one := range p.Policies {
		for _, r := range one.Rules {
			if r.Target == Native {
				continue
			}
			var g *codeGroup
			var code diag.Code
			if len(r.Codes) > 0 {
				code = r.Codes[0].Code
			}
			out, g = groupFor(out, code, classOf(r.Target))
			g.add(item{Message: r.Reason, Of: one.title() + " / " + r.Rule, Place: diag.Pos{File: one.File, Line: r.Line}.String()})
		}
	}
	slices.SortStableFunc(out, func(a, b codeGroup) int { return b.Count - a.Count })
	return out
}
