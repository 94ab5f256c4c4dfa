package evidence

import (
	"encoding/json"
	"fmt"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/verify"
)

// Search writes down what verify found in one policy.
func (l *Ledger) Search(found verify.Evidence) {
	for _, r := range found.Rules {
		place := l.place(found.Policy.FullName(), r.Rule)
		if place < 0 || !r.Native || !validates(l.rows[place].form) {
			continue
		}
		l.rows[place].search(r)
		for _, why := range found.Refused {
			l.rows[place].notes = addOnce(l.rows[place].notes, "an API server refuses the translation: "+why)
		}
	}
}

func (r *row) search(found verify.RuleEvidence) {
	t := r.of(Search)
	violated := found.Verdicts[interp.Fail] + found.Verdicts[interp.Error]
	t.Seen += found.Matched
	t.Agreed += found.Matched
	t.Violated += violated
	t.passed += found.Matched - min(violated, found.Matched)
	if unseen := found.Predicates - found.BothWays; unseen > 0 {
		r.notes = addOnce(r.notes, fmt.Sprintf("the made-up requests never showed %d of its conditions both true and false", unseen))
	}
	c := found.Counterexample
	if c == nil {
		return
	}
	t.Seen--
	t.Agreed--
	t.disagree(false, func() report.Disagreement {
		return report.Disagreement{
			Subject: c.Request.Summary(), Sides: []report.Voice{native(c.Opinion), interpreter(c.Opinion)}, Request: json.RawMessage(c.Request.String()),
		}
	})
}
