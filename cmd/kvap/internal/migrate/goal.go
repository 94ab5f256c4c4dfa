package migrate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/report/doc"
)

// The verbs that change where a policy stands.
const (
	Shadow   = "shadow"
	Enforce  = "enforce"
	Rollback = "rollback"
	Adopt    = "adopt"
)

// A Goal is what a user wants of a policy.
type Goal struct {
	Verb string
	// Way is how Kyverno is switched off, for Enforce.
	Way v1alpha1.MigrationWay
	// To is where Rollback ends: StageNone or StageShadow.
	To v1alpha1.MigrationStage
	// Accept is why Enforce goes on without a comparison that speaks for it, and
	// Rollback although changes are lost.
	Accept string
	// MaxAge is how old that comparison may be.
	MaxAge time.Duration
	// Unrecorded tells that nobody has a record: files have none.
	Unrecorded bool
	// InFiles tells that what is done is written to files.
	InFiles bool
	// Apart has policies of kvap.dev take part where that can be chosen, so that nothing is
	// written into those of Kyverno.
	Apart bool
	// Forgo tells not to wait for what nothing depends on.
	Forgo bool
}

// Next is the move that comes next; nil where the goal is reached. An error tells
// that the goal is not to be reached from here, and what to do.
//
// The intention is recorded before the first move, and that it is reached after the
// last, so that whatever happens between can be gone on with, or back from.
func (g Goal) Next(w PolicyState) (*Move, error) {
	elsewhere := w.Source != nil && w.status().Original == nil && (isOff(w.Source) || KyvernoHasRest(w.Source)) // by files, or a record that is gone
	if g.Verb == Rollback && w.status().Doing == nil && w.Stage() == v1alpha1.StageNone && !elsewhere && !w.leftBehind() {
		return w.forget(), nil // nothing was done that could be undone
	}
	if err := g.refuseGone(w); err != nil {
		return nil, err
	}
	if d := w.status().Doing; d != nil && d.Verb != g.Verb && g.Verb != Rollback && !g.forwardAgain(w) {
		return nil, fmt.Errorf("%s was begun at %s and has not ended; %s", d.Verb, d.At.UTC().Format(time.RFC3339), w.WayOn())
	}
	move, err := g.act(w)
	if err == nil {
		err = w.refuseClosed(move)
	}
	if err != nil {
		return nil, err
	}
	if move != nil && move.Optional && g.Forgo {
		move = nil // it is the last
	}
	to := g.stage()
	switch {
	case w.doing(g.Verb) && move != nil:
		return move, nil
	case w.doing(g.Verb):
		return g.end(w), nil
	case (move == nil || move.IsWait()) && w.Stage() == to && w.status().Doing == nil:
		return move, nil // to wait is nothing that is begun
	}
	return g.begin(w), nil
}

// LeavesSource tells that nothing will be written into the source: the record alone says that
// it is in shadow, and that it is no longer.
func (g Goal) LeavesSource(w PolicyState) bool {
	inFiles := g.InFiles || g.Apart
	return !inFiles && (g.Verb == Shadow || g.Verb == Rollback && g.To == v1alpha1.StageNone && w.Stage() == v1alpha1.StageShadow &&
		w.status().Doing == nil && w.Carrier == nil && w.Source != nil && modeOf(w.Source) == "")
}

func (g Goal) stage() v1alpha1.MigrationStage {
	switch g.Verb {
	case Shadow:
		return v1alpha1.StageShadow
	case Enforce:
		return v1alpha1.StageEnforced
	case Adopt:
		return v1alpha1.StageAdopted
	}
	return g.To
}

// forwardAgain tells that kvap has not let go yet of a policy on its way back, so that
// the verb by which it came may lead forward again: Kyverno may never answer.
func (g Goal) forwardAgain(w PolicyState) bool {
	if !w.doing(Rollback) {
		return false
	}
	if w.closed() && g.Verb == Enforce { // Kyverno never will
		return w.Stage() != v1alpha1.StageAdopted
	}
	switch w.Stage() {
	case v1alpha1.StageEnforced:
		return g.Verb == Enforce && (w.Carrier != nil || w.Source != nil && modeOf(w.Source) == v1alpha1.ModeEnforce)
	case v1alpha1.StageAdopted:
		return g.Verb == Adopt && w.Carrier != nil
	}
	return false
}

