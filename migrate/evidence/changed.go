package evidence

import (
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap/apiserver"
)

// noteChange holds what the native form of a policy makes of the object of a request against what
// Kyverno's webhook makes of it by the rules of the policy, which the interpreter does.
func (l *Ledger) noteChange(place int, j judged, o judge.Opinion) {
	c, t := o.Changes, l.rows[place].of(j.Source)
	switch {
	case o.Status == interp.None && c.Different == "":
	case c.LeftOut && c.Native == apiserver.NoMatch:
		t.cannotTell("the bindings leave out the namespace")
	case c.Different == "":
		t.agree(c.Changed)
	case l.lacks(o):
		t.cannotTell(notAtHand)
	default:
		t.disagree(c.Changed, func() report.Disagreement {
			ours, theirs := changeSides(c, j.request)
			return report.Disagreement{Subject: j.Subject, At: j.At, Sides: []report.Voice{ours, theirs}, Request: line(j.request)}
		})
	}
}

// changeSides are what both made of an object: at the first path where the two differ, or that one
// of them is an error.
func changeSides(c *judge.Changed, r *judge.Request) (ours, theirs report.Voice) {
	ours, theirs = report.Voice{Who: "the native policies"}, report.Voice{Who: "Kyverno's rules, interpreted"}
	resource, _ := r.Admission()["resource"].(map[string]any)
	m := mutation{hidden: resource["resource"] == "secrets"}
	paths := c.Paths()
	switch {
	case c.Native == apiserver.Error:
		ours.Says, ours.Message = "err", c.Message
		theirs.Says = "make an object of it"
	case len(paths) == 0:
		ours.Says, theirs.Says, theirs.Message = "make an object of it", "err", c.Different
	default:
		ours.Message, theirs.Message = paths[0], paths[0]
		ours.Says = "make it " + m.told(m.at(c.Made, paths[0]))
		theirs.Says = "make it " + m.told(m.at(c.Interpreted, paths[0]))
	}
	return ours, theirs
}
