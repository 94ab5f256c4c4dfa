package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A Finish is what is left of Kyverno in a cluster.
type Finish struct {
	// Done tells that nothing needs Kyverno any more, nor its definitions for what kvap
	// enforces.
	Done bool `json:"done"`
	// Policies are those that keep Kyverno, or that have to be adopted first.
	Policies []LeftPolicy `json:"policies"`
	// Parts are what of Kyverno is in the cluster.
	Parts []LeftPart `json:"parts"`
	// Steps are what to do, in order.
	Steps []string `json:"steps"`
}

// A LeftPolicy is a policy of one of Kyverno's kinds.
type LeftPolicy struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Stage     string `json:"stage"`
	// Next is what to do with it.
	Next string `json:"next"`
	// TakesAlong are the rules whose objects Kyverno deletes with the policy.
	TakesAlong []string `json:"takesAlong,omitempty"`
}

// A LeftPart is a definition or a webhook configuration.
type LeftPart struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Owner   string `json:"owner"`
	Objects int    `json:"objects"` // of the kind that is defined
	Next    string `json:"next"`
}

// WriteTable writes what is left, and what to do.
func (f Finish) WriteTable(w io.Writer) error {
	rows := [][]string{{"WHAT", "NAME", "STAGE OR OWNER", "OBJECTS", "NEXT"}}
	for _, p := range f.Policies {
		rows = append(rows, []string{p.Kind, p.title(), p.Stage, "-", p.Next})
	}
	for _, p := range f.Parts {
		objects := "-"
		if p.Kind == "CustomResourceDefinition" {
			objects = fmt.Sprint(p.Objects)
		}
		rows = append(rows, []string{p.Kind, p.Name, p.Owner, objects, p.Next})
	}
	return writeTable(w, rows, strings.TrimSuffix(f.words("\n"), "\n"))
}

func (p LeftPolicy) title() string {
	if p.Namespace != "" {
		return p.Namespace + "/" + p.Name
	}
	return p.Name
}

func (f Finish) words(end string) string {
	head := "Something needs Kyverno still, or its definitions."
	if f.Done {
		head = "Nothing needs Kyverno any more."
	}
	var b strings.Builder
	b.WriteString(head + end)
	for i, s := range f.Steps {
		fmt.Fprintf(&b, "%d. %s%s", i+1, s, end)
	}
	return b.String()
}

// WriteJSON writes the form that programs read.
func (f Finish) WriteJSON(w io.Writer) error {
	if f.Policies == nil {
		f.Policies = []LeftPolicy{}
	}
	if f.Parts == nil {
		f.Parts = []LeftPart{}
	}
	if f.Steps == nil {
		f.Steps = []string{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(f)
}

// WriteMarkdown writes it for a change request.
func (f Finish) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# kvap migrate finish\n\n" + f.words("\n") + "\n| what | name | owner | objects | next |\n|---|---|---|---|---|\n")
	for _, p := range f.Policies {
		fmt.Fprintf(&b, "| %s | %s | %s | | %s |\n", tableCell(p.Kind), tableCell(p.title()), p.Stage, tableCell(p.Next))
	}
	for _, p := range f.Parts {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s |\n", tableCell(p.Kind), tableCell(p.Name), tableCell(p.Owner), p.Objects, tableCell(p.Next))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
