package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// A Plan is how policies leave Kyverno's webhook, in waves.
type Plan struct {
	Waves    []Wave          `json:"waves"`
	Policies []PlannedPolicy `json:"policies"` // in the order in which they go
	Totals   PlanTotals      `json:"totals"`
	// Looked is nil where no objects were put before the rules.
	Looked *Looked `json:"looked"`
	// Upgrade is nil where no cluster was asked.
	Upgrade *Upgrade `json:"upgrade"`
	// LegacyExceptions is how many exceptions there are of a kind that Kyverno gives up.
	LegacyExceptions int `json:"legacyExceptions"`
	// Costs are of the resources that the policies are about, the busiest first.
	Costs []RequestCost `json:"costs"`
}

// A Wave is policies that go together.
type Wave struct {
	Number   int      `json:"wave"`
	Title    string   `json:"title"`
	Advice   string   `json:"advice"`
	Policies []string `json:"policies"`
}

// A PlannedPolicy is what one policy becomes.
type PlannedPolicy struct {
	Kind      string        `json:"kind"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	File      string        `json:"file"`
	Line      int           `json:"line"`
	Becomes   string        `json:"becomes"` // native, mixed, webhook or unsupported
	Denies    bool          `json:"denies"`  // whether a violation is denied, in some namespace
	Wave      int           `json:"wave"`
	Kyverno   Ahead         `json:"kyverno"` // empty for a policy that has left it
	Objects   []string      `json:"objects"`
	Rules     []PlannedRule `json:"rules"`
}

// A PlannedRule is what one rule becomes.
type PlannedRule struct {
	Rule   string        `json:"rule"`
	Type   string        `json:"type"`
	Target Target        `json:"target"`
	Denies bool          `json:"denies"`
	Line   int           `json:"line"`
	Reason string        `json:"reason"`
	Codes  []PlannedCode `json:"codes"`
	// Violations is nil where the rule was not asked: without objects, and for a rule
	// that is asked at admission only.
	Violations *Violations `json:"violations"`
}

// A PlannedCode is a code, what it is about, and the way out.
type PlannedCode struct {
	Code   diag.Code `json:"code"`
	Title  string    `json:"title"`
	Remedy string    `json:"remedy"`
}

// PlanTotals counts policies by what they become, and rules by where they go.
type PlanTotals struct {
	Policies    int    `json:"policies"`
	Native      int    `json:"native"`
	Mixed       int    `json:"mixed"`
	Webhook     int    `json:"webhook"`
	Unsupported int    `json:"unsupported"`
	Rules       Totals `json:"rules"`
}

// NewPlan makes a plan of policies in the order in which they go, and of the waves
// that there can be; those that nobody is in are left out.
func NewPlan(policies []PlannedPolicy, waves []Wave) Plan {
	p := Plan{Policies: []PlannedPolicy{}, Waves: []Wave{}, Costs: []RequestCost{}}
	for _, one := range policies {
		one.Objects = filled(one.Objects)
		rules := []PlannedRule{}
		for _, r := range one.Rules {
			r.Codes = filled(r.Codes)
			if r.Violations != nil {
				r.Violations.Examples = filled(r.Violations.Examples)
			}
			rules = append(rules, r)
			p.Totals.Rules.count(r.Target)
			if r.Target == Native && slices.ContainsFunc(r.Codes, func(c PlannedCode) bool { return c.Code == diag.GuessedResource }) {
				p.Totals.Rules.Guessed++
			}
		}
		one.Rules = rules
		p.Policies = append(p.Policies, one)
		p.Totals.count(one.Becomes)
	}
	p.Totals.Rules.Policies = p.Totals.Policies
	for _, w := range waves {
		w.Policies = []string{}
		for _, one := range p.Policies {
			if one.Wave == w.Number {
				w.Policies = append(w.Policies, one.title())
			}
		}
		if len(w.Policies) > 0 {
			p.Waves = append(p.Waves, w)
		}
	}
	return p
}

func (t *PlanTotals) count(becomes string) {
	t.Policies++
	switch becomes {
	case "native":
		t.Native++
	case "mixed":
		t.Mixed++
	case "webhook":
		t.Webhook++
	default:
		t.Unsupported++
	}
}

// String is the totals in a sentence.
func (t PlanTotals) String() string {
	return fmt.Sprintf("%s: %d native, %d mixed, %d webhook, %d unsupported (%s: %d native, %d webhook, %d unsupported)",
		Count(t.Policies, "policy", "policies"), t.Native, t.Mixed, t.Webhook, t.Unsupported,
		Count(t.Rules.Rules, "rule", "rules"), t.Rules.Native, t.Rules.Webhook, t.Rules.Unsupported)
}

// title is the name with what it needs to be told from others.
func (p PlannedPolicy) title() string {
	if p.Namespace != "" {
		return p.Namespace + "/" + p.Name
	}
	return p.Name
}

// titles are the names of the policies, with the file where several have one name.
func (p Plan) titles() []string {
	var names, files []string
	for _, one := range p.Policies {
		names, files = append(names, one.title()), append(files, one.File)
	}
	return apart(names, files)
}

// action is what a violation leads to; a policy that only changes things has none.
func (p PlannedPolicy) action() string {
	switch {
	case p.Denies:
		return "Deny"
	case slices.ContainsFunc(p.Rules, func(r PlannedRule) bool { return r.Type == "validate" }):
		return "Audit"
	}
	return "-"
}

// codes are those of all rules, each once, in their order.
func (p PlannedPolicy) codes() []PlannedCode {
	var out []PlannedCode
	for _, r := range p.Rules {
		for _, c := range r.Codes {
			if !slices.ContainsFunc(out, func(o PlannedCode) bool { return o.Code == c.Code }) {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b PlannedCode) int { return int(a.Code) - int(b.Code) })
	return out
}

func codeList(codes []PlannedCode) string {
	var out []string
	for _, c := range codes {
		out = append(out, c.Code.String())
	}
	return orDash(strings.Join(out, " "))
}

// WriteJSON writes the form that programs read.
func (p Plan) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(p)
}
