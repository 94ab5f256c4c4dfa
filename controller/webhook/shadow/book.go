package shadow

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// What is kept of a policy at most.
const (
	maxRules    = 50
	maxRequests = 5 // of a rule, of each kind of verdict
	maxMessage  = 200
)

// A ShadowedPolicy is a version of a policy that is in shadow.
type ShadowedPolicy struct {
	Source     v1alpha1.PolicyReference
	Generation int64
}

// A PolicyTally is what is known of a policy.
type PolicyTally struct {
	Source v1alpha1.PolicyReference
	Status v1alpha1.ShadowStatus
}

// A Book counts for all policies. The zero value is not ready; see New.
type Book struct {
	by  string
	now func() time.Time

	mu       sync.Mutex
	subjects map[*policy.Policy]ShadowedPolicy
	pages    map[ShadowedPolicy]*policyTally
}

type policyTally struct {
	since, until time.Time
	rules        map[string]*ruleTally
	changed      bool // since it was told
	found        bool // a violation, or an error, since then
	told         time.Time
}

type ruleTally struct {
	v1alpha1.ShadowRule
	kept map[interp.Status][]v1alpha1.ShadowRequest
}

// New makes a book of a process, which is named by.
func New(by string, now func() time.Time) *Book {
	return &Book{by: by, now: now, pages: map[ShadowedPolicy]*policyTally{}}
}

// Follow says which policies are in shadow from now on, as the webhook has them.
func (b *Book) Follow(subjects map[*policy.Policy]ShadowedPolicy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subjects = maps.Clone(subjects)
	followed := map[ShadowedPolicy]bool{}
	for _, subject := range subjects {
		followed[subject] = true
	}
	maps.DeleteFunc(b.pages, func(known ShadowedPolicy, _ *policyTally) bool { return !followed[known] })
}

// Note counts a record of a policy in shadow, and passes others over.
func (b *Book) Note(r webhook.Record) {
	if !r.Shadow || r.Request.DryRun {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	subject, ok := b.subjects[r.Of]
	if !ok {
		return // it has just changed
	}
	p := b.pages[subject]
	if p == nil {
		p = &policyTally{since: b.now(), rules: map[string]*ruleTally{}}
		b.pages[subject] = p
	}
	t := p.rules[r.Rule]
	if t == nil && len(p.rules) == maxRules {
		return
	}
	if t == nil {
		t = &ruleTally{ShadowRule: v1alpha1.ShadowRule{Rule: r.Rule}, kept: map[interp.Status][]v1alpha1.ShadowRequest{}}
		p.rules[r.Rule] = t
	}
	p.until, p.changed = b.now(), true
	p.found = p.found || r.Status == interp.Fail || r.Status == interp.Error
	t.count(r, p.until)
}

func (t *ruleTally) count(r webhook.Record, at time.Time) {
	status := r.Status
	switch status {
	case interp.Fail:
		t.Violated++
	case interp.Error:
		t.Failed++
	default:
		status = interp.Pass
		t.Passed++
	}
	one := v1alpha1.ShadowRequest{
		At: metav1.NewTime(at.UTC().Truncate(time.Second)), Operation: r.Request.Operation, Object: r.Request.Resource,
		UID: types.UID(r.Request.Object), Verdict: string(status), Message: MessageOf(r),
	}
	t.kept[status] = append(t.kept[status], one)
	if n := len(t.kept[status]) - maxRequests; n > 0 {
		t.kept[status] = slices.Delete(t.kept[status], 0, n)
	}
}

// MessageOf is what a record says: short, and nothing of what a Secret holds.
func MessageOf(r webhook.Record) string {
	if strings.HasPrefix(r.Request.Resource, "Secret/") {
		return ""
	}
	if len(r.Message) <= maxMessage {
		return r.Message
	}
	return strings.ToValidUTF8(r.Message[:maxMessage], "") + "…"
}

// How long a page is not told again, once it was: one on which something was found, and one on
// which there are more requests of which nothing was.
const (
	foundEvery  = time.Minute
	passedEvery = 10 * time.Minute
)

// isDue tells that a page is to be told.
func (p *policyTally) isDue(now time.Time) bool {
	wait := passedEvery
	if p.found {
		wait = foundEvery
	}
	return p.changed && (p.told.IsZero() || now.Sub(p.told) >= wait)
}

// News are the pages that have changed and were not told for a while, by name.
func (b *Book) News() []PolicyTally {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []PolicyTally
	now := b.now()
	for subject, p := range b.pages {
		if p.isDue(now) {
			out = append(out, PolicyTally{subject.Source, p.status(b.by, subject.Generation)})
			p.changed, p.found, p.told = false, false, now
		}
	}
	slices.SortFunc(out, func(x, y PolicyTally) int {
		return cmp.Or(cmp.Compare(x.Source.Group, y.Source.Group), cmp.Compare(x.Source.Kind, y.Source.Kind),
			cmp.Compare(x.Source.Namespace, y.Source.Namespace), cmp.Compare(x.Source.Name, y.Source.Name))
	})
	return out
}

// Again has a page told once more, which could not be written.
func (b *Book) Again(source v1alpha1.PolicyReference) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for subject, p := range b.pages {
		if subject.Source == source {
			p.changed, p.told = true, time.Time{}
		}
	}
}

// counted is the metric of what is on the pages.
const counted = "kvap_shadow_verdicts_total"

// Describe implements prometheus.Collector.
func (b *Book) Describe(to chan<- *prometheus.Desc) { to <- verdictsDesc() }

// Collect implements prometheus.Collector. A policy that is not in shadow any more has no counter.
func (b *Book) Collect(to chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for subject, p := range b.pages {
		for name, t := range p.rules {
			for verdict, n := range map[interp.Status]int64{interp.Pass: t.Passed, interp.Fail: t.Violated, interp.Error: t.Failed} {
				to <- prometheus.MustNewConstMetric(verdictsDesc(), prometheus.CounterValue, float64(n),
					subject.Source.Group, subject.Source.Kind, subject.Source.Namespace, subject.Source.Name, name, string(verdict))
			}
		}
	}
}

func verdictsDesc() *prometheus.Desc {
	return prometheus.NewDesc(counted, "What the webhook said in shadow of requests, by policy, rule and verdict (pass, fail or error), since it has this version of the policy.",
		[]string{"group", "kind", "policy_namespace", "policy", "rule", "verdict"}, nil)
}

func (p *policyTally) status(by string, generation int64) v1alpha1.ShadowStatus {
	second := func(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
	out := v1alpha1.ShadowStatus{By: by, Generation: generation, Since: second(p.since), Until: second(p.until)}
	for _, name := range slices.Sorted(maps.Keys(p.rules)) {
		t := p.rules[name]
		rule := t.ShadowRule
		for _, status := range []interp.Status{interp.Fail, interp.Error, interp.Pass} {
			rule.Requests = append(rule.Requests, t.kept[status]...)
		}
		out.Rules = append(out.Rules, rule)
	}
	return out
}
