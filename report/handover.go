package report

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
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

func (p HandedOverPolicy) title() string {
	if p.Namespace != "" {
		return p.Namespace + "/" + p.Name
	}
	return p.Name
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

// WriteTable writes a line for each policy; where nothing was done, one for each move.
func (h Handover) WriteTable(w io.Writer) error {
	if h.Dry == "" && h.Folder == "" {
		rows := [][]string{{"POLICY", "KIND", "STAGE", "WAY", "RESULT"}}
		for _, p := range h.Policies {
			rows = append(rows, []string{p.title(), p.Kind, p.To, orDash(p.Way), p.result()})
		}
		return writeTable(w, rows, h.totals()+h.next())
	}
	rows := [][]string{{"POLICY", "KIND", "STEP", "DOES"}}
	for _, p := range h.Policies {
		for _, m := range p.Moves {
			if !m.Noted {
				rows = append(rows, []string{p.title(), p.Kind, orDash(m.Part), m.Does})
			}
		}
		switch {
		case p.Left != "" || len(p.Moves) == 0:
			rows = append(rows, []string{p.title(), p.Kind, "-", p.result()})
		case !slices.ContainsFunc(p.Moves, func(m HandoverMove) bool { return !m.Noted }):
			rows = append(rows, []string{p.title(), p.Kind, "-", "note in the record that it is " + p.To})
		}
	}
	return writeTable(w, rows, h.totals()+h.next())
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
	text := fmt.Sprintf("%s: %s", h.Verb, Count(len(h.Policies), "policy", "policies"))
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

// WriteJSON writes the form that programs read.
func (h Handover) WriteJSON(w io.Writer) error {
	if h.Policies == nil {
		h.Policies = []HandedOverPolicy{}
	}
	for i := range h.Policies {
		if h.Policies[i].Moves == nil {
			h.Policies[i].Moves = []HandoverMove{}
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(h)
}

// WriteMarkdown writes a section for each policy, for a change request.
func (h Handover) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# kvap migrate %s\n\n%s", h.Verb, inline(h.totals()))
	b.WriteString("\n")
	for _, p := range h.Policies {
		fmt.Fprintf(&b, "\n## %s %s\n\nFrom %s to %s", p.Kind, codeSpan(p.title()), p.From, p.To)
		if p.Way != "" {
			fmt.Fprintf(&b, " (%s)", p.Way)
		}
		b.WriteString(".\n\n")
		for i, m := range p.Moves {
			fmt.Fprintf(&b, "%d. %s", i+1, inline(m.Does))
			if m.Part != "" {
				fmt.Fprintf(&b, " (%s)", codeSpan(m.Part))
			}
			b.WriteByte('\n')
		}
		if p.Left != "" || len(p.Moves) == 0 {
			fmt.Fprintf(&b, "%d. %s\n", len(p.Moves)+1, inline(p.result()))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
