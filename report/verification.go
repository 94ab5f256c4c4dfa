package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/report/doc"
)

// A Verification is what a search for disagreements found.
type Verification struct {
	Seed     uint64             `json:"seed"`
	Policies []VerifiedPolicy   `json:"policies"`
	Totals   VerificationTotals `json:"totals"`
}

// A VerifiedPolicy is a policy that was searched. Refused is why an API server
// would not take what it was translated to; Error is why it could not be searched.
type VerifiedPolicy struct {
	Name      string         `json:"name"`
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace,omitempty"`
	File      string         `json:"file"`
	Requests  int            `json:"requests"`
	Rules     []VerifiedRule `json:"rules"`
	Refused   []string       `json:"refused"`
	Error     string         `json:"error,omitempty"`
}

// A VerifiedRule is the evidence for one rule, as Kyverno reports it. One that is
// not native has nothing to be held against.
type VerifiedRule struct {
	Rule           string              `json:"rule"`
	Target         string              `json:"target"` // native or webhook
	Matched        int                 `json:"matched"`
	Verdicts       map[string]int      `json:"verdicts"`
	Predicates     int                 `json:"predicates"`
	BothWays       int                 `json:"bothWays"`
	Unseen         []UnseenPredicate   `json:"unseen"`
	Counterexample *CounterexampleForm `json:"counterexample,omitempty"`
}

// An UnseenPredicate is a condition, or a key of a pattern, that was not seen both
// to hold and to fail. Where At is empty, it is whether the rule applies.
type UnseenPredicate struct {
	At    string `json:"at"`
	Holds bool   `json:"holds"`
	Fails bool   `json:"fails"`
}

// A CounterexampleForm is a request of which native form and interpreter think
// differently. Line is the request as kvap eval reads it.
type CounterexampleForm struct {
	Tried         int             `json:"tried"`
	Native        string          `json:"native"`
	NativeMessage string          `json:"nativeMessage"`
	Interp        string          `json:"interp"`
	InterpMessage string          `json:"interpMessage"`
	Summary       string          `json:"-"` // who does what, in words
	Object        map[string]any  `json:"-"`
	OldObject     map[string]any  `json:"-"`
	Line          json.RawMessage `json:"line"`
	// Params are the objects that rules looked up.
	Params []map[string]any `json:"params,omitempty"`
}

// VerificationTotals count policies and the forms of their rules.
type VerificationTotals struct {
	Policies     int `json:"policies"`
	Rules        int `json:"rules"`
	Native       int `json:"native"`
	Requests     int `json:"requests"`
	Disagreeing  int `json:"disagreeing"` // rules
	Refused      int `json:"refused"`     // policies
	Unsearchable int `json:"unsearchable"`
	NotCompared  int `json:"notCompared"` // rules: not native, or never matched
	NeverMatched int `json:"neverMatched"`
	Thin         int `json:"thin"` // rules that were compared on little
}

// NewVerification counts.
func NewVerification(seed uint64, policies []VerifiedPolicy) Verification {
	v := Verification{Seed: seed, Policies: policies}
	v.Totals.Policies = len(policies)
	for _, p := range policies {
		v.Totals.Requests += p.Requests
		v.Totals.Rules += len(p.Rules)
		if len(p.Refused) > 0 {
			v.Totals.Refused++
		}
		if p.Error != "" {
			v.Totals.Unsearchable++
		}
		for _, r := range p.Rules {
			if r.Target == string(Native) {
				v.Totals.Native++
			}
			if r.neverMatched(p) {
				v.Totals.NeverMatched++
			}
			switch {
			case r.Counterexample != nil:
				v.Totals.Disagreeing++
			case !r.compared(p):
				v.Totals.NotCompared++
			case r.thin() != "":
				v.Totals.Thin++
			}
		}
	}
	return v
}

// compared tells whether some request was put before both judges on which the rule
// has something to say.
func (r VerifiedRule) compared(p VerifiedPolicy) bool {
	return r.Target == string(Native) && p.Error == "" && r.Matched > 0
}

// neverMatched tells that a native rule had something to say of none of the requests.
func (r VerifiedRule) neverMatched(p VerifiedPolicy) bool {
	return r.Target == string(Native) && p.Error == "" && r.Matched == 0
}

// thin is why the evidence for a rule that was compared is little; "" where it is not.
func (r VerifiedRule) thin() string {
	switch {
	case r.Verdicts["fail"]+r.Verdicts["error"] == 0:
		return "never failed"
	case r.Verdicts["pass"]+r.Verdicts["skip"] == 0:
		return "never passed"
	case r.BothWays < r.Predicates:
		return doc.Count(r.Predicates-r.BothWays, "predicate", "predicates") + " not seen both ways"
	}
	return ""
}

