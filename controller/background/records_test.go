package background

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
)

// taken is a worker that takes over from another one, in the same cluster.
func (b *bench) taken(t *testing.T, policies string) *bench {
	t.Helper()
	next := start(t, policies)
	next.cluster, next.options.Cluster = b.cluster, b.cluster
	next.requests, next.options.Requests = b.requests, b.requests
	next.options.Records, next.options.Kinds = b.options.Records, b.options.Kinds
	return next
}

// finish carries out what was asked for.
func (b *bench) finish() {
	b.t.Helper()
	for name := range b.requests {
		if again := b.doRequest(b.t.Context(), name); again != 0 {
			b.t.Errorf("again after %v: %+v", again, b.requests[name].Status)
		}
	}
}

// What a policy has made that is deleted while nobody works goes when somebody does
// again, unless the policy said that it is to stay.
func TestDeletedUnseen(t *testing.T) {
	for _, orphan := range []bool{false, true} {
		text := copies
		if orphan {
			text = strings.Replace(text, "Delete: false", "Delete: true", 1)
		}
		b := existing(t, text, shop, source)
		next := b.taken(t, plainCopies)
		next.begin()
		next.drain()
		next.finish()
		if stays := next.stored("v1", "Secret", "shop", "s") != nil; stays != orphan {
			t.Errorf("orphan %t: %v", orphan, next.cluster.log)
		}
	}
}

// Who has followed for long knows no more than who begins: what was done about a policy
// that was deleted long ago is not done again, when one of its name, which nobody serves
// here, has made objects since.
func TestFollower(t *testing.T) {
	b := existing(t, copies, shop, source)
	follower := b.taken(t, copies)
	for _, one := range []*bench{b, follower} {
		one.Set(PolicySet{})
	}
	b.drain()
	b.finish()
	if b.stored("v1", "Secret", "shop", "s") != nil {
		t.Fatal(b.cluster.log)
	}
	other := existing(t, copies, shop, source) // somebody else's, with the same labels
	b.cluster.store(other.stored("v1", "Secret", "shop", "s"))
	follower.begin()
	follower.drain()
	follower.finish()
	if b.stored("v1", "Secret", "shop", "s") == nil || len(b.requests) != 0 {
		t.Errorf("%v, requests %v", b.cluster.log, b.requests)
	}
}

// elsewhere is the policy that makes another object.
func elsewhere() string {
	return strings.Replace(copies, "kind: Secret, name: s", "kind: Secret, name: t", 1)
}

// A process that has followed a change of what a rule makes does not let go of what the
// rule has made since, when it is elected.
func TestFollowerOfMove(t *testing.T) {
	b := existing(t, copies, shop, source)
	follower := b.taken(t, copies)
	for _, one := range []*bench{b, follower} {
		one.Set(setOf(t, elsewhere()))
	}
	b.drain()
	follower.begin()
	follower.drain()
	if now := labelsOf(b.stored("v1", "Secret", "shop", "t")); now["generate.kyverno.io/policy-name"] == "" {
		t.Errorf("labels %v; %v", now, b.cluster.log)
	}
}

// A process that takes over lets go of what a rule made that was changed meanwhile.
func TestMovedUnseen(t *testing.T) {
	b := existing(t, copies, shop, source)
	next := b.taken(t, elsewhere())
	next.begin()
	next.drain()
	if _, labelled := labelsOf(b.stored("v1", "Secret", "shop", "s"))["generate.kyverno.io/policy-name"]; labelled || b.stored("v1", "Secret", "shop", "t") == nil {
		t.Errorf("%v", b.cluster.log)
	}
}

// What cannot be let go of is tried again, and the rule makes nothing before: what it
// makes keeps its labels. For want of a permission it does not wait.
func TestReleaseFails(t *testing.T) {
	for _, err := range []error{errors.New("the store is away"), apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", nil)} {
		b := existing(t, copies, shop, source)
		b.cluster.refuse["label Secret"] = err
		b.Set(setOf(t, elsewhere()))
		b.drain()
		if made := b.stored("v1", "Secret", "shop", "t") != nil; made != apierrors.IsForbidden(err) || len(b.told) == 0 {
			t.Errorf("%v: made %t, told %v", err, made, b.told)
		}
		delete(b.cluster.refuse, "label Secret")
		recordsTask{}.do(t.Context(), b.Worker)
		b.begin()
		b.drain()
		was, now := labelsOf(b.stored("v1", "Secret", "shop", "s")), labelsOf(b.stored("v1", "Secret", "shop", "t"))
		if now["generate.kyverno.io/policy-name"] == "" || (was["generate.kyverno.io/policy-name"] == "") == apierrors.IsForbidden(err) {
			t.Errorf("%v: was %v, now %v", err, was, now)
		}
	}
}

// A process that takes over, and can neither let go of what a rule made nor write that down,
// does both when it can.
func TestReleaseFailsUnwritten(t *testing.T) {
	b := existing(t, copies, shop, source)
	next := b.taken(t, elsewhere()+"---"+strings.Replace(copies, "name: copies", "name: others", 1))
	kept := next.options.Records
	all, err := kept.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next.options.Records = &brokenLedger{memoryStore{all: all}}
	next.cluster.refuse["label Secret"] = errors.New("the store is away")
	next.begin()
	next.drain()
	next.options.Records = kept
	delete(next.cluster.refuse, "label Secret")
	recordsTask{}.do(t.Context(), next.Worker)
	if _, labelled := labelsOf(next.stored("v1", "Secret", "shop", "s"))["generate.kyverno.io/policy-name"]; labelled {
		t.Errorf("%v", next.cluster.log)
	}
}

