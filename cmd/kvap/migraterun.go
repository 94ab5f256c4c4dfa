package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/report"
)

// A handover brings policies of a cluster to a goal.
type handover struct {
	flags  changeFlags
	goal   migrate.Goal
	reader *worldReader
	errs   io.Writer
	// first are the worlds as they were when the command began.
	first worlds
	tasks []*task
}

// A task is one policy.
type task struct {
	name    string // of the record
	goal    migrate.Goal
	out     report.HandedOverPolicy
	done    bool
	waiting time.Time // since when, zero where nothing is waited for
	passed  map[string]bool
}

func (f changeFlags) newHandover(ctx context.Context, cmd *cobra.Command, goal migrate.Goal, names []string) (*handover, error) {
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	h := &handover{flags: f, goal: goal, errs: cmd.ErrOrStderr()}
	if h.reader, err = newWorldReader(c, f.settle); err != nil {
		return nil, runtimeError(err)
	}
	if h.first, err = h.read(ctx); err != nil {
		return nil, runtimeError(err)
	}
	if len(f.files) > 0 || f.kustomize != "" {
		if names, err = f.namesInFiles(cmd, names); err != nil {
			return nil, err
		}
	}
	chosen, err := f.chosen(h.first, names, c.namespace)
	if err != nil {
		return nil, err
	}
	for _, name := range chosen {
		w := h.first[name]
		h.tasks = append(h.tasks, &task{name: name, passed: map[string]bool{}, out: report.HandedOverPolicy{
			Kind: w.Ref.Kind, Namespace: w.Ref.Namespace, Name: w.Ref.Name, From: string(w.Stage()), To: string(w.Stage()),
		}})
	}
	return h, h.choose(ctx)
}

// read reads what the goal goes by.
func (h *handover) read(ctx context.Context) (worlds, error) {
	ws, err := h.reader.read(ctx)
	if err == nil && h.goal.Verb == migrate.Enforce {
		err = h.reader.lookAround(ctx, ws)
	}
	return ws, err
}

// choose settles what each task is, and leaves those that are not to be begun.
func (h *handover) choose(ctx context.Context) error {
	for _, t := range h.tasks {
		w := h.first[t.name]
		t.goal = h.goal
		if (w.Source != nil || h.goal.Verb == migrate.Rollback) && !h.flags.ownedToo && h.flags.outputDir == "" {
			if tool := w.OwnedBy(); tool != "" {
				t.leave("%s manages it and would undo this; write the step for its repository with --output-dir, or say --ignore-gitops", tool)
				continue
			}
		}
		if t.goal.Verb == migrate.Enforce && t.goal.Way == "" {
			way, err := h.wayFor(ctx, *w)
			if err != nil {
				t.leave("%v", err)
				continue
			}
			t.goal.Way = way
		}
	}
	return nil
}

// wayFor is the lightest way by which Kyverno can be switched off for a policy.
func (h *handover) wayFor(ctx context.Context, w migrate.World) (v1alpha1.MigrationWay, error) {
	way, err := migrate.WayFor(w)
	if way != v1alpha1.WayAdmission || err != nil || !migrate.CanCarry(w.Ref) {
		return way, err
	}
	// Kyverno's own validation has the last word, and an old definition drops the field.
	o := w.Source.DeepCopy()
	migrate.SwitchOff(o)
	got, err := h.reader.update(ctx, o, true)
	switch {
	case apierrors.IsConflict(err):
		return way, nil
	case err != nil || !migrate.KyvernoIsOff(got):
		return v1alpha1.WayRemove, nil
	}
	return way, nil
}

func (t *task) leave(format string, args ...any) {
	t.done, t.out.Left = true, fmt.Sprintf(format, args...)
}

// plan is what would be done, if nothing goes wrong.
func (h *handover) plan(context.Context) (report.Handover, error) {
	out := report.Handover{Verb: h.goal.Verb}
	for _, t := range h.tasks {
		one := t.out
		if !t.done {
			moves, err := t.goal.Moves(*h.first[t.name])
			if err != nil {
				t.leave("%v", err)
				one = t.out
			}
			one.Moves, one.Way = movesOf(moves), wayOf(moves)
			if len(moves) > 0 {
				one.To = string(stageAfter(moves))
			}
		}
		out.Policies = append(out.Policies, one)
	}
	return out, nil
}

func movesOf(moves []*migrate.Move) []report.HandoverMove {
	var out []report.HandoverMove
	for _, m := range moves {
		out = append(out, report.HandoverMove{Does: m.Does, Part: m.Part})
	}
	return out
}