// Document has a line for each rule, every counterexample with what both sides say, and the totals.
// Where all is set, what was not seen both ways is listed too.
func (v Verification) Document(all bool) doc.Document {
	rows := [][]string{{"policy", "rule", "requests", "matched", "pass", "fail", "skip", "error", "predicates", "result"}}
	var found, others []doc.Item
	titles := v.titles()
	for i, p := range v.Policies {
		title := titles[i]
		if len(p.Rules) == 0 {
			rows = append(rows, []string{title, "-", "-", "-", "-", "-", "-", "-", "-", "nothing to compare"})
		}
		for _, r := range p.Rules {
			rows = append(rows, r.row(title, p))
			if c := r.Counterexample; c != nil {
				found = append(found, c.item(title+"/"+r.Rule))
			}
			for _, u := range r.Unseen {
				if all {
					others = append(others, doc.Item{Of: []string{title + "/" + r.Rule}, Text: u.String()})
				}
			}
		}
		for _, text := range p.Refused {
			others = append(others, doc.Item{Of: []string{title}, Text: "an API server refuses the translation: " + text})
		}
		if p.Error != "" {
			others = append(others, doc.Item{Of: []string{title}, Text: p.Error})
		}
	}
	return doc.Document{Data: v, Totals: doc.Section{Text: v.Totals.String()}, Sections: []doc.Section{{Table: rows}, {Items: found}, {Items: others}}}
}

// item is the counterexample with what makes it one.
func (c CounterexampleForm) item(of string) doc.Item {
	item := doc.Item{
		Of: []string{of}, Text: fmt.Sprintf("native %s, interpreter %s, found by request %d", c.Native, c.Interp, c.Tried),
		Items: []doc.Item{{Of: []string{"native"}, Text: c.NativeMessage}, {Of: []string{"interpreter"}, Text: c.InterpMessage}},
	}
	item.Items = slices.DeleteFunc(item.Items, func(i doc.Item) bool { return strings.TrimSpace(i.Text) == "" })
	item.Items = append(item.Items, requestItems(c.Summary, c.Object, c.OldObject)...)
	return requestLine(item, c.Params, c.Line)
}

// requestItems say what a request is.
func requestItems(summary string, object, old map[string]any) []doc.Item {
	items := []doc.Item{{Of: []string{"request"}, Text: summary}}
	for i, o := range []map[string]any{object, old} {
		if o != nil {
			items = append(items, objectItem([]string{"object", "old object"}[i], o))
		}
	}
	return items
}

// requestLine adds what was looked up, and the line by which kvap eval has the request.
func requestLine(item doc.Item, params []map[string]any, line json.RawMessage) doc.Item {
	for _, object := range params {
		item.Items = append(item.Items, objectItem("looked up", object))
	}
	item.Items = append(item.Items, doc.Item{Of: []string{"for kvap eval --requests"}, Text: string(line)})
	return item
}

func objectItem(name string, object map[string]any) doc.Item {
	data, err := yaml.Marshal(object)
	if err != nil {
		data = []byte(err.Error())
	}
	return doc.Item{Of: []string{name}, Code: string(data)}
}

// String says what was not seen.
func (u UnseenPredicate) String() string {
	what := "never seen"
	switch {
	case u.Holds:
		what = "never seen to fail"
	case u.Fails:
		what = "never seen to hold"
	}
	return cmp.Or(u.At, "the rule's match") + ": " + what
}

// titles are the names of the policies, with the file where several have one name.
func (v Verification) titles() []string {
	var names, files []string
	for _, p := range v.Policies {
		names, files = append(names, titleOf(p.Namespace, p.Name)), append(files, p.File)
	}
	return apart(names, files)
}

func (r VerifiedRule) row(title string, p VerifiedPolicy) []string {
	if r.Target != string(Native) {
		return []string{title, r.Rule, "-", "-", "-", "-", "-", "-", "-", r.Target}
	}
	row := []string{title, r.Rule, strconv.Itoa(p.Requests), strconv.Itoa(r.Matched)}
	for _, status := range []string{"pass", "fail", "skip", "error"} {
		row = append(row, strconv.Itoa(r.Verdicts[status]))
	}
	result := "agree"
	switch {
	case r.Counterexample != nil:
		result = "DISAGREE"
	case p.Error != "":
		result = "not searched"
	case r.neverMatched(p):
		result = "not compared: never matched"
	case r.thin() != "":
		result = "agree; thin: " + r.thin()
	}
	return append(row, fmt.Sprintf("%d/%d", r.BothWays, r.Predicates), result)
}

// String is the totals in a sentence.
func (t VerificationTotals) String() string {
	s := fmt.Sprintf("%s, %s: %d native, %s, %s",
		doc.Count(t.Policies, "policy", "policies"), doc.Count(t.Rules, "rule", "rules"), t.Native,
		doc.Count(t.Requests, "request", "requests"), doc.Count(t.Disagreeing, "disagreement", "disagreements"))
	if t.NotCompared > 0 {
		s += fmt.Sprintf(", %d not compared", t.NotCompared)
	}
	if t.NeverMatched > 0 {
		s += fmt.Sprintf(" (%d never matched)", t.NeverMatched)
	}
	if t.Thin > 0 {
		s += fmt.Sprintf(", %d on thin evidence", t.Thin)
	}
	if t.Refused > 0 {
		s += fmt.Sprintf(", %d refused", t.Refused)
	}
	if t.Unsearchable > 0 {
		s += fmt.Sprintf(", %d not searched", t.Unsearchable)
	}
	return s
}
