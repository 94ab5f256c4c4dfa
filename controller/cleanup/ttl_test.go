package cleanup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/interp"
)

// Objects go when their label says so, and not before. What nobody can read means
// nothing.
func TestSweep(t *testing.T) {
	var all []labelled
	for _, o := range []struct {
		name, value string
		going       bool
	}{
		{"hour", "1h", false}, {"two-hours", "2h", false}, {"day", "2026-01-31", false}, {"next-day", "2026-02-01", false}, {"at-one", "2026-01-31T130000Z", false},
		{"words", "soon", false}, {"going", "1h", true}, {"orphan", "1m", false},
	} {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: o.name, UID: types.UID(o.name), CreationTimestamp: metav1.NewTime(noon()), Labels: map[string]string{interp.TTLLabel: o.value},
		}}
		if o.going {
			m.DeletionTimestamp = &m.CreationTimestamp
		}
		if o.name == "orphan" {
			m.Annotations = map[string]string{interp.PropagationAnnotation: "Orphan"}
		}
		all = append(all, labelled{Resource{}, m})
	}
	var gone []string
	now := noon()
	r := &reaper{now: func() time.Time { return now }, log: logr.Discard(), remove: func(_ context.Context, _ Resource, o metav1.Object, how string) error {
		gone = append(gone, strings.TrimSpace(o.GetName()+" "+how))
		return nil
	}}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "day"}, {time.Minute, "orphan Orphan"}, {time.Hour - time.Nanosecond, ""}, {time.Hour, "hour,at-one"}, {2 * time.Hour, "two-hours"}, {12 * time.Hour, "next-day"},
	} {
		now, gone = noon().Add(step.after), nil
		r.sweep(t.Context(), all)
		r.sweep(t.Context(), all) // the watch has not told yet
		if got := strings.Join(gone, ","); got != step.want {
			t.Errorf("after %v: got %s, want %s", step.after, got, step.want)
		}
		for i := len(all) - 1; i >= 0; i-- {
			for _, name := range gone {
				if strings.HasPrefix(name+" ", all[i].object.GetName()+" ") {
					all = append(all[:i], all[i+1:]...)
					break
				}
			}
		}
	}
}

// What cannot be deleted is tried again, each time later; what has changed at once.
func TestSweepAgain(t *testing.T) {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "a", CreationTimestamp: metav1.NewTime(noon()), Labels: map[string]string{interp.TTLLabel: "0s"},
	}}
	now, asked := noon(), 0
	err := errors.New("no")
	r := &reaper{now: func() time.Time { return now }, log: logr.Discard(), remove: func(context.Context, Resource, metav1.Object, string) error {
		asked++
		return err
	}}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {9, 1}, {10, 2}, {29, 2}, {30, 3}, {3600, 4}} {
		now = noon().Add(step.after * time.Second)
		if r.sweep(t.Context(), []labelled{{Resource{}, m}}); asked != step.want {
			t.Errorf("after %d s: asked %d times, want %d", step.after, asked, step.want)
		}
	}
	err = apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed"))
	now = now.Add(time.Hour)
	r.sweep(t.Context(), []labelled{{Resource{}, m}})
	now = now.Add(time.Second)
	if r.sweep(t.Context(), []labelled{{Resource{}, m}}); asked != 6 {
		t.Errorf("asked %d times", asked)
	}
	if r.sweep(t.Context(), nil); len(r.failed) != 0 {
		t.Error("what is gone is remembered")
	}
}
