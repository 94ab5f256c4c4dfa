package report

import (
	"strings"

	"github.com/kvap/kvap/report/doc"
)

// A Judgement is what two judges say of one rule on one request. Native or Interp
// is empty where that judge was not asked.
type Judgement struct {
	Request, Policy, Rule string
	Native, Interp        string
	Agree                 bool
	Message               string
	// Patch is how a mutate rule changes the object, line by line.
	Patch string
}

// Judgements has one line for each judgement, what the judges say where they disagree or err,
// how objects are changed, and the totals. A wide table has the whole messages.
func Judgements(list []Judgement, totals string, wide bool) doc.Document {
	rows := [][]string{{"request", "policy", "rule", "native", "interpreter", "message"}}
	var whole []doc.Item
	for _, j := range list {
		title := j.Request + " " + j.Policy + "/" + j.Rule
		message := doc.FirstLine(j.Message)
		if wide {
			message = strings.Join(strings.Fields(j.Message), " ")
		}
		if !j.Agree {
			message = "DISAGREE: " + doc.FirstLine(strings.ReplaceAll(j.Message, "\n", "; "))
		}
		rows = append(rows, []string{j.Request, j.Policy, j.Rule, doc.OrDash(j.Native), doc.OrDash(j.Interp), message})
		if !wide && (!j.Agree || j.errs()) && doc.FirstLine(j.Message) != j.Message {
			whole = append(whole, doc.Item{Of: []string{title}, Code: j.Message})
		}
		if j.Patch != "" {
			whole = append(whole, doc.Item{Text: title + " changes the object:", Code: j.Patch})
		}
	}
	return doc.Document{Totals: doc.Section{Text: totals}, Sections: []doc.Section{{Table: rows}, {Items: whole}}}
}

func (j Judgement) errs() bool { return j.Native == "error" || strings.HasPrefix(j.Interp, "error") }
