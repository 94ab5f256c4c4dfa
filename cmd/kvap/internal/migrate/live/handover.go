package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/report"
)

// Options say how policies are brought to a goal.
type Options struct {
	// OwnedToo has policies changed that a GitOps tool manages.
	OwnedToo bool
	// Wait is how long somebody is waited for.
	Wait time.Duration
	// Tell is called with each thing that was done, and Progress with what is waited for.
	Tell     func(string)
	Progress func(format string, args ...any)
}

// A Handover brings policies of a cluster to a goal.
type Handover struct {
	options Options
	goal    migrate.Goal
	reader  *Reader
	// first are the states as they were when it began.
	first PolicyStates
	tasks []*policyTask
	// told is when somebody was last told of anything, and forgone are the policies for
	// which something was no longer waited for, by what that was.
	told    time.Time
	forgone map[string][]string
}

// A policyTask is one policy.
type policyTask struct {
	name    string // of the record
	goal    migrate.Goal
	out     report.HandedOverPolicy
	planned []*migrate.Move
	done    bool
	waiting time.Time // since when, zero where nothing is waited for
	awaited string    // what
	both    time.Time // since when both sides were seen to judge; zero where they are not

	next   *migrate.Move // to make now; nil where there is none
	failed error         // why it was not made
}

// NewHandover settles how each of the chosen policies goes, from the states as they were
// read. It changes nothing.
func NewHandover(ctx context.Context, reader *Reader, first PolicyStates, chosen []string, goal migrate.Goal, o Options) *Handover {
	h := &Handover{options: o, goal: goal, reader: reader, first: first}
	for _, name := range chosen {
		h.tasks = append(h.tasks, &policyTask{name: name, goal: goal, out: migrate.HandedOver(*first[name])})
	}
	each(h.tasks, func(t *policyTask) { h.choose(ctx, t, first[t.name]) })
	return h
}

// atOnce is how many policies are tried or written at once: each write may wait for what others
// have to say of it, such as Kyverno's own webhook for policies.
const atOnce = 10

// each does something to each of some tasks, to several at once.
func each(tasks []*policyTask, do func(*policyTask)) {
	var working errgroup.Group
	working.SetLimit(atOnce)
	for _, t := range tasks {
		working.Go(func() error {
			do(t)
			return nil
		})
	}
	_ = working.Wait() // there is no error
}

// choose settles what a task is, and leaves one that is not to be begun.
func (h *Handover) choose(ctx context.Context, t *policyTask, w *migrate.PolicyState) {
	if h.goal.LeavesSource(*w) {
		return
	}
	if err := h.reader.tryClosed(ctx, w); err != nil {
		t.leave("whether the API server takes such a policy cannot be tried: %v", err)
		return
	}
	if (w.Source != nil || h.goal.Verb == migrate.Rollback) && !h.options.OwnedToo {
		if tool := w.OwnedBy(); tool != "" {
			t.leave("%s manages it and would undo this; write the step for its repository with --output-dir, or say --ignore-gitops", tool)
			return
		}
	}
	if t.goal.Verb == migrate.Enforce && t.goal.Way == "" {
		way, err := h.wayFor(ctx, *w)
		if err != nil {
			t.leave("%v", err)
		}
		t.goal.Way = way
	}
}

// wayFor is the lightest way by which Kyverno can be switched off for a policy.
func (h *Handover) wayFor(ctx context.Context, w migrate.PolicyState) (v1alpha1.MigrationWay, error) {
	way, err := h.goal.WayFor(w)
	if way != v1alpha1.WayAdmission || err != nil || w.Ref.Group == migrate.ExceptingGroup {
		return way, err
	}
	// Kyverno's own validation has the last word, and an old definition drops the field.
	o := w.Source.DeepCopy()
	migrate.SwitchOff(o)
	got, err := put(ctx, h.reader.Connection, o, metav1.DryRunAll)
	switch {
	case apierrors.IsConflict(err):
		return way, nil
	case err != nil && !refusedByKyverno(err):
		return "", fmt.Errorf("whether Kyverno takes admission: false cannot be tried: %w", err)
	case err != nil || !migrate.KyvernoIsOff(got):
		return v1alpha1.WayRemove, nil
	}
	return way, nil
}

// refusedByKyverno tells that somebody has something against what a policy would be.
// Where one may not change it, or nobody answers, that is not known.
func refusedByKyverno(err error) bool {
	return apierrors.IsInvalid(err) || isStatus(err) && strings.Contains(err.Error(), "denied the request")
}

