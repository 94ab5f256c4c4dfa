package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kvap/kvap/diag"
)

type costBar struct {
	Object, Field, Safe       string
	Estimate, Measured, Limit string
	Percent                   float64 // of the limit, at most 100
	Class                     string
	measured, share           float64 // of the limit: counted, and at most
}

// compare puts the dearest first: what was counted is surer than an estimate.
func (b costBar) compare(c costBar) int {
	order := []string{over, near, cheap}
	return cmp.Or(cmp.Compare(slices.Index(order, b.Class), slices.Index(order, c.Class)), cmp.Compare(c.measured, b.measured), cmp.Compare(c.share, b.share))
}

// check shows what was found, and what is paid for it.
func (v *view) check(c Check) {
	v.Known = true
	if rows := c.byRelease(); len(rows) > 2 {
		v.Releases = rows
	}
	found, cost := map[string]int{}, map[string]int{}
	for _, o := range c.Objects {
		found[o.gravest()]++
		var own []costBar
		for _, k := range o.Cost {
			own = append(own, costBarOf(o, k))
		}
		if len(own) > 0 {
			cost[slices.MinFunc(own, costBar.compare).Class]++
		}
		v.Costs = append(v.Costs, own...)
	}
	v.findings(c)
	v.Found = sharesOf("objects have no findings", bar{Name: "clean", Class: "good", Count: found[""]},
		bar{Name: "with warnings", Class: "fair", Count: found[diag.Warning.String()]}, bar{Name: "with errors", Class: "bad", Count: found[diag.Error.String()]})
	v.Found.Note = c.Totals.String()
	slices.SortStableFunc(v.Costs, costBar.compare)
	const most = 25
	v.Costs = v.Costs[:min(len(v.Costs), most)]
	if len(v.Costs) > 0 {
		v.Dearest = &v.Costs[0]
		v.Budget = sharesOf("policies are far from the limits", bar{Name: "below a third", Class: "good", Count: cost[cheap]},
			bar{Name: "near", Class: "fair", Count: cost[near]}, bar{Name: "over", Class: "bad", Count: cost[over]})
	}
}

// gravest is the severity of what is gravest of an object; notes do not count.
func (o CheckedObject) gravest() string {
	least := diag.Note
	for _, f := range o.Findings {
		if f.Accepted == "" {
			least = min(least, f.Severity)
		}
	}
	if least == diag.Note {
		return ""
	}
	return least.String()
}

func (v *view) findings(c Check) {
	for _, f := range c.found {
		if f.Accepted != "" {
			continue
		}
		i := item{Message: f.Message, Place: f.Pos().String(), Of: f.of(), Releases: c.in(f.Finding)}
		if f.Expression != "" {
			i.Expression = excerptOf(f.Finding)
		}
		var of *codeGroup
		v.Findings, of = groupOf(v.Findings, f.Code, f.Severity.String())
		of.add(i)
	}
}

// The classes of cost.
const (
	cheap = "good"
	near  = "fair"
	over  = "bad"
)

func costBarOf(o CheckedObject, k ExpressionCost) costBar {
	limit := float64(max(k.Limit, 1))
	share := float64(max(k.Estimate, k.Measured)) / limit
	class := cheap
	switch {
	case k.Measured > k.Limit:
		class = over
	case share > 1.0/3:
		class = near
	}
	return costBar{
		Object: o.Name, Field: k.Field, Safe: k.Safe, Estimate: separated(k.Estimate), Measured: separated(k.Measured), Limit: separated(k.Limit),
		Percent: min(100, 100*share), Class: class, measured: float64(k.Measured) / limit, share: share,
	}
}

// separated is a number with commas.
func separated(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
