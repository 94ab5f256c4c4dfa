package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report/doc"
)

// A Diff is what a search for differences between two sets of policies found.
type Diff struct {
	Old         string           `json:"old"` // as they were named
	New         string           `json:"new"`
	Seed        uint64           `json:"seed"`
	Ignored     []string         `json:"ignored"`
	Comparisons []DiffComparison `json:"comparisons"`
	NotJudged   []DiffNotJudged  `json:"notJudged"`
	Totals      DiffTotals       `json:"totals"`
}

// A DiffComparison is the evidence for one pair of rules, or of policies. By says how the two were
// found to belong together.
type DiffComparison struct {
	Old         DiffPart         `json:"old"`
	New         DiffPart         `json:"new"`
	By          string           `json:"by"`
	Whole       bool             `json:"whole"` // the rules do not pair one to one
	Written     bool             `json:"writtenTheSame"`
	Requests    int              `json:"requests"`
	LeftOut     int              `json:"leftOut"` // requests in namespaces that bindings of one side leave out
	Differences []DiffDifference `json:"differences"`
	Error       string           `json:"error,omitempty"`
}

// A DiffPart is what of a side was compared, and how much of it was tried out. Unpaired are rules
// without a counterpart of their name.
type DiffPart struct {
	Policies  []string `json:"policies"`
	Rules     []string `json:"rules"`
	Unpaired  []string `json:"unpaired"`
	File      string   `json:"file,omitempty"`
	Line      int      `json:"line,omitempty"`
	Matched   int      `json:"matched"`
	Violated  int      `json:"violated"`
	Changed   int      `json:"changed"` // objects, by mutations
	Passed    int      `json:"passed"`
	Erred     int      `json:"erred"`
	Questions int      `json:"questions"`
	BothWays  int      `json:"bothWays"`
	Unseen    []string `json:"unseen"`
}

// A DiffDifference is a request on which the sides differ. Line is the request as kvap eval reads
// it; there is none where a part has no counterpart and says nothing of any request that was made.
type DiffDifference struct {
	Kind      string           `json:"kind"`
	Tried     int              `json:"tried"`
	Old       DiffAnswer       `json:"old"`
	New       DiffAnswer       `json:"new"`
	Summary   string           `json:"-"` // who does what, in words
	Object    map[string]any   `json:"-"`
	OldObject map[string]any   `json:"-"`
	Changes   string           `json:"changes,omitempty"` // of the object, from the old side to the new one
	Line      json.RawMessage  `json:"line,omitempty"`
	Params    []map[string]any `json:"params,omitempty"`
}

// A DiffAnswer is what a side says of a request.
type DiffAnswer struct {
	Outcome       string   `json:"outcome"`
	Actions       []string `json:"actions"`
	FailurePolicy string   `json:"failurePolicy,omitempty"` // of an error
	Message       string   `json:"message,omitempty"`
}

