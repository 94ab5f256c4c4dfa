package report

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kvap/kvap/report/doc"
)

// Document has one line for each policy, then what is wrong. Where it is wide, it has a line for
// each rule. Ages are counted from now.
func (s Status) Document(now time.Time, wide bool) doc.Document {
	policies := doc.Section{Table: s.policyRows(now)}
	if wide {
		policies.Table = s.ruleRows()
	}
	count := doc.Section{}
	if len(s.Policies) > countedFrom {
		count.Text = s.count()
	}
	return doc.Document{Data: s, Sections: []doc.Section{policies, count, {Table: s.unmanagedRows(now)}, {Items: s.excepted()}, {Items: s.wrong()}}}
}

// countedFrom is how many policies a reader may count.
const countedFrom = 20

// count is how many policies there are, and how many of them are ready.
func (s Status) count() string {
	ready := 0
	for _, p := range s.Policies {
		if p.Condition("Ready") == "True" {
			ready++
		}
	}
	return fmt.Sprintf("%d policies, of which %d are ready", len(s.Policies), ready)
}

// stageColumn is where the stage is, behind the mode; nowhere where nobody migrates.
const stageColumn = 4

// policyRows are a heading and a line for each policy.
func (s Status) policyRows(now time.Time) [][]string {
	rows := [][]string{{"policy", "kind", "ready", "mode", "native", "webhook", "unsupported", "action", "age"}}
	staged := slices.ContainsFunc(s.Policies, func(p PolicyStatus) bool { return p.Stage != "" })
	if staged {
		rows[0] = slices.Insert(rows[0], stageColumn, "stage")
	}
	for _, p := range s.Policies {
		var t Totals
		for _, r := range p.Rules {
			t.count(r.Target)
		}
		rows = append(rows, []string{
			p.Title(), s.kindOf(p), p.Condition("Ready"), doc.OrDash(p.Mode), strconv.Itoa(t.Native), strconv.Itoa(t.Webhook), strconv.Itoa(t.Unsupported),
			doc.OrDash(p.action()), age(p.Created, now),
		})
		if staged {
			rows[len(rows)-1] = slices.Insert(rows[len(rows)-1], stageColumn, doc.OrDash(p.Stage))
		}
	}
	return rows
}

// kindOf is the kind of a policy, with its group where another one has its name and
// kind: on its way, a policy is there in Kyverno's kind and in that of kvap.dev.
func (s Status) kindOf(p PolicyStatus) string {
	if slices.ContainsFunc(s.Policies, func(o PolicyStatus) bool {
		return o.Title() == p.Title() && o.Kind == p.Kind && o.Group != p.Group
	}) {
		return p.Kind + "." + p.Group
	}
	return p.Kind
}

// action is the actions of all rules.
func (p PolicyStatus) action() string {
	var all []string
	for _, r := range p.Rules {
		all = append(all, splitList(r.Action)...)
	}
	return JoinActions(all)
}

// ruleRows are a heading and a line for each rule.
func (s Status) ruleRows() [][]string {
	rows := [][]string{{"policy", "rule", "target", "enforced", "action", "objects", "bindings", "params", "cost", "warnings", "codes"}}
	for _, p := range s.Policies {
		for _, r := range p.Rules {
			var bindings, params []string
			for _, b := range r.Bindings {
				bindings, params = append(bindings, b.Name), append(params, b.Params...)
			}
			rows = append(rows, []string{
				p.Title(), r.Name, string(r.Target), doc.OrDash(r.Enforced), doc.OrDash(r.Action), doc.OrDash(shortList(r.Objects)),
				doc.OrDash(shortList(bindings)), doc.OrDash(shortList(params)), doc.OrDash(r.Cost), counted(r.Warnings), doc.OrDash(strings.Join(r.Codes, " ")),
			})
		}
	}
	return rows
}

// shownNames is how many names a table has in one place: a rule about pod controllers
// has an object for each of them, and params may be found in any namespace.
const shownNames = 3

