package evidence

import (
	"fmt"
	"time"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/report/doc"
)

// A Rehearsal is what kvap's webhook said of real requests about a rule, while Kyverno
// enforced it: how many, and some of them.
type Rehearsal struct {
	Policy, Rule             string
	Passed, Violated, Failed int64
	Requests                 []Rehearsed
}

// A Rehearsed is one of these requests.
type Rehearsed struct {
	At                     time.Time
	Operation, Object, UID string // Object as Kind/namespace/name
	Verdict                interp.Status
	Message                string
}

// Shadow holds what the webhook said in shadow against what Kyverno did: an object that
// was asked for and is there now was admitted. There tells of UIDs whether their objects are.
// What became of other requests nobody knows without an audit log.
func (l *Ledger) Shadow(found Rehearsal, there map[string]bool) {
	place := l.place(found.Policy, found.Rule)
	if place < 0 {
		return
	}
	r := l.rows[place]
	s := &r.shadowed
	s.passed, s.violated, s.failed = s.passed+found.Passed, s.violated+found.Violated, s.failed+found.Failed
	for _, one := range found.Requests {
		if one.Verdict == interp.Error && one.Message != "" {
			s.why = ", for instance: " + one.Message
		}
		if validates(r.form) && one.Operation == "CREATE" && one.UID != "" {
			r.rehearsed(one, there[one.UID])
		}
	}
}

func (r *row) rehearsed(one Rehearsed, admitted bool) {
	t := r.of(Shadow)
	yes, known := enforced(r.form)
	denies := one.Verdict == interp.Fail || r.form.Rule.Policy.FailurePolicy == policy.Fail
	switch {
	case one.Verdict != interp.Fail && one.Verdict != interp.Error:
		if admitted {
			t.agree(false)
		}
	case !admitted:
		t.cannotTell("the object is not there: Kyverno denied it, or it is gone")
	case !known:
		t.cannotTell("the action of the rule depends on the namespace")
	case !yes:
		t.cannotTell("Kyverno only audits the rule")
	case one.Verdict == interp.Error && judge.Asks(r.form):
		t.cannotTell(couldNotAsk)
	case !denies:
		t.cannotTell("kvap's webhook could not judge the request, and its policy lets it pass then")
	case judge.Asks(r.form):
		t.cannotTell(askedTwice)
	default:
		t.disagree(one.Verdict == interp.Fail, func() report.Disagreement {
			return report.Disagreement{
				Subject: fmt.Sprintf("CREATE %s at %s", one.Object, one.At.UTC().Format(time.RFC3339)),
				Sides: []report.Voice{
					{Who: "kvap's webhook, in shadow", Says: string(one.Verdict), Message: one.Message},
					{Who: "Kyverno's webhook", Says: "admitted it: the object is there"},
				},
			}
		})
	}
}

// shadowed are how many requests the webhook judged by a rule in shadow.
type shadowed struct {
	passed, violated, failed int64
	why                      string // one of those that could not be judged
}

// notes say in words what was counted.
func (s shadowed) notes(changes bool) []string {
	if s == (shadowed{}) {
		return nil
	}
	text := "in shadow kvap's webhook judged " + doc.Count(int(s.passed+s.violated), "request", "requests") + " by it, and "
	switch {
	case !changes && s.violated == 0:
		text += "found a violation in none"
	case !changes:
		text += fmt.Sprintf("found a violation in %d", s.violated)
	case s.violated == 0:
		text += "changed nothing"
	default:
		text += fmt.Sprintf("changed nothing; in %d it would change what it has changed already, as it will where both sides do: see the migration guide", s.violated)
	}
	if s.failed > 0 {
		text += fmt.Sprintf("; it could not judge %d%s", s.failed, s.why)
	}
	return []string{text}
}