// A DiffNotJudged is a rule that was not compared.
type DiffNotJudged struct {
	Policy string `json:"policy"`
	Rule   string `json:"rule"`
	Why    string `json:"why"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
}

// DiffTotals count comparisons.
type DiffTotals struct {
	Comparisons int            `json:"comparisons"`
	Same        int            `json:"same"`
	Different   int            `json:"different"`
	NotCompared int            `json:"notCompared"` // nothing was seen that could tell the sides apart
	Thin        int            `json:"thin"`        // of the same ones, those with little evidence
	Requests    int            `json:"requests"`
	NotJudged   int            `json:"notJudged"` // rules
	Kinds       map[string]int `json:"kinds"`     // of differences
}

// NewDiff counts.
func NewDiff(d Diff) Diff {
	d.Totals = DiffTotals{Comparisons: len(d.Comparisons), NotJudged: len(d.NotJudged), Kinds: map[string]int{}}
	for _, c := range d.Comparisons {
		d.Totals.Requests += c.Requests
		for _, f := range c.Differences {
			d.Totals.Kinds[f.Kind]++
		}
		switch {
		case len(c.Differences) > 0:
			d.Totals.Different++
		case c.notCompared() != "":
			d.Totals.NotCompared++
		default:
			d.Totals.Same++
			if c.thin() != "" {
				d.Totals.Thin++
			}
		}
	}
	return d
}

// notCompared is why no request could tell the sides apart; "" where some could.
func (c DiffComparison) notCompared() string {
	switch {
	case c.Error != "":
		return c.Error
	case c.Written:
		return ""
	case c.Old.Matched+c.New.Matched == 0:
		return "no request matched"
	case c.Old.shows()+c.New.shows() == 0 && !c.mutates():
		return "no request violated either"
	case c.Old.shows()+c.New.shows() == 0:
		return "no request was changed by either"
	}
	return ""
}

// mutates tells of a comparison of objects, which nothing violates.
func (c DiffComparison) mutates() bool {
	return slices.Contains(c.Old.Rules, "mutations") || slices.Contains(c.New.Rules, "mutations")
}

// shows counts the requests that were violated, erred or changed.
func (p DiffPart) shows() int { return p.Violated + p.Erred + p.Changed }

// thin is why the evidence is little; "" where it is not.
func (c DiffComparison) thin() string {
	old, new := c.Old.Questions-c.Old.BothWays, c.New.Questions-c.New.BothWays
	switch {
	case c.Written:
		return ""
	case old > 0 && new > 0:
		return fmt.Sprintf("%d and %d questions not seen both ways", old, new)
	case old+new > 0:
		return doc.Count(old+new, "question", "questions") + " not seen both ways"
	}
	return ""
}

// kinds are those of the differences, in their order.
func (c DiffComparison) kinds() string {
	var out []string
	for _, d := range c.Differences {
		out = append(out, d.Kind)
	}
	return strings.Join(out, ", ")
}

func (c DiffComparison) result() string {
	switch {
	case len(c.Differences) > 0:
		return "DIFFER: " + c.kinds()
	case c.notCompared() != "":
		return "not compared: " + c.notCompared()
	case c.Written:
		return "same: written the same"
	case c.thin() != "":
		return "no difference; thin: " + c.thin()
	}
	return "no difference"
}

// title names a part: the policy and the rule, where the rule has another name.
func (p DiffPart) title() string {
	switch {
	case len(p.Rules) == 0:
		return "-"
	case len(p.Policies) > 1:
		return strings.Join(p.Policies, " + ")
	case len(p.Rules) > 1:
		return p.Policies[0] + " (" + doc.Count(len(p.Rules), "rule", "rules") + ")"
	case p.Policies[0] == p.Rules[0]:
		return p.Rules[0]
	}
	return p.Policies[0] + "/" + p.Rules[0]
}

func (c DiffComparison) row() []string {
	counts := []string{"-", "-", "-"}
	if !c.Written && c.Error == "" {
		counts = []string{
			strconv.Itoa(c.Requests - c.LeftOut), fmt.Sprintf("%d | %d", c.Old.shows(), c.New.shows()),
			fmt.Sprintf("%d/%d | %d/%d", c.Old.BothWays, c.Old.Questions, c.New.BothWays, c.New.Questions),
		}
	}
	return append(append([]string{c.Old.title(), c.New.title(), c.By}, counts...), c.result())
}

func (n DiffNotJudged) title() string {
	return DiffPart{Policies: []string{n.Policy}, Rules: []string{n.Rule}}.title()
}

// Document has one line for each comparison, every request on which the sides differ with both
// answers, and the totals. Where all is set, what was not seen both ways is listed too.
func (d Diff) Document(all bool) doc.Document {
	rows := [][]string{{"old", "new", "paired by", "requests", "violated", "questions", "result"}}
	whole, differences := doc.Section{Title: "Compared as a whole"}, doc.Section{Title: "Differences"}
	left, unseen := doc.Section{Title: "Not compared"}, doc.Section{Title: "Not seen both ways"}
	for _, c := range d.Comparisons {
		rows = append(rows, c.row())
		of := []string{c.title()}
		if c.Whole {
			text := "the rules do not pair one to one, so the whole of both is compared" + unpaired("old", c.Old.Unpaired) + unpaired("new", c.New.Unpaired)
			whole.Items = append(whole.Items, doc.Item{Of: of, Text: text})
		}
		for _, f := range c.Differences {
			differences.Items = append(differences.Items, f.item(c))
		}
		if !all {
			continue
		}
		if c.LeftOut > 0 {
			left.Items = append(left.Items, doc.Item{Of: of, Text: doc.Count(c.LeftOut, "request", "requests") +
				" not compared: bindings of one side leave out their namespaces, which on the other Kyverno's configuration does"})
		}
		for i, side := range []DiffPart{c.Old, c.New} {
			for _, u := range side.Unseen {
				unseen.Items = append(unseen.Items, doc.Item{Of: of, Text: []string{"old", "new"}[i] + ": not seen both ways: " + u})
			}
		}
	}
	for _, n := range d.NotJudged {
		left.Items = append(left.Items, doc.Item{Text: n.title() + " is not compared: it " + n.Why})
	}
	return doc.Document{
		Title: "Do they say the same?", Data: d, Alerts: d.alerts(), Totals: doc.Section{Text: d.Totals.String()},
		Sections: []doc.Section{
			{In: doc.Pages, Text: "Old: " + d.Old + "; new: " + d.New + "\nNo difference found is evidence, and no proof."},
			{Table: rows}, whole, differences, left, unseen,
		},
	}
}

// title is that of both parts, once where they are called the same.
func (c DiffComparison) title() string {
	if old, new := c.Old.title(), c.New.title(); old != new {
		return old + " -> " + new
	}
	return c.Old.title()
}

// item is the difference, with what both sides say and, where there is one, the request.
func (d DiffDifference) item(c DiffComparison) doc.Item {
	item := doc.Item{Of: []string{c.title()}, Text: d.headline(c)}
	if d.Line == nil {
		return item
	}
	item.Items = append([]doc.Item{{Of: []string{"old"}, Text: d.Old.line()}, {Of: []string{"new"}, Text: d.New.line()}}, requestItems(d.Summary, d.Object, d.OldObject)...)
	if d.Changes != "" {
		item.Items = append(item.Items, doc.Item{Of: []string{"changes (-old +new)"}, Code: d.Changes})
	}
	return requestLine(item, d.Params, d.Line)
}

func unpaired(side string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; only " + side + ": " + strings.Join(names, ", ")
}

// headline says what kind of difference it is.
func (d DiffDifference) headline(c DiffComparison) string {
	if d.Kind == "unpaired" {
		side := "new"
		if len(c.New.Rules) == 0 {
			side = "old"
		}
		if d.Line == nil {
			return "unpaired: only the " + side + " side has it; no request was found of which it says anything"
		}
		return "unpaired: only the " + side + " side has it, found by request " + strconv.Itoa(d.Tried)
	}
	what := map[string]string{
		"verdict": "verdict: one side finds a violation, the other none", "scope": "scope: one side finds a violation, the other is not about the request",
		"object": "object: the sides change it to different ones", "failurePolicy": "failurePolicy: an error refuses on one side and admits on the other",
		"action": "action: what follows from a violation differs", "message": "message: the violation is the same, the words differ",
	}[d.Kind]
	return what + ", found by request " + strconv.Itoa(d.Tried)
}

// String is the answer in a few words.
func (a DiffAnswer) String() string {
	out := a.Outcome
	if len(a.Actions) > 0 && (a.Outcome == "violated" || a.Outcome == "errs") {
		out += " (" + strings.Join(a.Actions, ", ") + ")"
	}
	if a.FailurePolicy != "" {
		out += ", failurePolicy " + a.FailurePolicy
	}
	return out
}

// String is the totals in a sentence.
func (t DiffTotals) String() string {
	s := fmt.Sprintf("%s: %d without a difference, %d differ", doc.Count(t.Comparisons, "comparison", "comparisons"), t.Same, t.Different)
	if t.NotCompared > 0 {
		s += fmt.Sprintf(", %d not compared", t.NotCompared)
	}
	s += "; " + doc.Count(t.Requests, "request", "requests")
	if t.Thin > 0 {
		s += fmt.Sprintf("; %d on thin evidence", t.Thin)
	}
	if t.NotJudged > 0 {
		s += "; " + doc.Count(t.NotJudged, "rule", "rules") + " not judged"
	}
	return s
}

// alerts are the differences, at what is new of them, or at what is old.
func (d Diff) alerts() (out []doc.Alert) {
	for _, c := range d.Comparisons {
		pos := diag.Pos{File: c.New.File, Line: c.New.Line, Col: 1}
		if len(c.New.Rules) == 0 {
			pos = diag.Pos{File: c.Old.File, Line: c.Old.Line, Col: 1}
		}
		for _, f := range c.Differences {
			a := doc.Alert{Rule: "differs-in-" + f.Kind, Severity: diag.Error, Pos: pos, Of: c.title(), Message: c.title() + ": " + f.headline(c)}
			if f.Line != nil {
				a.Message += strings.ReplaceAll(": "+f.Summary+"; old: "+f.Old.line()+"; new: "+f.New.line(), "\n", " ")
			}
			if slices.Contains([]string{"action", "message", "failurePolicy"}, f.Kind) {
				a.Severity = diag.Warning
			}
			out = append(out, a)
		}
		if why := c.notCompared(); why != "" && len(c.Differences) == 0 {
			out = append(out, doc.Alert{Rule: "not-compared", Severity: diag.Warning, Pos: pos, Of: c.title(), Message: c.title() + " is not compared: " + why})
		}
	}
	for _, n := range d.NotJudged {
		out = append(out, doc.Alert{Rule: "not-compared", Severity: diag.Warning, Pos: diag.Pos{File: n.File, Line: n.Line, Col: 1}, Of: n.title(), Message: n.title() + " is not compared: it " + n.Why})
	}
	return out
}

func (a DiffAnswer) line() string {
	if a.Message == "" {
		return a.String()
	}
	return a.String() + ": " + a.Message
}
