package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap/apiserver"
	"github.com/kvap/kvap/verify"
)

// An Item is a request to put before both judges: one that was recorded, or what
// would be asked about an object that is there.
type Item struct {
	Source  Source
	Subject string // in words; empty for what the request says itself
	At      string // a place in a file, if there is one
	// Request reads the request. It is called by several goroutines, once for each item.
	Request func() (*judge.Request, error)
	// Reported is what Kyverno's reports say of the object; nil where there are none.
	Reported *Reported
	// Made tells of an object that is there, as it was created: what generate rules make of it
	// is there, too.
	Made bool
}

// batchSize is how many items are held at once.
const batchSize = 256

// A judged is an item with what the judges said.
type judged struct {
	Item
	request  *judge.Request
	opinions []judge.Opinion
	made     []made
	err      error
}

// Judge puts items before both judges, and writes down what they say in the order
// of the items. Failed hears of those that could not be judged.
func (l *Ledger) Judge(ctx context.Context, items iter.Seq[Item], failed func(Item, error)) {
	batch := make([]judged, 0, batchSize)
	flush := func() {
		cores.Each(len(batch), func(i int) { l.judge(ctx, &batch[i]) })
		for _, j := range batch {
			if j.err != nil {
				failed(j.Item, j.err)
				continue
			}
			l.note(j)
		}
		batch = batch[:0]
	}
	for item := range items {
		if ctx.Err() != nil {
			return
		}
		if batch = append(batch, judged{Item: item}); len(batch) == batchSize {
			flush()
		}
	}
	flush()
}

// judge puts one item before both judges.
func (l *Ledger) judge(ctx context.Context, j *judged) {
	if j.request, j.err = j.Request(); j.err != nil {
		return
	}
	if j.Subject == "" {
		j.Subject = asked(j.request.Admission())
	}
	if j.opinions, j.err = l.judges.Judge(ctx, j.request); j.err != nil {
		return
	}
	l.judges.Mutate(ctx, j.request, j.opinions)
	if j.Made && l.Making != nil {
		j.made = l.Making.of(ctx, l.rows, j.request)
	}
}

// note writes down what both judges say of one request, and what Kyverno reported.
func (l *Ledger) note(j judged) {
	l.noteMade(j)
	for i, o := range j.opinions {
		if o.Rule.Rule.Mutates() && o.Changes != nil {
			l.noteChange(i, j, o)
		}
		if !validates(o.Rule) {
			continue
		}
		if o.Compared && (o.Status != interp.None || o.Native == apiserver.Deny || o.Native == apiserver.Error) {
			l.noteOpinion(i, j, o)
		}
		if j.Reported != nil {
			l.noteReported(i, j, o)
		}
	}
}

func (l *Ledger) noteOpinion(place int, j judged, o judge.Opinion) {
	t := l.rows[place].of(j.Source)
	switch {
	case o.LeftOut && o.Native == apiserver.NoMatch:
		t.cannotTell("the bindings leave out the namespace")
	case o.Native == apiserver.Unknown:
		t.cannotTell(o.NativeMessage)
	case o.Status == interp.Unknown:
		t.cannotTell(o.Message)
	case o.Agree():
		t.agree(o.Violated())
	case judge.Lacks(o, l.Known):
		t.cannotTell(notAtHand)
	default:
		t.disagree(o.Violated(), func() report.Disagreement {
			return report.Disagreement{
				Subject: j.Subject, At: j.At, Sides: []report.Voice{native(o), interpreter(o)}, Request: line(j.request),
			}
		})
	}
}

// notAtHand is why a rule that errs is held against nobody.
const notAtHand = "the rule reads an object that is not there, or asks what is not at hand"

func native(o judge.Opinion) report.Voice {
	return report.Voice{Who: "native policy", Says: string(o.Native), Message: o.NativeMessage}
}

func interpreter(o judge.Opinion) report.Voice {
	return report.Voice{Who: "Kyverno's rule, interpreted", Says: string(o.Status), Message: o.Message}
}

// line is a request as kvap eval reads it.
func line(r *judge.Request) json.RawMessage {
	data, err := json.Marshal(map[string]any{"request": r.Admission(), "namespaceLabels": r.NamespaceLabels, "namespaceObject": r.Namespace})
	if err != nil {
		return nil
	}
	return data
}

// asked says in words what a request is.
func asked(r map[string]any) string {
	kind, _ := r["kind"].(map[string]any)
	user, _ := r["userInfo"].(map[string]any)
	text := fmt.Sprintf("%v %v", r["operation"], kind["kind"])
	if sub, _ := r["subResource"].(string); sub != "" {
		text += "/" + sub
	}
	for _, key := range []string{"namespace", "name"} {
		if s, _ := r[key].(string); s != "" {
			text += "/" + s
		}
	}
	if name, _ := user["username"].(string); name != "" {
		text += " by " + name
	}
	return text
}

// Search writes down what verify found in one policy.
func (l *Ledger) Search(found verify.Evidence) {
	for _, r := range found.Rules {
		place := l.place(found.Policy.FullName(), r.Rule)
		if place < 0 || !r.Native || !validates(l.rows[place].form) {
			continue
		}
		in := l.rows[place]
		t := in.of(Search)
		violated := r.Verdicts[interp.Fail] + r.Verdicts[interp.Error]
		t.Seen += r.Matched
		t.Agreed += r.Matched
		t.Violated += violated
		t.passed += r.Matched - min(violated, r.Matched)
		if unseen := r.Predicates - r.BothWays; unseen > 0 {
			in.note(fmt.Sprintf("the made-up requests never showed %d of its conditions both true and false", unseen))
		}
		if c := r.Counterexample; c != nil {
			t.Seen--
			t.Agreed--
			t.disagree(false, func() report.Disagreement {
				return report.Disagreement{
					Subject: c.Request.Summary(), Sides: []report.Voice{native(c.Opinion), interpreter(c.Opinion)}, Request: json.RawMessage(c.Asked.String()),
				}
			})
		}
		for _, why := range found.Refused {
			in.note("an API server refuses the translation: " + why)
		}
	}
}