// WayOn says how a policy goes on at which something was begun and has not ended.
func (w PolicyState) WayOn() string {
	d := w.status().Doing
	on := func(verb string) string { return "kvap migrate " + verb + " " + w.Title() }
	forward := Enforce
	if w.Stage() == v1alpha1.StageAdopted {
		forward = Adopt
	}
	switch {
	case d == nil:
		return ""
	case d.Verb == Rollback && w.closed():
		return on(Rollback) + " says whether it can go on; " + on(forward) + " leads forward"
	case d.Verb == Rollback && d.To == v1alpha1.StageShadow:
		return on(Rollback) + " --to shadow goes on, as soon as Kyverno answers"
	case d.Verb == Rollback && ((Goal{Verb: Enforce}).forwardAgain(w) || (Goal{Verb: Adopt}).forwardAgain(w)):
		return on(Rollback) + " goes on, as soon as Kyverno answers; " + on(forward) + " leads forward again"
	case d.Verb == Rollback:
		return on(Rollback) + " goes on, as soon as Kyverno answers"
	case d.Verb != Shadow && w.closed(): // Kyverno takes nothing back
		return on(d.Verb) + " goes on"
	}
	return on(d.Verb) + " goes on, and " + on(Rollback) + " goes back"
}

// act is the first of the moves between beginning and end that is not made. An error is
// why the goal is not to be gone for.
func (g Goal) act(w PolicyState) (*Move, error) {
	switch g.Verb {
	case Shadow:
		return g.shadow(w)
	case Enforce:
		return g.enforce(w)
	case Rollback:
		return g.rollback(w)
	case Adopt:
		return g.adopt(w)
	}
	return nil, fmt.Errorf("there is no verb %q", g.Verb)
}

// begin records the intention, and the policy as it is where it may have changed
// since it was recorded.
func (g Goal) begin(w PolicyState) *Move {
	r := w.record()
	s := &r.Status
	s.Doing = &v1alpha1.MigrationStep{Verb: g.Verb, At: metav1.NewTime(w.Now.UTC().Truncate(time.Second)), To: g.stage(), Why: g.reason(w)}
	switch {
	case w.Source == nil || g.Verb == Rollback && !w.leftBehind():
	case w.Stage() == v1alpha1.StageNone, w.Stage() == v1alpha1.StageShadow, w.Stage() == v1alpha1.StageEnforced && g.Verb == Adopt && isOff(w.Source):
		s.Original = keepOriginal(w.Source, s.Original)
	}
	switch {
	case g.Verb == Enforce && (w.Stage() != v1alpha1.StageEnforced || w.closed()):
		s.Way = g.Way
	case g.Verb == Adopt: // there will be none in which admission is off
		s.Way = v1alpha1.WayRemove
	}
	return &Move{Does: "note in the record what is begun", Record: r}
}

// reason is why a refusal was overridden, where it was.
func (g Goal) reason(w PolicyState) string {
	if g.Verb == Enforce {
		needed := g
		needed.Accept = ""
		if w.Stage() != v1alpha1.StageEnforced && needed.refuseEnforce(w) == nil {
			return ""
		}
	}
	return g.Accept
}

// end records that the goal is reached.
func (g Goal) end(w PolicyState) *Move {
	r := w.record()
	s := &r.Status
	step := *s.Doing
	step.To, step.What = g.stage(), g.what(w)
	Note(r, step)
	s.Doing, s.Stage = nil, g.stage()
	if s.Stage == v1alpha1.StageNone || s.Stage == v1alpha1.StageShadow {
		s.Way = ""
	}
	if s.Stage == v1alpha1.StageNone {
		s.Original = nil
	}
	return &Move{Does: "note in the record that it is done: " + string(s.Stage), Record: r}
}