// brokenLedger cannot be written to.
type brokenLedger struct{ memoryStore }

func (*brokenLedger) Save(context.Context, []RuleRecord) error { return errors.New("it is full") }

// Nothing is made that is not written down, and that is told.
func TestNotWrittenDown(t *testing.T) {
	b := start(t, copies, shop, source)
	b.options.Records, b.options.Kinds = &brokenLedger{}, func(_, _, kind string) []v1alpha1.KindReference {
		return []v1alpha1.KindReference{{APIVersion: "v1", Kind: kind}}
	}
	b.begin()
	b.drain()
	if len(b.cluster.log) != 0 || len(b.told) != 1 || !strings.Contains(b.told[0].Note, "it is full") {
		t.Errorf("%v, told %v", b.cluster.log, b.told)
	}
	if waits := b.Waits(); len(waits) != 1 || waits[0].Policy.Name != "copies" || !strings.Contains(waits[0].Message, "it is full") {
		t.Errorf("waits %+v", waits)
	}
	b.options.Records = &memoryStore{}
	b.drain()
	recordsTask{}.do(t.Context(), b.Worker)
	if b.Waits() != nil {
		t.Errorf("waits %+v", b.Waits())
	}
}

// A rule that makes another object lets go of what it made before.
func TestMoved(t *testing.T) {
	b := existing(t, copies, shop, source)
	b.Set(setOf(t, strings.Replace(copies, "kind: Secret, name: s", "kind: Secret, name: t", 1)))
	b.drain()
	was, now := b.stored("v1", "Secret", "shop", "s"), b.stored("v1", "Secret", "shop", "t")
	if was == nil || now == nil {
		t.Fatalf("%v", b.cluster.log)
	}
	if _, labelled := labelsOf(was)["generate.kyverno.io/policy-name"]; labelled {
		t.Errorf("labels %v", labelsOf(was))
	}
}

// A rule that is given another name keeps what it has made, and looks after it.
func TestRenamed(t *testing.T) {
	b := existing(t, copies, shop, source)
	renamed := strings.NewReplacer("- name: secret", "- name: registry", "generateExisting: true", "generateExisting: false").Replace(copies)
	b.cluster.store(object(t, renamed))
	b.Set(setOf(t, renamed))
	b.drain()
	b.finish()
	made := b.stored("v1", "Secret", "shop", "s")
	if labelsOf(made)["generate.kyverno.io/rule-name"] != "registry" || labelsOf(made)["generate.kyverno.io/policy-name"] != "copies" {
		t.Fatalf("%v; %v", made, b.cluster.log)
	}
	delete(b.cluster.objects, b.cluster.keyOf(made))
	b.seen(made, false, true)
	b.drain()
	if b.stored("v1", "Secret", "shop", "s") == nil {
		t.Errorf("it is not looked after: %v", b.cluster.log)
	}
}

// A rule that is about other objects leaves what it has made alone, and says so once.
func TestAboutOthers(t *testing.T) {
	b := existing(t, copies, shop, source)
	other := strings.Replace(copies, "kinds: [Namespace]", "kinds: [Namespace], names: [other]", 1)
	for range 2 {
		b.Set(setOf(t, other))
		b.drain()
	}
	if made := b.stored("v1", "Secret", "shop", "s"); made == nil || len(b.told) != 1 || b.told[0].Reason != "RuleChanged" {
		t.Errorf("%v, told %v", b.cluster.log, b.told)
	}
}

// What is still being made when its rule goes is not left: its removal waits.
func TestRemovalWaits(t *testing.T) {
	b := existing(t, copies, shop, source)
	made := b.stored("v1", "Secret", "shop", "s")
	name := ""
	if _, ok := b.inTurn(what("kyverno.io/ClusterPolicy//copies", "secret", referenceOf(object(t, shop))), func() workResult {
		b.Set(PolicySet{})
		b.drain()
		for name = range b.requests {
			if again := b.doRequest(t.Context(), name); again == 0 || b.requests[name] == nil {
				t.Errorf("again after %v: %v", again, b.cluster.log)
			}
		}
		b.cluster.store(made)
		return workResult{}
	}); !ok || name == "" {
		t.Fatal("no removal")
	}
	b.finish()
	if b.stored("v1", "Secret", "shop", "s") != nil || len(b.requests) > 0 || len(b.told) > 0 {
		t.Errorf("%v, told %v", b.cluster.log, b.told)
	}
}

// outdated is a store that somebody else writes to.
type outdated struct {
	memoryStore
	is bool
}

func (o *outdated) Load(ctx context.Context) ([]RuleRecord, error) {
	o.is = false
	return o.memoryStore.Load(ctx)
}

func (o *outdated) Save(ctx context.Context, all []RuleRecord) error {
	if o.is {
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "kvap-generated", nil)
	}
	return o.memoryStore.Save(ctx, all)
}

// What somebody else has written down is read before this process writes again, and is
// done: what a rule has left that only the other knew goes.
func TestRecordsOfSomebodyElse(t *testing.T) {
	b := start(t, copies, shop, source)
	store := &outdated{}
	b.options.Records = store
	b.begin()
	if err := b.doRecords(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := RuleRecord{Policy: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "gone"}, Rule: "r", Kinds: []v1alpha1.KindReference{{APIVersion: "v1", Kind: "Secret"}}, Goes: true}
	store.all, store.is = append(store.all, other), true
	b.Set(setOf(t, elsewhere()))
	if err := b.doRecords(t.Context()); !apierrors.IsConflict(err) {
		t.Fatalf("got %v", err)
	}
	if err := b.doRecords(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(b.requests) != 1 {
		t.Errorf("%d requests that remove what the other rule has left", len(b.requests))
	}
}
