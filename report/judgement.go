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
	// Patch is how a mutate rule changes the object, line by line.
	Patch string
}

// WriteJudgements writes one line for each judgement, what the judges say where they
// disagree or err, how objects are changed, and the totals. A wide table has the whole messages.
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
			writeBlock(&whole, j.title()+":", j.Message)
		}
		if j.Patch != "" {
			writeBlock(&whole, j.title()+" changes the object:", j.Patch)
		}
	}
	if whole.Len() > 0 {
		totals = whole.String() + "\n" + totals
	}
	return writeTable(w, rows, totals)
}

// title is the rule on the request.
func (j Judgement) title() string { return j.Request + " " + j.Policy + "/" + j.Rule }

func writeBlock(b *strings.Builder, head, text string) {
	b.WriteString("\n" + head + "\n")
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
	}
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
