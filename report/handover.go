package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kvap/kvap/report/doc"
)

// A Handover is what a verb of kvap migrate did to policies, or would do.
type Handover struct {
	Verb string `json:"verb"`
	// Dry is client or server where nothing was done, or Asked; else empty.
	Dry string `json:"dryRun"`
	// Folder is where files were written in place of doing anything.
	Folder   string             `json:"outputDir"`
	Policies []HandedOverPolicy `json:"policies"`
}

// Asked is in the place of a dry run where somebody is asked before anything is done.
const Asked = "asked"

// A HandedOverPolicy is one policy on its way.
type HandedOverPolicy struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// From and To are stages: none, shadow, enforced or adopted.
	From string `json:"from"`
	To   string `json:"to"`
	// Way is how Kyverno is switched off, where it is.
	Way string `json:"way"`
	// Moves are what was done, or would be, in order.
	Moves []HandoverMove `json:"moves"`
	// Left is why it went no further; empty where all was done.
	Left string `json:"left"`
}

// A HandoverMove is one thing that was done, or would be.
type HandoverMove struct {
	Does string `json:"does"`
	// Part is the component in the folder; empty where it is in none.
	Part string `json:"part"`
	// Noted tells of what is only written into the record; people who ask what would be
	// done are not told.
	Noted bool `json:"-"`
}

// Left tells how many policies went no further than they should.
func (h Handover) Left() int {
	n := 0
	for _, p := range h.Policies {
		if p.Left != "" {
			n++
		}
	}
	return n
}

// Document has a line for each policy, or for each move where nothing was done; and, for a change
// request, a section for each policy.
func (h Handover) Document() doc.Document {
	d := doc.Document{Title: "kvap migrate " + h.Verb, Data: h, Totals: doc.Section{Text: h.totals() + h.next()}}
	rows := [][]string{{"policy", "kind", "stage", "way", "result"}}
	moves := h.Dry != "" || h.Folder != ""
	if moves {
		rows = [][]string{{"policy", "kind", "step", "does"}}
	}
	var pages []doc.Section
	for _, p := range h.Policies {
		title := titleOf(p.Namespace, p.Name)
		page := doc.Section{In: doc.Pages, Title: p.Kind + " " + title, Text: "From " + p.From + " to " + p.To, Numbered: true}
		if p.Way != "" {
			page.Text += " (" + p.Way + ")"
		}
		for _, m := range p.Moves {
			if moves && !m.Noted {
				rows = append(rows, []string{title, p.Kind, doc.OrDash(m.Part), m.Does})
			}
			item := doc.Item{Text: m.Does}
			if m.Part != "" {
				item.Of = []string{m.Part}
			}
			page.Items = append(page.Items, item)
		}
		if p.Left != "" || len(p.Moves) == 0 {
			page.Items = append(page.Items, doc.Item{Text: p.result()})
		}
		pages = append(pages, page)
		switch {
		case !moves:
			rows = append(rows, []string{title, p.Kind, p.To, doc.OrDash(p.Way), p.result()})
		case p.Left != "" || len(p.Moves) == 0:
			rows = append(rows, []string{title, p.Kind, "-", p.result()})
		case !slices.ContainsFunc(p.Moves, func(m HandoverMove) bool { return !m.Noted }):
			rows = append(rows, []string{title, p.Kind, "-", "note in the record that it is " + p.To})
		}
	}
	d.Sections = append(pages, doc.Section{In: doc.Terminal, Table: rows})
	return d
}

func (p HandedOverPolicy) result() string {
	switch {
	case p.Left != "":
		return p.Left
	case len(p.Moves) == 0:
		return "nothing to do"
	}
	return "done"
}

func (h Handover) totals() string {
	text := fmt.Sprintf("%s: %s", h.Verb, doc.Count(len(h.Policies), "policy", "policies"))
	switch {
	case h.Dry == Asked:
		text += "; nothing was changed yet"
	case h.Dry != "":
		text += "; nothing was changed (--dry-run=" + h.Dry + ")"
	case h.Folder != "" && h.Left() == len(h.Policies):
		text += "; nothing was written"
	case h.Folder != "":
		text += ", written to " + h.Folder + "; nothing was changed in a cluster"
	}
	if left := h.Left(); left > 0 {
		text += fmt.Sprintf("; %d not done", left)
	}
	return text
}

// next is what comes next, where something was done or written that leads there.
func (h Handover) next() string {
	if h.Dry != "" || h.Left() == len(h.Policies) {
		return ""
	}
	var out []string
	switch steps := h.steps(); len(steps) {
	case 0:
	case 1:
		out = append(out, "add to the components of your kustomization: "+steps[0])
	default:
		out = append(out, "add to the components of your kustomization, one after the other: "+strings.Join(steps, ", "))
	}
	if h.Verb == "shadow" {
		out = append(out, "kvap migrate record, and kvap migrate compare")
	}
	if len(out) == 0 {
		return ""
	}
	return "\nnext: " + strings.Join(out, "\nthen: ")
}

// steps are the components in the folder, in the order in which they are applied.
func (h Handover) steps() (out []string) {
	for _, p := range h.Policies {
		for _, m := range p.Moves {
			if h.Folder != "" && m.Part != "" {
				out = append(out, path.Join(h.Folder, m.Part))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
