package report

import (
	"io"
	"strings"
)

// A Judgement is what two judges say of one rule on one request. Native or Interp
// is empty where that judge was not asked.
type Judgement struct {
	Request, Policy, Rule string
	Native, Interp        string
	Agree                 bool
	Message               string
}

// WriteJudgements writes one line for each judgement, what the judges say where they
// disagree or err, and the totals. A wide table has the whole messages.
func WriteJudgements(w io.Writer, list []Judgement, totals string, wide bool) error {
	rows := [][]string{{"REQUEST", "POLICY", "RULE", "NATIVE", "INTERPRETER", "MESSAGE"}}
	var whole strings.Builder
	for _, j := range list {
		message := firstLine(j.Message)
		if wide {
			message = strings.Join(strings.Fields(j.Message), " ")
		}
		if !j.Agree {
			message = "DISAGREE: " + firstLine(strings.ReplaceAll(j.Message, "\n", "; "))
		}
		rows = append(rows, []string{j.Request, j.Policy, j.Rule, orDash(j.Native), orDash(j.Interp), message})
		if !wide && (!j.Agree || j.errs()) && firstLine(j.Message) != j.Message {
			whole.WriteString("\n" + j.Request + " " + j.Policy + "/" + j.Rule + ":\n")
			for line := range strings.Lines(j.Message) {
				whole.WriteString("  " + strings.TrimRight(line, "\n") + "\n")
			}
		}
	}
	if whole.Len() > 0 {
		totals = whole.String() + "\n" + totals
	}
	return writeTable(w, rows, totals)
}

func (j Judgement) errs() bool { return j.Native == "error" || strings.HasPrefix(j.Interp, "error") }

// maxMessage is how much of a message a table shows, in characters.
const maxMessage = 100

// firstLine is the beginning of a message, for a table.
func firstLine(s string) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if runes := []rune(line); len(runes) > maxMessage {
		return string(runes[:maxMessage]) + "…"
	}
	if more {
		return line + " …"
	}
	return line
}