func (t *policyTask) leave(format string, args ...any) {
	t.done, t.out.Left = true, fmt.Sprintf(format, args...)
}

// Plan is what would be done, if nothing goes wrong.
func (h *Handover) Plan() report.Handover {
	out := report.Handover{Verb: h.goal.Verb}
	for _, t := range h.tasks {
		if !t.done {
			var err error
			if t.planned, err = t.goal.Moves(*h.first[t.name]); err != nil {
				t.leave("%v", err)
			}
		}
		one := t.out
		for _, m := range t.planned {
			one.Moves = append(one.Moves, m.Told())
		}
		if len(t.planned) > 0 {
			one.To, one.Way = migrate.EndOf(t.planned)
		}
		out.Policies = append(out.Policies, one)
	}
	return out
}

// pollEvery is how often the cluster is read while something is waited for.
const pollEvery = 300 * time.Millisecond

// Run makes moves, of all policies at once, until each is where it should be or has
// been left.
func (h *Handover) Run(ctx context.Context) (report.Handover, error) {
	h.reader.arounds = nil // somebody may have thought for long whether to begin
	h.told = time.Now()
	defer h.tellForgone()
	for ctx.Err() == nil {
		ws, err := h.reader.Read(ctx, h.goal.Verb)
		if err != nil && ctx.Err() == nil && !apierrors.IsForbidden(err) && h.patient() {
			h.options.Progress("the API server does not answer: %v", err)
			pause(ctx, pollEvery)
			continue
		}
		if err != nil {
			return h.report(), err
		}
		var due []*policyTask
		for _, t := range h.tasks {
			if t.next = nil; !t.done && h.decide(t, ws) {
				due = append(due, t)
			}
		}
		each(due, func(t *policyTask) { t.failed = carryOut(ctx, h.reader.Connection, t.next) })
		open, moved := 0, false
		for _, t := range h.tasks {
			if t.next != nil {
				moved = h.took(ctx, t, ws[t.name]) || moved
			}
			if !t.done {
				open++
			}
		}
		if open == 0 {
			return h.report(), nil
		}
		if !moved {
			h.options.Progress("waiting: %d of %d policies are open", open, len(h.tasks))
			h.tellWaiting(open)
			pause(ctx, pollEvery)
		}
	}
	return h.report(), errors.New("ended before all was done; the records say where each policy stands, and the same command goes on")
}

// patient tells that somebody has not waited for too long.
func (h *Handover) patient() bool {
	for _, t := range h.tasks {
		if !t.done && (t.waiting.IsZero() || time.Since(t.waiting) < h.options.Wait) {
			if t.waiting.IsZero() {
				t.waiting = time.Now()
			}
			return true
		}
	}
	return false
}

// decide settles the next move of a policy, and tells whether there is one to make.
func (h *Handover) decide(t *policyTask, ws PolicyStates) bool {
	if ws[t.name] == nil { // all of it is gone
		ws[t.name] = &migrate.PolicyState{Now: time.Now(), Name: t.name, Ref: h.first[t.name].Ref}
	}
	w := ws[t.name]
	t.out.To, t.out.Way = string(w.Stage()), ""
	if w.Record != nil {
		t.out.Way = string(w.Record.Status.Way)
	}
	move, err := t.goal.Next(*w)
	switch {
	case err != nil:
		t.leave("%v", err)
	case move == nil:
		t.done = true
	case move.IsWait():
		t.both = time.Time{}
		h.await(t, move)
	case move.Releases() && t.onTheWay():
	default:
		t.next = move
	}
	return t.next != nil
}

// took says what follows from a move that was made, or failed, and tells whether all is to be
// read anew at once.
func (h *Handover) took(ctx context.Context, t *policyTask, w *migrate.PolicyState) bool {
	move, err := t.next, t.failed
	if !unanswered(err) {
		t.waiting = time.Time{}
	}
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // somebody was faster: look again
		return false
	case err != nil && ctx.Err() == nil && unanswered(err):
		h.await(t, &migrate.Move{Does: move.Does, Wait: err.Error()})
		return false
	case err != nil && ctx.Err() == nil && w.Closed == "" && deniedByPolicy(err) && h.reader.tryClosed(ctx, w) == nil && w.Closed != "":
		return true // Kyverno 1.20 has come meanwhile: look again
	case err != nil && ctx.Err() == nil:
		t.leave("%s: %v", move.Does, err)
		return false
	case err == nil:
		t.out.Moves = append(t.out.Moves, move.Told())
		h.tell(t.title() + ": " + move.Does)
	}
	return true
}