// shortList names all where they are few, else the first and how many there are more.
func shortList(list []string) string {
	if len(list) <= shownNames {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", list[0], len(list)-1)
}

// counted says how many warnings there are, and how many of them mean something.
func counted(list []TypeWarning) string {
	switch n := countUnknown(list); {
	case len(list) == 0:
		return "-"
	case n == len(list):
		return strconv.Itoa(n)
	default:
		return fmt.Sprintf("%d (+%d known)", n, len(list)-n)
	}
}

func (s Status) unmanagedRows(now time.Time) [][]string {
	rows := [][]string{{"unmanaged", "bindings", "action", "problems", "warnings", "age"}}
	for _, n := range s.Unmanaged {
		var bindings, reasons []string
		for _, b := range n.Bindings {
			bindings = append(bindings, b.Name)
		}
		for _, p := range n.Problems {
			reasons = append(reasons, p.Reason)
		}
		rows = append(rows, []string{
			n.Name, doc.OrDash(strings.Join(bindings, " ")), doc.OrDash(n.Action), doc.OrDash(strings.Join(reasons, " ")), counted(n.Warnings), age(n.Created, now),
		})
	}
	return rows
}

// excepted has a line for each exception that is in force.
func (s Status) excepted() (out []doc.Item) {
	for _, p := range s.Policies {
		for _, e := range p.Exceptions {
			text := fmt.Sprintf("%s: the exception %s/%s is in force", p.Title(), e.Namespace, e.Name)
			if len(e.Rules) > 0 {
				text += " for " + shortList(e.Rules)
			}
			if e.Expires != "" {
				text += ", until " + e.Expires
			}
			out = append(out, doc.Item{Text: text})
		}
	}
	return out
}

// wrong has a line for each condition that is false, each problem and each warning.
func (s Status) wrong() (out []doc.Item) {
	say := func(text string) { out = append(out, doc.Item{Text: text}) }
	for _, p := range s.Policies {
		for _, c := range p.Conditions {
			if c.Status == "False" && c.Type != "Ready" && c.Type != "TypeChecked" { // whose warnings follow
				say(fmt.Sprintf("%s: %s: %s", p.Title(), c.Reason, c.Message))
			}
		}
		for _, r := range p.Rules {
			for _, w := range r.Warnings {
				say(w.line(p.Title() + "/" + r.Name))
			}
		}
	}
	for _, n := range s.Unmanaged {
		for _, p := range n.Problems {
			say(fmt.Sprintf("%s: %s: %s", n.Name, p.Reason, p.Message))
		}
		for _, w := range n.Warnings {
			say(w.line(n.Name))
		}
	}
	for _, note := range s.Notes {
		say(note)
	}
	return out
}

// line is the warning at its place in the source.
func (w TypeWarning) line(title string) string {
	place := title
	if w.Path != "" {
		place += " " + w.Path
	}
	if w.File != "" {
		place = w.File + ": " + place
	}
	known := ""
	if w.Known {
		known = " (a known false alarm of the type checker)"
	}
	return fmt.Sprintf("%s: %s%s [%s %s]", place, w.summary(), known, w.Object, w.FieldRef)
}

// summary is what the type checker says, without its drawing of the place.
func (w TypeWarning) summary() string {
	found := regexp.MustCompile(`(?m)^(.*?)(?:ERROR: )?<input>:\d+:\d+: (.*)$`).FindAllStringSubmatch(w.Warning, -1)
	var parts []string
	kind := ""
	for _, m := range found {
		if k := strings.TrimSuffix(strings.TrimSpace(m[1]), ":"); k != "" && k != "ERROR" {
			kind = k
		}
		part := m[2]
		if kind != "" {
			part += " (" + kind + ")"
		}
		if !slices.Contains(parts, part) { // at two places of the expression
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return doc.FirstLine(w.Warning)
	}
	return strings.Join(parts, "; ")
}

// JoinActions is each action once, in the order Deny, Warn, Audit.
func JoinActions(actions []string) string {
	var out []string
	for _, a := range []string{"Deny", "Warn", "Audit"} {
		for _, b := range actions {
			if a == b {
				out = append(out, a)
				break
			}
		}
	}
	return strings.Join(out, ",")
}

func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// age is the time since, as kubectl writes it.
func age(created string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, created)
	if err != nil {
		return "-"
	}
	switch d := now.Sub(t); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
