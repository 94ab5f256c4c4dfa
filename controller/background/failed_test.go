package background

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/api/v1alpha1"
)

// dropped is how many notices say that a request was removed.
func (b *bench) dropped() (n int) {
	for _, one := range b.told {
		if one.Reason == "BackgroundDropped" {
			n++
		}
	}
	return n
}

// A rule that fails again and again keeps no more requests than there is room for: the
// oldest go, and that is told.
func TestFailingBounded(t *testing.T) {
	const room, more = 500, 3
	b := start(t, settings)
	b.cluster.refuse["create ConfigMap"] = errors.New("refused")
	var names []string
	for i := range room + more {
		trigger := object(t, strings.ReplaceAll(strings.ReplaceAll(shop, "shop", fmt.Sprint("n", i)), "u1", fmt.Sprint("u", i)))
		b.cluster.store(trigger)
		names = append(names, b.asked("CREATE", trigger, nil)...)
		b.doRequest(t.Context(), names[i])
		b.now = b.now.Add(time.Second)
	}
	if len(b.requests) != room || b.requests[names[more-1]] != nil || b.requests[names[more]] == nil || b.dropped() != more {
		t.Errorf("%d requests, %d told", len(b.requests), b.dropped())
	}
}

// Large requests take more of the room, and those that were given up go first.
func TestFailingBytes(t *testing.T) {
	b := start(t, settings)
	var names []string
	for i := range 4 {
		r := &v1alpha1.GenerateRequest{}
		r.Name, r.CreationTimestamp = fmt.Sprint("r", i), metav1.NewTime(b.now.Add(time.Duration(i)*time.Second))
		r.Spec.Rule = fmt.Sprint("rule", i)
		r.Spec.Request = &v1alpha1.CapturedRequest{OldObject: &runtime.RawExtension{Raw: make([]byte, 20<<20)}}
		r.Status.State = v1alpha1.GeneratePending
		if i == 2 {
			r.Status.State = v1alpha1.GenerateFailed
		}
		b.requests[r.Name] = r
		b.keepFailedRequest(t.Context(), r, b.now)
	}
	for name := range b.requests {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"r0", "r1", "r3"}; !slices.Equal(names, want) || b.dropped() != 1 {
		t.Errorf("%v, told %v", names, b.told)
	}
}

// An object that the API server will never take is tried later and later, and then
// said to have failed.
func TestNeverTaken(t *testing.T) {
	b := start(t, settings, shop)
	b.cluster.refuse["create ConfigMap"] = apierrors.NewBadRequest("json: cannot unmarshal")
	name := b.asked("CREATE", object(t, shop), nil)[0]
	var last time.Duration
	for tries := 1; tries < maxTries; tries++ {
		again := b.doRequest(t.Context(), name)
		if s := b.requests[name].Status; s.State != v1alpha1.GeneratePending || int(s.RetryCount) != tries || again < last || again > longestWait {
			t.Fatalf("try %d: again after %v: %+v", tries, again, s)
		}
		last = again
		b.now = b.now.Add(again)
	}
	b.doRequest(t.Context(), name)
	if s := b.requests[name].Status; s.State != v1alpha1.GenerateFailed || !strings.Contains(s.Message, "ConfigMap shop/defaults") || last != longestWait {
		t.Errorf("after %v: %+v", last, s)
	}
}

// What was given up goes after a day.
func TestFailedGoes(t *testing.T) {
	b := start(t, settings, shop)
	b.cluster.refuse["create ConfigMap"] = errors.New("refused")
	name := b.asked("CREATE", object(t, shop), nil)[0]
	b.requests[name].Status.RetryCount = maxTries - 1
	for range 24 {
		if again := b.doRequest(t.Context(), name); again == 0 || again > time.Hour || b.requests[name] == nil {
			t.Fatalf("again after %v: %v", again, b.requests)
		}
		b.now = b.now.Add(time.Hour)
	}
	if again := b.doRequest(t.Context(), name); again != 0 || len(b.requests)+len(b.failedRequests)+len(b.known) != 0 || b.dropped() != 1 {
		t.Errorf("again after %v: %v, told %v", again, b.requests, b.told)
	}
}
