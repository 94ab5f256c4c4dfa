package report

import (
	"fmt"

	"github.com/kvap/kvap/report/doc"
)

// A RequestCost is what a request that creates or changes an object of a resource sets
// off at most: calls of webhooks, and policy objects by which the API server judges
// itself.
type RequestCost struct {
	Group    string     `json:"group"`
	Resource string     `json:"resource"` // * for all that are not listed
	Before   CostBefore `json:"before"`
	After    CostAfter  `json:"after"`
}

// CostBefore is the cost with Kyverno.
type CostBefore struct {
	Kyverno int `json:"kyverno"` // calls of its webhooks
}

// CostAfter is the cost once all policies have moved.
type CostAfter struct {
	Kyverno int `json:"kyverno"` // calls of its webhooks, for the rules that stay there
	Kvap    int `json:"kvap"`    // calls of kvap's webhook
	Objects int `json:"objects"` // native policies
}

// String tells whose webhooks are called.
func (c CostAfter) String() string {
	switch {
	case c.Kyverno > 0 && c.Kvap > 0:
		return fmt.Sprintf("%d (Kyverno %d, kvap %d)", c.Kyverno+c.Kvap, c.Kyverno, c.Kvap)
	case c.Kyverno > 0:
		return fmt.Sprintf("%d (Kyverno)", c.Kyverno)
	case c.Kvap > 0:
		return fmt.Sprintf("%d (kvap)", c.Kvap)
	}
	return "0"
}

// The resources that are shown: those where there is most to gain or to lose.
const (
	mostInTable = 5
	mostOnPage  = 20
)

// costNote says what the rows count.
const costNote = "For each request that creates or changes an object, at most: how many webhooks the API server calls, " +
	"and how many native policies it judges by itself."

// costSections are the busiest resources: a few on a terminal, more on a page.
func (p Plan) costSections() []doc.Section {
	rows := [][]string{{"request on", "webhook calls now", "webhook calls after", "native policies after"}}
	for _, c := range p.Costs[:min(mostOnPage, len(p.Costs))] {
		rows = append(rows, []string{c.name(), fmt.Sprint(c.Before.Kyverno), c.After.String(), fmt.Sprint(c.After.Objects)})
	}
	few := doc.Section{In: doc.Terminal, Table: rows[:min(mostInTable+1, len(rows))]}
	if n := len(p.Costs) - mostInTable; n > 0 {
		few.Items = []doc.Item{{Text: "and " + doc.Count(n, "more resource", "more resources") + ": -o json has all"}}
	}
	page := doc.Section{In: doc.Pages, Title: "What a request costs"}
	if len(p.Costs) > 0 {
		page.Text, page.Table = costNote, rows
	}
	return []doc.Section{few, page}
}

func (c RequestCost) name() string {
	switch {
	case c.Resource == "*":
		return "anything else"
	case c.Group == "":
		return c.Resource
	}
	return c.Resource + "." + c.Group
}
