package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// An evalOutput writes answers as they come.
type evalOutput interface {
	write(judged) error
	finish(evalTotals) error
}

func (f evalFlags) newOutput(w io.Writer) evalOutput {
	if f.output == "jsonl" {
		return &jsonLines{bufio.NewWriter(w)}
	}
	return &evalTable{w: w, quiet: f.quiet, verbose: f.verbose}
}

// A jsonAnswer is one line of -o jsonl: an interface that others read. Error is
// there only for an input that could not be judged.
type jsonAnswer struct {
	ID      string       `json:"id"`
	Results []jsonResult `json:"results"`
	Error   string       `json:"error,omitempty"`
}

type jsonResult struct {
	Policy  string `json:"policy"`
	Rule    string `json:"rule"`
	Target  string `json:"target"`
	Native  string `json:"native"`
	Interp  string `json:"interp"`
	Message string `json:"message"`
}

type jsonLines struct{ w *bufio.Writer }

func (l *jsonLines) write(j judged) error {
	answer := jsonAnswer{ID: j.id, Results: make([]jsonResult, 0, len(j.opinions))}
	for _, o := range j.opinions {
		answer.Results = append(answer.Results, jsonResult{
			Policy: o.Rule.Rule.PolicyName(), Rule: o.Rule.Name, Target: targetWord(o.Rule.Rule),
			Native: string(o.Native), Interp: string(o.Kyverno), Message: message(o),
		})
	}
	if j.unread && len(j.found) > 0 {
		answer.Error = j.found[len(j.found)-1].Message
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(answer); err != nil {
		return err
	}
	_, err := l.w.Write(text.Bytes())
	return err
}

func (l *jsonLines) finish(evalTotals) error { return l.w.Flush() }

// targetWord is native or webhook: whatever is not native is left to a webhook,
// which may have nothing to say.
func targetWord(r *compile.Rule) string {
	if r.Target == translate.Native {
		return string(translate.Native)
	}
	return string(translate.Webhook)
}

// message is what a user would be told: by the API server where it denies, else
// by the interpreter.
func message(o judge.Opinion) string {
	if (o.Native == vap.Deny || o.Native == vap.Error) && o.NativeMessage != "" {
		return o.NativeMessage
	}
	return o.Message
}

// An evalTable is for people: it is written when all is known.
type evalTable struct {
	w              io.Writer
	quiet, verbose bool
	rows           []report.Judgement
}

func (t *evalTable) write(j judged) error {
	for _, o := range j.opinions {
		quiet := o.Native == vap.NoMatch && o.Status == interp.None
		if quiet && !t.verbose || t.quiet && !o.Violated() && o.Agree() {
			continue
		}
		t.rows = append(t.rows, judgement(j.id, o))
	}
	return nil
}

func judgement(id string, o judge.Opinion) report.Judgement {
	row := report.Judgement{
		Request: id, Policy: o.Rule.Rule.PolicyName(), Rule: o.Rule.Name, Native: string(o.Native), Interp: string(o.Status), Message: message(o),
		Agree: o.Agree(),
	}
	if o.Rule.Rule.Target != translate.Native {
		row.Native = ""
	}
	if o.Rule.Source == nil {
		row.Interp = ""
	}
	if !row.Agree {
		row.Message = strings.Join([]string{"native: " + o.NativeMessage, "interpreter: " + o.Message}, "; ")
	}
	if o.Kyverno != o.Status {
		row.Interp += fmt.Sprintf(" (Kyverno: %s)", o.Kyverno)
	}
	return row
}

func (t *evalTable) finish(totals evalTotals) error {
	return report.WriteJudgements(t.w, t.rows, totals.String())
}

// String is the totals in a sentence.
func (t evalTotals) String() string {
	s := fmt.Sprintf("%s: %d with a violation, %s", count(t.requests, "request", "requests"), t.violations,
		count(t.disagreements, "disagreement", "disagreements"))
	if t.unread > 0 {
		s += fmt.Sprintf(", %d not judged", t.unread)
	}
	return s
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
