package live

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/report"
)

// An API server that goes away in the middle is waited for; what it refuses is not tried
// again.
func TestUnanswered(t *testing.T) {
	policies := apischema.GroupResource{Group: "kyverno.io", Resource: "clusterpolicies"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":       {nil, false},
		"no connection": {fmt.Errorf("put: %w", errors.New("connection refused")), true},
		"overload":      {apierrors.NewTooManyRequests("later", 1), true},
		"shutting down": {apierrors.NewServiceUnavailable("going"), true},
		"forbidden":     {apierrors.NewForbidden(policies, "p", errors.New("no")), false},
		"a webhook":     {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"too large":     {apierrors.NewInvalid(apischema.GroupKind{}, "p", nil), false},
		"no such kind":  {&meta.NoKindMatchError{}, false},
	} {
		if got := unanswered(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Only what an API server or a webhook has against admission: false says that Kyverno does
// not take it. Who may not try, or gets no answer, knows nothing: the heavier way deletes
// Kyverno's policy.
func TestRefusedByKyverno(t *testing.T) {
	policies := apischema.GroupResource{Group: "kyverno.io", Resource: "clusterpolicies"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"its webhook":       {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Message: `admission webhook "validate-policy.kyverno.svc" denied the request: no`}}, true},
		"its definition":    {apierrors.NewInvalid(apischema.GroupKind{}, "p", nil), true},
		"no permission":     {apierrors.NewForbidden(policies, "p", errors.New(`User "jane" cannot update resource`)), false},
		"no connection":     {errors.New("connection refused"), false},
		"its webhook fails": {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
	} {
		if got := refusedByKyverno(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// One side is let go once no request can be on its way that went past the other before
// that was seen to judge.
func TestOnTheWay(t *testing.T) {
	one := &policyTask{}
	for range 2 {
		if !one.onTheWay() {
			t.Error("one side goes at once")
		}
	}
	if one.both = one.both.Add(-wayBetween); one.onTheWay() {
		t.Error("it is waited for longer")
	}
}

// Who waits is told for what, but not of every policy alone; and the more policies there
// are, the longer the controller has for them.
func TestAwait(t *testing.T) {
	var told []string
	h := &Handover{options: Options{Wait: time.Minute, Tell: func(line string) { told = append(told, line) }}}
	const policies = 18
	for i := range policies {
		h.tasks = append(h.tasks, &policyTask{out: report.HandedOverPolicy{Name: fmt.Sprintf("p%02d", i)}})
	}
	last := &migrate.Move{Does: "see that only the new one is left", Wait: "the controller still judges by the old one", Optional: true}
	since := func(ago time.Duration) {
		for _, one := range h.tasks {
			one.waiting, one.awaited = time.Now().Add(-ago), last.Does+": "+last.Wait
		}
	}
	since(optionalWait + 10*time.Second)
	for _, one := range h.tasks {
		if h.await(one, last); one.goal.Forgo {
			t.Fatal("the controller has more policies to take up than one")
		}
	}
	h.told = time.Now().Add(-wordEvery)
	h.tellWaiting(policies)
	h.tellWaiting(policies)
	if len(told) != 1 || !strings.Contains(told[0], "18 of 18 policies are open: p00, for 40s: see that only the new one is left: the controller still judges by the old one") {
		t.Errorf("a word each ten seconds: %q", told)
	}
	told = nil
	since(optionalWait + policies*forEach)
	for _, one := range h.tasks {
		h.await(one, last)
	}
	h.tellForgone()
	if len(told) != 1 || !strings.Contains(told[0], "p00, p01, ") || !h.tasks[policies-1].goal.Forgo {
		t.Errorf("it was no longer waited for: %q", told)
	}
	since(2 * time.Minute)
	h.await(h.tasks[0], &migrate.Move{Does: "see", Wait: "not yet"})
	if !h.tasks[0].done || !strings.Contains(h.tasks[0].out.Left, "gave up after 1m34s: not yet") {
		t.Errorf("it waits for ever: %q", h.tasks[0].out.Left)
	}
}

// Each write of a policy may wait for others, such as Kyverno's webhook for policies: several
// are made at once, though not any number.
func TestSeveralAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var working, most atomic.Int32
		begun := time.Now()
		each(make([]*policyTask, 3*atOnce), func(*policyTask) {
			if n := working.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(10 * time.Second)
			working.Add(-1)
		})
		if took := time.Since(begun); most.Load() != atOnce || took != 30*time.Second {
			t.Errorf("%d at once, and %s for all; want %d", most.Load(), took, atOnce)
		}
	})
}
