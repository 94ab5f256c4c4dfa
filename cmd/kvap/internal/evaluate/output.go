package evaluate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// A writer writes answers as they come.
type writer interface {
	write(judged) error
	finish(totals) error
}

func (o Options) newOutput() writer {
	w := o.Stdout
	switch o.Output {
	case "jsonl":
		return &jsonLines{bufio.NewWriter(w)}
	case "json", "yaml":
		return &jsonDocument{w: w, format: o.Output}
	}
	return &table{w: w, colour: o.Colour, wide: o.Output == "wide", quiet: o.Quiet, verbose: o.Verbose}
}

// A jsonDocument is all answers and the totals in one value.
type jsonDocument struct {
	w       io.Writer
	format  string
	answers struct {
		Requests []jsonAnswer `json:"requests"`
		Totals   totals       `json:"totals"`
	}
}

func (d *jsonDocument) write(j judged) error {
	d.answers.Requests = append(d.answers.Requests, answerOf(j))
	return nil
}

func (d *jsonDocument) finish(t totals) error {
	d.answers.Totals = t
	return doc.Document{Data: d.answers}.Write(d.w, doc.Options{Format: d.format})
}

// A jsonAnswer is one line of -o jsonl: an interface that others read. Error is
// there only for an input that could not be judged.
type jsonAnswer struct {
	ID      string       `json:"id"`
	Results []jsonResult `json:"results"`
	// Incomplete is the path of a field that the request's object lacks, as none does
	// that an API server hands over: the results hold nowhere.
	Incomplete string `json:"incomplete,omitempty"`
	// Object is the request's after all mutate rules, where they changed it.
	Object map[string]any `json:"object,omitempty"`
	Error  string         `json:"error,omitempty"`
}

type jsonResult struct {
	Policy string `json:"policy"`
	Rule   string `json:"rule"`
	Target string `json:"target"`
	Native string `json:"native"`
	// Interp is the interpreter's status, by which native is judged. Kyverno is the status
	// that Kyverno gives; where it is another one, Deviations are the numbers of the
	// differences in docs/semantics.md that make it so.
	Interp     string `json:"interp"`
	Kyverno    string `json:"kyverno"`
	Deviations []int  `json:"deviations,omitempty"`
	// Disagree tells that the two give different verdicts, or make different objects.
	Disagree bool   `json:"disagree,omitempty"`
	Message  string `json:"message"`
}

type jsonLines struct{ w *bufio.Writer }

func answerOf(j judged) jsonAnswer {
	answer := jsonAnswer{ID: j.id, Incomplete: j.incomplete, Results: make([]jsonResult, 0, len(j.opinions))}
	for _, o := range j.opinions {
		answer.Results = append(answer.Results, jsonResult{
			Policy: o.Rule.Rule.PolicyName(), Rule: o.Rule.Name, Target: targetWord(o),
			Native: string(o.Native), Interp: string(o.Status), Kyverno: string(o.Kyverno), Deviations: o.Deviations,
			Disagree: !o.Agree(), Message: message(o),
		})
	}
	if j.mutation != nil && j.mutation.Changed() {
		answer.Object = j.mutation.After
	}
	if j.unread && len(j.found) > 0 {
		answer.Error = j.found[len(j.found)-1].Message
	}
	return answer
}

func (l *jsonLines) write(j judged) error {
	e := json.NewEncoder(l.w)
	e.SetEscapeHTML(false)
	return e.Encode(answerOf(j))
}

func (l *jsonLines) finish(totals) error { return l.w.Flush() }

// targetWord is native or webhook: whatever is not native is left to a webhook,
// which may have nothing to say.
func targetWord(o judge.Opinion) string {
	if o.Compared || o.Rule.Rule.Target == translate.Native {
		return string(translate.Native)
	}
	return string(translate.Webhook)
}

// message is what a user would be told: by the API server where it denies, else
// by the interpreter.
func message(o judge.Opinion) string {
	if (o.Native == apiserver.Deny || o.Native == apiserver.Error || o.Native == apiserver.Unknown) && o.NativeMessage != "" {
		return o.NativeMessage
	}
	return o.Message
}

// An table is for people: it is written when all is known.
type table struct {
	w                            io.Writer
	colour, wide, quiet, verbose bool
	rows                         []report.Judgement
}

func (t *table) write(j judged) error {
	for i, o := range j.opinions {
		if silent(o) && !t.verbose || t.quiet && !o.Violated() && o.Agree() {
			continue
		}
		t.rows = append(t.rows, judgement(j.id, o, j.lacks[i]))
	}
	return nil
}

func judgement(id string, o judge.Opinion, lacks bool) report.Judgement {
	row := report.Judgement{
		Request: id, Policy: o.Rule.Rule.PolicyName(), Rule: o.Rule.Name, Native: string(o.Native), Interp: string(o.Status), Message: message(o),
		Agree: o.Agree() || lacks,
	}
	if targetWord(o) != string(translate.Native) {
		row.Native = ""
	}
	if o.Rule.Source == nil && !o.Rule.Rule.Policy.InCEL() && !o.Compared {
		row.Interp = ""
	}
	if !row.Agree {
		row.Message = strings.Join([]string{"native: " + o.NativeMessage, "interpreter: " + o.Message}, "\n")
	}
	if o.Mutation != nil {
		row.Patch = patchOf(o.Mutation)
	}
	if o.Kyverno != o.Status {
		row.Interp += fmt.Sprintf(" (Kyverno: %s, deviation %s)", o.Kyverno, strings.Trim(strings.ReplaceAll(fmt.Sprint(o.Deviations), " ", ", "), "[]"))
	}
	return row
}

// patchOf is what a mutate rule changed, as lines of YAML.
func patchOf(m *interp.RuleMutation) string {
	if len(m.Patch()) == 0 {
		return ""
	}
	before, err := yaml.Marshal(m.Before)
	if err != nil {
		return ""
	}
	after, err := yaml.Marshal(m.After)
	if err != nil {
		return ""
	}
	return textdiff.Diff(string(before), string(after))
}

func (t *table) finish(totals totals) error {
	return report.Judgements(t.rows, totals.String(), t.wide).Write(t.w, doc.Options{Text: diag.Text{Colour: t.colour}})
}

// String is the totals in a sentence.
func (t totals) String() string {
	s := fmt.Sprintf("%s: %d with a violation", doc.Count(t.Requests, "request", "requests"), t.Violations)
	if t.erred > 0 {
		s += fmt.Sprintf(" (%d for an error alone)", t.erred)
	}
	s += ", " + doc.Count(t.Disagreements, "disagreement", "disagreements")
	if t.unmatched > 0 {
		s += fmt.Sprintf(", %d about which no rule says anything", t.unmatched)
	}
	if t.Unknown > 0 {
		s += fmt.Sprintf(", %d of which a rule cannot tell", t.Unknown)
	}
	if t.NotJudged > 0 {
		s += fmt.Sprintf(", %d not judged", t.NotJudged)
	}
	return s
}
