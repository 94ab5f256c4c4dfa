package shadow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

func newBook(t *testing.T) (*Book, *policy.Policy) {
	t.Helper()
	b, p := New("here", func() time.Time { return time.Unix(1000, 0) }), &policy.Policy{}
	b.Follow(map[*policy.Policy]ShadowedPolicy{p: subject(1)})
	return b, p
}

func subject(generation int64) ShadowedPolicy {
	return ShadowedPolicy{v1alpha1.PolicyReference{Kind: "ClusterPolicy", Name: "p"}, generation}
}

func record(p *policy.Policy, rule string, status interp.Status, object string) webhook.Record {
	return webhook.Record{Of: p, Shadow: true, Rule: rule, Status: status, Message: "because", Request: webhook.Requested{Operation: "CREATE", Resource: object, Object: object}}
}

// Each verdict is counted, and the last few requests of each are kept, however many of
// another come.
func TestCounts(t *testing.T) {
	b, p := newBook(t)
	b.Note(record(p, "r", interp.Fail, "ConfigMap/a/bad"))
	b.Note(record(p, "r", interp.Error, "ConfigMap/a/odd"))
	for i := range 3 * maxRequests {
		b.Note(record(p, "r", interp.Pass, fmt.Sprint("ConfigMap/a/", i)))
	}
	b.Note(record(p, "r", interp.Skip, "ConfigMap/a/last"))
	pages := b.News()
	if len(pages) != 1 || len(pages[0].Status.Rules) != 1 {
		t.Fatalf("%+v", pages)
	}
	got := pages[0].Status.Rules[0]
	if got.Passed != 3*maxRequests+1 || got.Violated != 1 || got.Failed != 1 || len(got.Requests) != maxRequests+2 {
		t.Errorf("%+v", got)
	}
	if first, last := got.Requests[0], got.Requests[len(got.Requests)-1]; first.Verdict != "fail" || first.Message != "because" || last.Object != "ConfigMap/a/last" || last.Verdict != "pass" {
		t.Errorf("%+v", got.Requests)
	}
	if again := b.News(); len(again) != 0 {
		t.Errorf("nothing is new: %+v", again)
	}
	if b.Again(pages[0].Source); len(b.News()) != 1 {
		t.Error("what could not be written is not told again")
	}
}

// What a Secret holds is not kept, nor what is not a matter of shadow.
func TestPassesOver(t *testing.T) {
	b, p := newBook(t)
	enforced, dry := record(p, "r", interp.Fail, "ConfigMap/a/b"), record(p, "r", interp.Fail, "ConfigMap/a/b")
	enforced.Shadow, dry.Request.DryRun = false, true
	b.Note(enforced)
	b.Note(dry)
	b.Note(record(&policy.Policy{}, "r", interp.Fail, "ConfigMap/a/b"))
	if pages := b.News(); len(pages) != 0 {
		t.Fatalf("%+v", pages)
	}
	b.Note(record(p, "r", interp.Fail, "Secret/a/b"))
	if got := b.News()[0].Status.Rules[0].Requests[0]; got.Message != "" {
		t.Errorf("of a Secret it keeps %q", got.Message)
	}
}

// What is kept is bounded, and a new version of a policy begins at nothing.
func TestBounds(t *testing.T) {
	b, p := newBook(t)
	for i := range 2 * maxRules {
		long := record(p, fmt.Sprint("rule ", i), interp.Fail, "ConfigMap/a/b")
		long.Message = strings.Repeat("x", 10*maxMessage)
		b.Note(long)
	}
	got := b.News()[0].Status
	if len(got.Rules) != maxRules || len(got.Rules[0].Requests[0].Message) > maxMessage+len("…") {
		t.Errorf("%d rules, %d bytes", len(got.Rules), len(got.Rules[0].Requests[0].Message))
	}
	b.Follow(map[*policy.Policy]ShadowedPolicy{p: subject(2)})
	b.Note(record(p, "r", interp.Pass, "ConfigMap/a/b"))
	if pages := b.News(); len(pages) != 1 || len(pages[0].Status.Rules) != 1 || pages[0].Status.Generation != 2 {
		t.Errorf("%+v", pages)
	}
}

// A page is told at once, then once a minute at most, and less often where nothing is found.
func TestToldNowAndThen(t *testing.T) {
	now, p := time.Unix(1000, 0), &policy.Policy{}
	b := New("here", func() time.Time { return now })
	b.Follow(map[*policy.Policy]ShadowedPolicy{p: subject(1)})
	told := func(status interp.Status) bool {
		b.Note(record(p, "r", status, "ConfigMap/a/b"))
		return len(b.News()) == 1
	}
	for i, step := range []struct {
		after  time.Duration
		status interp.Status
		want   bool
	}{
		{0, interp.Pass, true},
		{foundEvery, interp.Pass, false},
		{0, interp.Fail, true},
		{foundEvery - time.Second, interp.Fail, false},
		{time.Second, interp.Pass, true},
		{passedEvery, interp.Pass, true},
		{foundEvery, interp.Pass, false},
	} {
		now = now.Add(step.after)
		if got := told(step.status); got != step.want {
			t.Errorf("step %d: told is %t", i, got)
		}
	}
}

// The counts are a metric, as long as the policy is in shadow.
func TestCountsAreMetrics(t *testing.T) {
	b, p := newBook(t)
	b.Note(record(p, "r", interp.Fail, "ConfigMap/a/b"))
	b.Note(record(p, "r", interp.Pass, "ConfigMap/a/b"))
	b.Note(record(p, "r", interp.Pass, "ConfigMap/a/b"))
	registry := prometheus.NewRegistry()
	if err := registry.Register(b); err != nil {
		t.Fatal(err)
	}
	counts := func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				of := family.GetName()
				for _, label := range m.GetLabel() {
					of += " " + label.GetValue()
				}
				out[of] = m.GetCounter().GetValue()
			}
		}
		return out
	}
	const each = "kvap_shadow_verdicts_total  ClusterPolicy p  r "
	if got := counts(); len(got) != 3 || got[each+"pass"] != 2 || got[each+"fail"] != 1 || got[each+"error"] != 0 {
		t.Errorf("%v", got)
	}
	if b.Follow(nil); len(counts()) != 0 {
		t.Errorf("a policy that is in shadow no longer has %v", counts())
	}
}

// BenchmarkFollow is what a change of one policy costs beside many.
func BenchmarkFollow(b *testing.B) {
	book, subjects := New("here", time.Now), map[*policy.Policy]ShadowedPolicy{}
	for i := range 1000 {
		p, of := &policy.Policy{}, subject(1)
		of.Source.Name = fmt.Sprint(i)
		subjects[p] = of
		book.Follow(subjects)
		book.Note(record(p, "r", interp.Pass, "ConfigMap/a/b"))
	}
	for b.Loop() {
		book.Follow(subjects)
	}
}
