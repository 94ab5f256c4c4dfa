package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
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
		return Count(r.Predicates-r.BothWays, "predicate", "predicates") + " not seen both ways"
	}
	return ""
}

// WriteJSON writes the verification for programs.
func (v Verification) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteText writes one line for each rule, every counterexample with what both
// sides say, and the totals. Where all is set, what was not seen both ways is
// listed too.
func (v Verification) WriteText(w io.Writer, all bool) error {
	rows := [][]string{{"POLICY", "RULE", "REQUESTS", "MATCHED", "PASS", "FAIL", "SKIP", "ERROR", "PREDICATES", "RESULT"}}
	var details strings.Builder
	titles := v.titles()
	for i, p := range v.Policies {
		title := titles[i]
		if len(p.Rules) == 0 {
			rows = append(rows, []string{title, "-", "-", "-", "-", "-", "-", "-", "-", "nothing to compare"})
		}
		for _, r := range p.Rules {
			rows = append(rows, r.row(title, p))
			r.details(&details, title, all)
		}
		for _, text := range p.Refused {
			fmt.Fprintf(&details, "\n%s: an API server refuses the translation: %s\n", title, text)
		}
		if p.Error != "" {
			fmt.Fprintf(&details, "\n%s: %s\n", title, p.Error)
		}
	}
	if details.Len() > 0 {
		details.WriteByte('\n')
	}
	return writeTable(w, rows, details.String()+v.Totals.String())
}

// titles are the names of the policies, with the file where several have one name.
func (v Verification) titles() []string {
	var names, files []string
	for _, p := range v.Policies {
		names, files = append(names, Policy{Name: p.Name, Namespace: p.Namespace}.title()), append(files, p.File)
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

func (r VerifiedRule) details(b *strings.Builder, title string, all bool) {
	if c := r.Counterexample; c != nil {
		fmt.Fprintf(b, "\n%s/%s: native %s, interpreter %s, found by request %d\n", title, r.Rule, c.Native, c.Interp, c.Tried)
		writeIndented(b, "native", c.NativeMessage)
		writeIndented(b, "interpreter", c.InterpMessage)
		fmt.Fprintf(b, "  request: %s\n", c.Summary)
		writeObject(b, "object", c.Object)
		writeObject(b, "old object", c.OldObject)
		for _, object := range c.Params {
			writeObject(b, "looked up", object)
		}
		fmt.Fprintf(b, "  for kvap eval --requests: %s\n", c.Line)
	}
	if !all {
		return
	}
	for _, u := range r.Unseen {
		what := "never seen"
		switch {
		case u.Holds:
			what = "never seen to fail"
		case u.Fails:
			what = "never seen to hold"
		}
		at := u.At
		if at == "" {
			at = "the rule's match"
		}
		fmt.Fprintf(b, "\n%s/%s: %s: %s\n", title, r.Rule, at, what)
	}
}

func writeIndented(b *strings.Builder, label, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	fmt.Fprintf(b, "  %s: %s\n", label, strings.ReplaceAll(text, "\n", "\n    "))
}

func writeObject(b *strings.Builder, label string, object map[string]any) {
	if object == nil {
		return
	}
	data, err := yaml.Marshal(object)
	if err != nil {
		data = []byte(err.Error())
	}
	fmt.Fprintf(b, "  %s:\n    %s\n", label, strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n    "))
}

// String is the totals in a sentence.
func (t VerificationTotals) String() string {
	s := fmt.Sprintf("%s, %s: %d native, %s, %s",
		Count(t.Policies, "policy", "policies"), Count(t.Rules, "rule", "rules"), t.Native,
		Count(t.Requests, "request", "requests"), Count(t.Disagreeing, "disagreement", "disagreements"))
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
