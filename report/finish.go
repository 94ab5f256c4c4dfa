package report

import (
	"fmt"

	"github.com/kvap/kvap/report/doc"
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

// Document says what is left, and what to do.
func (f Finish) Document() doc.Document {
	d := doc.Document{Title: "kvap migrate finish", Data: f, Totals: doc.Section{Text: "Something needs Kyverno still, or its definitions.", Numbered: true}}
	if f.Done {
		d.Totals.Text = "Nothing needs Kyverno any more."
	}
	for _, s := range f.Steps {
		d.Totals.Items = append(d.Totals.Items, doc.Item{Text: s})
	}
	rows := [][]string{{"what", "name", "stage or owner", "objects", "next"}}
	for _, p := range f.Policies {
		rows = append(rows, []string{p.Kind, titleOf(p.Namespace, p.Name), p.Stage, "-", p.Next})
	}
	for _, p := range f.Parts {
		objects := "-"
		if p.Kind == "CustomResourceDefinition" {
			objects = fmt.Sprint(p.Objects)
		}
		rows = append(rows, []string{p.Kind, p.Name, p.Owner, objects, p.Next})
	}
	d.Sections = []doc.Section{{Table: rows}}
	return d
}