// stageAfter is the stage that the last record has.
func stageAfter(moves []*migrate.Move) (stage v1alpha1.MigrationStage) {
	for _, m := range moves {
		if m.Record != nil {
			stage = m.Record.Status.Stage
		}
	}
	return stage
}

func wayOf(moves []*migrate.Move) (way string) {
	for _, m := range moves {
		if m.Record != nil {
			way = string(m.Record.Status.Way)
		}
	}
	return way
}

// pollEvery is how often the cluster is read while something is waited for.
const pollEvery = 300 * time.Millisecond

// run makes moves, of all policies at once, until each is where it should be or has
// been left.
func (h *handover) run(ctx context.Context) (report.Handover, error) {
	progress := newProgress(h.errs, false)
	defer progress.clear()
	for ctx.Err() == nil {
		ws, err := h.read(ctx)
		if err != nil && ctx.Err() == nil && !apierrors.IsForbidden(err) && h.patient() {
			progress.show("the API server does not answer: %v", err)
			pause(ctx, pollEvery)
			continue
		}
		if err != nil {
			return h.report(), err
		}
		open, moved := 0, false
		for _, t := range h.tasks {
			if t.done {
				continue
			}
			moved = h.step(ctx, t, ws) || moved
			if !t.done {
				open++
			}
		}
		if open == 0 {
			return h.report(), nil
		}
		if !moved {
			progress.show("waiting for %s", count(open, "policy", "policies"))
			pause(ctx, pollEvery)
		}
	}
	return h.report(), errors.New("ended before all was done; the records say where each policy stands, and the same command goes on")
}

// patient tells that somebody has not waited for too long.
func (h *handover) patient() bool {
	for _, t := range h.tasks {
		if !t.done && (t.waiting.IsZero() || time.Since(t.waiting) < h.flags.wait) {
			if t.waiting.IsZero() {
				t.waiting = time.Now()
			}
			return true
		}
	}
	return false
}

// step makes the next move of a policy, and tells whether there was one.
func (h *handover) step(ctx context.Context, t *task, ws worlds) bool {
	w := ws[t.name]
	if w == nil { // all of it is gone
		w = &migrate.World{Now: time.Now(), Name: t.name, Ref: h.first[t.name].Ref}
	}
	t.out.To, t.out.Way = string(w.Stage()), ""
	if w.Record != nil {
		t.out.Way = string(w.Record.Status.Way)
	}
	move, err := t.goal.Next(*w)
	switch {
	case err != nil:
		t.leave("%v", err)
		return false
	case move == nil:
		t.done = true
		return false
	case move.IsWait():
		h.await(t, move)
		return false
	}
	t.waiting = time.Time{}
	err = h.reader.make(ctx, move)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // somebody was faster: look again
		return false
	case err != nil && ctx.Err() == nil:
		t.leave("%s: %v", move.Does, err)
		return false
	case err == nil:
		t.out.Moves = append(t.out.Moves, report.HandoverMove{Does: move.Does, Part: move.Part})
		fmt.Fprintf(h.errs, "%s: %s\n", t.title(), move.Does)
	}
	return true
}

func (t *task) title() string {
	if t.out.Namespace != "" {
		return t.out.Namespace + "/" + t.out.Name
	}
	return t.out.Name
}

// optionalWait is how long to wait for what nothing depends on.
const optionalWait = 30 * time.Second

// await waits, but not for ever.
func (h *handover) await(t *task, move *migrate.Move) {
	if t.waiting.IsZero() {
		t.waiting = time.Now()
	}
	switch {
	case move.Optional && time.Since(t.waiting) > min(optionalWait, h.flags.wait):
		t.goal.Forgo = true
		fmt.Fprintf(h.errs, "%s: %s: gave up waiting: %s\n", t.title(), move.Does, move.Wait)
	case time.Since(t.waiting) > h.flags.wait:
		t.leave("%s: gave up after %s: %s; the same command goes on from here", move.Does, h.flags.wait, move.Wait)
	}
}

func (h *handover) report() report.Handover {
	out := report.Handover{Verb: h.goal.Verb}
	for _, t := range h.tasks {
		if !t.done {
			t.out.Left = "not finished"
		}
		out.Policies = append(out.Policies, t.out)
	}
	return out
}

// tryOut has the API server try what would be written, one after another.
func (h *handover) tryOut(ctx context.Context, planned *report.Handover) {
	for i, t := range h.tasks {
		if t.done {
			continue
		}
		moves, _ := t.goal.Moves(*h.first[t.name]) // as planned
		for _, m := range moves {
			if err := h.reader.try(ctx, m); err != nil {
				planned.Policies[i].Left = fmt.Sprintf("%s: %v", m.Does, err)
				break
			}
		}
	}
}