// wayBetween is how long a request may be on its way from the native policies to a webhook,
// or from one webhook to another. It is judged by what each has when it comes there.
const wayBetween = 3 * time.Second

// onTheWay tells that a request may be on its way that went past the one before that was seen
// to judge, and has yet to come to the other.
func (t *policyTask) onTheWay() bool {
	if t.both.IsZero() {
		t.both = time.Now()
	}
	return time.Since(t.both) < wayBetween
}

// unanswered tells that an API server did not answer, or asks to come later: it may have
// made the move or not, which is seen when all is read anew.
func unanswered(err error) bool {
	return err != nil && (!isStatus(err) && !meta.IsNoMatchError(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err))
}

// isStatus tells that an API server has answered.
func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func (t *policyTask) title() string { return strings.TrimPrefix(t.out.Namespace+"/"+t.out.Name, "/") }

// optionalWait is how long to wait for what nothing depends on.
const optionalWait = 30 * time.Second

// forEach is for how much longer somebody is waited for, for each policy that he has to take
// up: he does one after another.
const forEach = 2 * time.Second

// await waits, but not for ever.
func (h *Handover) await(t *policyTask, move *migrate.Move) {
	if t.waiting.IsZero() {
		t.waiting = time.Now()
	}
	t.awaited = move.Does + ": " + move.Wait
	more := time.Duration(len(h.tasks)-1) * forEach
	switch most := h.options.Wait + more; {
	case move.Optional && time.Since(t.waiting) > min(optionalWait+more, most):
		t.goal.Forgo = true
		if h.forgone == nil {
			h.forgone = map[string][]string{}
		}
		h.forgone[t.awaited] = append(h.forgone[t.awaited], t.title())
	case time.Since(t.waiting) > most:
		t.leave("%s: gave up after %s: %s; the same command goes on from here", move.Does, most, move.Wait)
	}
}

// wordEvery is how often somebody who waits is told for what.
const wordEvery = 10 * time.Second

func (h *Handover) tell(line string) {
	h.told = time.Now()
	h.options.Tell(line)
}

// tellWaiting says what is waited for, where nothing was said for a while.
func (h *Handover) tellWaiting(open int) {
	if time.Since(h.told) < wordEvery {
		return
	}
	for _, t := range h.tasks {
		if !t.done && !t.waiting.IsZero() {
			h.tell(fmt.Sprintf("waiting, %d of %d policies are open: %s, for %s: %s", open, len(h.tasks), t.title(), time.Since(t.waiting).Round(time.Second), t.awaited))
			return
		}
	}
}

// tellForgone says once what was no longer waited for. Nothing depends on it.
func (h *Handover) tellForgone() {
	for _, what := range slices.Sorted(maps.Keys(h.forgone)) {
		names := h.forgone[what]
		h.tell(fmt.Sprintf("not waited for any longer, for nothing depends on it: %s: %s", what, strings.Join(names, ", ")))
	}
}

func (h *Handover) report() report.Handover {
	out := report.Handover{Verb: h.goal.Verb}
	for _, t := range h.tasks {
		if !t.done {
			t.out.Left = "not finished"
		}
		out.Policies = append(out.Policies, t.out)
	}
	return out
}

// TryOut has the API server try what would be written, one after another. What a later move
// changes that an earlier one only would have made, cannot be tried.
func (h *Handover) TryOut(ctx context.Context, planned *report.Handover) {
	for i, t := range h.tasks {
		if t.done {
			continue
		}
		for _, m := range t.planned {
			if m.Record != nil || m.Delete != nil && m.Delete.GetResourceVersion() == "" {
				continue
			}
			if err := carryOut(ctx, h.reader.Connection, m, metav1.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
				planned.Policies[i].Left = fmt.Sprintf("%s: %v", m.Does, err)
				break
			}
		}
	}
}

// Components are the files that lead where the handover would.
func (h *Handover) Components() ([]migrate.Component, error) {
	var all []migrate.Component
	for _, t := range h.tasks {
		if t.done {
			continue
		}
		components, err := migrate.Components(*h.first[t.name], t.planned)
		if err != nil {
			return nil, err
		}
		all = append(all, components...)
	}
	return all, nil
}

// pause waits, but not for longer than ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
