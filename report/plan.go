package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report/doc"
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
	p := Plan{Policies: policies}
	for _, one := range policies {
		for _, r := range one.Rules {
			p.Totals.Rules.count(r.Target)
			if r.Target == Native && slices.ContainsFunc(r.Codes, func(c PlannedCode) bool { return c.Code == diag.GuessedResource }) {
				p.Totals.Rules.Guessed++
			}
		}
		p.Totals.count(one.Becomes)
	}
	p.Totals.Rules.Policies = p.Totals.Policies
	for _, w := range waves {
		for _, one := range p.Policies {
			if one.Wave == w.Number {
				w.Policies = append(w.Policies, titleOf(one.Namespace, one.Name))
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
		doc.Count(t.Policies, "policy", "policies"), t.Native, t.Mixed, t.Webhook, t.Unsupported,
		doc.Count(t.Rules.Rules, "rule", "rules"), t.Rules.Native, t.Rules.Webhook, t.Rules.Unsupported)
}

// titles are the names of the policies, with the file where several have one name.
func (p Plan) titles() []string {
	var names, files []string
	for _, one := range p.Policies {
		names, files = append(names, titleOf(one.Namespace, one.Name)), append(files, one.File)
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

// codesOf are the codes of all rules, each once, in their order.
func codesOf(policies ...PlannedPolicy) []PlannedCode {
	var out []PlannedCode
	for _, p := range policies {
		for _, r := range p.Rules {
			for _, c := range r.Codes {
				if !slices.ContainsFunc(out, func(o PlannedCode) bool { return o.Code == c.Code }) {
					out = append(out, c)
				}
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
	return doc.OrDash(strings.Join(out, " "))
}

// Document has a row for each policy, in the order in which they go, what existing objects violate,
// and what a request costs. A page has a section for each wave, and what every code means.
func (p Plan) Document() doc.Document {
	rows := [][]string{{"wave", "policy", "kind", "becomes", "action", "rules", "violated", "Kyverno 1.20", "Kyverno 1.21", "codes"}}
	titles := p.titles()
	for i, one := range p.Policies {
		rows = append(rows, []string{fmt.Sprint(one.Wave), titles[i], one.Kind, one.Becomes, one.action(),
			fmt.Sprint(len(one.Rules)), one.violated(), doc.OrDash(one.Kyverno.On120), doc.OrDash(one.Kyverno.On121), codeList(codesOf(one))})
	}
	violated, looked := p.violatedItems(), ""
	first := doc.Section{In: doc.Terminal, Table: rows, Items: violated}
	if p.Looked != nil {
		looked = p.Looked.String()
		first.Items = append(slices.Clone(violated), doc.Item{Text: looked})
	}
	sections := []doc.Section{first}
	foot := doc.Section{In: doc.Terminal}
	for _, wave := range p.Waves {
		text := fmt.Sprintf("wave %d, %s: %s. %s", wave.Number, doc.Count(len(wave.Policies), "policy", "policies"), wave.Title, wave.Advice)
		foot.Items = append(foot.Items, doc.Item{Text: text})
		sections = append(sections, p.waveSection(wave, rows))
	}
	upgrade := doc.Section{In: doc.Pages, Title: "What Kyverno 1.20 and 1.21 change", Items: p.upgradeItems()}
	totals := p.Totals.String()
	foot.Items = append(append(append(foot.Items, upgrade.Items...), doc.Item{Text: totals}), p.hints()...)
	staying := doc.Section{In: doc.Pages, Title: "Rules that do not become native", Items: p.staying(), Grouped: true}
	sections = slices.Concat(sections, []doc.Section{upgrade}, violatedSections(looked, violated), p.costSections(), []doc.Section{staying}, p.meanings(), []doc.Section{foot})
	return doc.Document{Title: "Migration plan", Data: p, Totals: doc.Section{In: doc.Pages, Text: totals}, Shares: []doc.Share{p.Totals.Rules.share()}, Sections: sections}
}

// waveSection are the rows of one wave, for a page.
func (p Plan) waveSection(wave Wave, rows [][]string) doc.Section {
	s := doc.Section{In: doc.Pages, Title: fmt.Sprintf("Wave %d: %s", wave.Number, wave.Title), Text: wave.Advice, Table: [][]string{rows[0][1:]}}
	for i, one := range p.Policies {
		if one.Wave == wave.Number {
			s.Table = append(s.Table, rows[i+1][1:])
		}
	}
	return s
}

// staying are the rules that do not become native, with the reason.
func (p Plan) staying() (out []doc.Item) {
	for _, one := range p.Policies {
		for _, r := range one.Rules {
			if r.Target == Native {
				continue
			}
			var code diag.Code
			if len(r.Codes) > 0 {
				code = r.Codes[0].Code
			}
			out = append(out, stayingItem(titleOf(one.Namespace, one.Name), one.File, Rule{Name: r.Rule, Target: r.Target, Line: r.Line, Reason: r.Reason}, code))
		}
	}
	return out
}

// meanings explain every code once: Markdown has a list of them, HTML a table.
func (p Plan) meanings() []doc.Section {
	const title = "What the codes mean"
	list, table := doc.Section{In: doc.Markdown, Title: title}, doc.Section{In: doc.HTML, Title: title, Table: [][]string{{"code", "about", "way out"}}}
	for _, c := range codesOf(p.Policies...) {
		list.Items = append(list.Items, doc.Item{Text: c.Code.String() + " " + c.Title + ". " + c.Remedy})
		table.Table = append(table.Table, []string{c.Code.String(), c.Title, c.Remedy})
	}
	return []doc.Section{list, table}
}

// violatedSections are what objects violate, for a page: Markdown has a list, HTML a table.
func violatedSections(looked string, violated []doc.Item) []doc.Section {
	const title = "What existing objects violate"
	rows := [][]string{{"policy", "rule", "objects"}}
	for _, v := range violated {
		rows = append(rows, append(slices.Clone(v.Of), v.Text))
	}
	return []doc.Section{{In: doc.Markdown, Title: title, Text: looked, Items: violated}, {In: doc.HTML, Title: title, Text: looked, Table: rows}}
}

// hints say how many native policies there will be, and what explains the codes. A native policy
// that policies share counts once: nine for each of them about Pods and their controllers would be
// nine in all.
func (p Plan) hints() (out []doc.Item) {
	names := map[string]bool{}
	for _, one := range p.Policies {
		for _, name := range one.Objects {
			names[name] = true
		}
	}
	if len(names) > 0 {
		out = append(out, doc.Item{Text: doc.Count(len(names), "native policy", "native policies") + " will have all native rules; policies about the same resource share one"})
	}
	switch codes := codesOf(p.Policies...); len(codes) {
	case 0:
	case 1:
		out = append(out, doc.Item{Text: "what a code means, and the way out: kvap explain " + codeList(codes)})
	default:
		out = append(out, doc.Item{Text: "what the codes mean, and the ways out: kvap explain " + codeList(codes)})
	}
	return out
}
