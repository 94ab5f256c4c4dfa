package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/kvap/kvap/report/doc"
)

// mostBars is how many expressions a page has, the dearest first.
const mostBars = 25

// An expense is what an expression costs.
type expense struct {
	ExpressionCost
	object          string
	rank            int     // 0 over the limit, 1 near it, 2 far from it
	measured, share float64 // of the limit: counted, and at most
}

func expenseOf(object string, k ExpressionCost) expense {
	limit := float64(max(k.Limit, 1))
	e := expense{k, object, 2, float64(k.Measured) / limit, float64(max(k.Estimate, k.Measured)) / limit}
	switch {
	case k.Measured > k.Limit:
		e.rank = 0
	case e.share > 1.0/3:
		e.rank = 1
	}
	return e
}

// compare puts the dearest first: what was counted is surer than an estimate.
func (e expense) compare(o expense) int {
	return cmp.Or(cmp.Compare(e.rank, o.rank), cmp.Compare(o.measured, e.measured), cmp.Compare(o.share, e.share))
}

func (e expense) row() []string {
	return []string{e.object, e.Field, strconv.FormatInt(e.Estimate, 10), strconv.FormatInt(e.Measured, 10), strconv.FormatInt(e.Limit, 10), doc.OrDash(e.Safe)}
}

// item is the expense with a bar, which is full at the limit.
func (e expense) item() doc.Item {
	text := "by estimate up to " + separated(e.Estimate) + ", measured " + separated(e.Measured) + ", limit " + separated(e.Limit)
	if e.Safe != "" {
		text += ", safe " + e.Safe
	}
	percent := min(100, int(100*e.share))
	bars := []doc.Bar{{Name: "% of the limit", Class: []string{"bad", "fair", "good"}[e.rank], Count: percent}, {Count: 100 - percent}}
	return doc.Item{Of: []string{e.object, e.Field}, Text: text, Bars: bars}
}

// costs adds what expressions cost: to a terminal all of them, where that is asked for; to Markdown
// what is not far from a limit; to HTML the dearest.
func (c Check) costs(d *doc.Document, asked bool) {
	header := []string{"object", "field", "estimate", "measured", "limit", "safe up to"}
	all, near := doc.Section{In: doc.Terminal, Table: [][]string{header}}, doc.Section{In: doc.Markdown, Title: "Cost", Table: [][]string{header}}
	var expenses []expense
	var ranks [3]int // policies by their dearest
	for _, o := range c.Objects {
		var own []expense
		for _, k := range o.Cost {
			e := expenseOf(o.Name, k)
			own = append(own, e)
			if all.Table = append(all.Table, e.row()); e.rank < 2 {
				near.Table = append(near.Table, e.row())
			}
		}
		if len(own) > 0 {
			ranks[slices.MinFunc(own, expense.compare).rank]++
		}
		expenses = append(expenses, own...)
	}
	if len(expenses) == 0 {
		return
	}
	slices.SortStableFunc(expenses, expense.compare)
	bars := doc.Section{In: doc.HTML, Title: "What it costs per request", Text: "Estimated for large objects, and measured on generated ones by the API server's own counter, " +
		"which stops at the limit. The dearest come first."}
	for _, e := range expenses[:min(mostBars, len(expenses))] {
		bars.Items = append(bars.Items, e.item())
	}
	if asked {
		d.Sections = append(d.Sections, all)
	}
	d.Sections = append(d.Sections, near, bars)
	dearest := expenses[0]
	d.Shares = append(d.Shares, doc.Share{
		What: "policies are far from the limits", Note: fmt.Sprintf("Dearest: %s %s, measured %s of %s", dearest.object, dearest.Field, separated(dearest.Measured), separated(dearest.Limit)),
		Bars: []doc.Bar{{Name: "below a third", Class: "good", Count: ranks[2]}, {Name: "near", Class: "fair", Count: ranks[1]}, {Name: "over", Class: "bad", Count: ranks[0]}},
	})
}

// separated is a number with commas.
func separated(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
