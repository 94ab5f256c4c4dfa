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

// WriteJudgements writes one line for each judgement and the totals. Those on
// which the judges disagree are marked.
func WriteJudgements(w io.Writer, list []Judgement, totals string) error {
	rows := [][]string{{"REQUEST", "POLICY", "RULE", "NATIVE", "INTERPRETER", "MESSAGE"}}
	for _, j := range list {
		message := firstLine(j.Message)
		if !j.Agree {
			message = "DISAGREE: " + message
		}
		rows = append(rows, []string{j.Request, j.Policy, j.Rule, orDash(j.Native), orDash(j.Interp), message})
	}
	return writeTable(w, rows, totals)
}

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