func (g Goal) what(w PolicyState) string {
	switch g.Verb {
	case Shadow:
		return "judged beside Kyverno, without effect"
	case Enforce:
		return map[v1alpha1.MigrationWay]string{
			v1alpha1.WayAdmission: "kvap enforces; admission is off in the policy, for Kyverno",
			v1alpha1.WayReplace:   "kvap enforces; Kyverno keeps " + strings.Join(w.Staying, ", "),
			v1alpha1.WayRemove:    "kvap enforces, from a policy of kvap.dev; the policy of Kyverno is gone",
		}[w.status().Way]
	case Adopt:
		return "the policy is of kvap.dev"
	}
	return "Kyverno enforces, as before"
}

// record is a copy of the record that may be changed.
func (w PolicyState) record() *v1alpha1.Migration {
	if w.Record != nil {
		return w.Record.DeepCopy()
	}
	return NewRecord(w.Name, w.Ref)
}

// digest is that of the policy as it is; of the carrier where it is gone.
func (w PolicyState) digest() string {
	switch {
	case w.Source != nil:
		return Digest(w.Source.Object)
	case w.Carrier != nil:
		return Digest(w.Carrier.Object)
	}
	return ""
}

// comparedDigest is that of a comparison that speaks for the policy as it is.
func (w PolicyState) comparedDigest() string {
	if w.Source == nil {
		return w.digest()
	}
	return ComparedDigest(w.Source.Object, w.Around)
}

// history is what was done, in short, with what is under way.
func (w PolicyState) history() string {
	steps := slices.Clone(w.status().Steps)
	if d := w.status().Doing; d != nil {
		steps = append(steps, *d)
	}
	const few = 5
	var out []string
	for _, s := range steps[max(0, len(steps)-few):] {
		text := s.Verb + " " + s.At.UTC().Format(time.RFC3339)
		if s.Why != "" {
			text += " (accepted: " + doc.Cut(s.Why, mostReason) + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// mostReason is how long a reason is in an annotation: an object may have 256 KiB of them
// in all. The record has the whole.
const mostReason = 200

// A Move is one thing to do: write, delete, record or wait. Whoever makes it reads
// the PolicyState anew and asks for the next.
type Move struct {
	// Does says what it does, in words.
	Does string
	// Part names it among the moves of its verb, for instance enforce-1-native. Only
	// what is written to policies, or deleted, has one.
	Part string
	// Write is a policy as it is to be: changed where it has a resource version,
	// otherwise made.
	Write *unstructured.Unstructured
	// Delete is the policy to delete.
	Delete *unstructured.Unstructured
	// Record is the record to write.
	Record *v1alpha1.Migration
	// Wait tells that there is nothing to do but wait, and why.
	Wait string
	// Optional tells that one may go on without what is waited for, after a while.
	Optional bool
}

// IsWait tells that there is nothing to do but wait.
func (m *Move) IsWait() bool { return m.Write == nil && m.Delete == nil && m.Record == nil }

// Releases tells that one of two that judge by the policy is let go.
func (m *Move) Releases() bool {
	return m.Part == "enforce-2-kyverno-off" || m.Part == "rollback-2-native-off"
}

func wait(does, why string) *Move { return &Move{Does: does, Wait: why} }

// annotated is a move that sets annotations of a policy; nil where they are as
// wanted. What was done is written with the others, but is not a reason to write.
func (w PolicyState) annotated(policy *unstructured.Unstructured, part, does string, values map[string]string) *Move {
	same := true
	have := policy.GetAnnotations()
	for key, value := range values {
		same = same && have[key] == value
	}
	if same {
		return nil
	}
	o := policy.DeepCopy()
	annotate(o, map[string]string{v1alpha1.HistoryKey: w.history()})
	annotate(o, values)
	return &Move{Does: does, Part: part, Write: o}
}

// noteUnderWay has the policy that will be left standing say what is under way, before another
// one is deleted or let go; nil where it does. Somebody may have decided before that to
// delete this one, and be slow: what is deleted must be as it was read, so he is refused.
func (w PolicyState) noteUnderWay(policy *unstructured.Unstructured, part string) *Move {
	return w.annotated(policy, part, "note in it what is under way", map[string]string{v1alpha1.HistoryKey: w.history()})
}
