package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// wanting is a Fallback that wants these configurations.
type wanting struct {
	NoFallback
	Configurations
	probe func(string) Configurations
}

func (w wanting) Serve(context.Context, Remaining) (Serving, error) {
	return Serving{Configurations: []Configurations{w.Configurations}, Probe: w.probe}, nil
}

// probes are configurations that ask about Params of a name.
func probes(name string) Configurations {
	meta := metav1.ObjectMeta{Name: "kvap-webhook-probe"}
	return Configurations{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: name}}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: name}}},
	}
}

// Both configurations have one name, and each goes when nothing asks for it: the API
// server would go on to ask about rules that nobody serves.
func TestConfigurationsGoAlone(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "kvap-webhook"}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}
	foreign := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	for name, want := range map[string]Configurations{
		"none": {}, "both": {validating, mutating}, "validating": {Validating: validating}, "mutating": {Mutating: mutating},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(foreign.DeepCopy()).Build()
			w := &webhooks{client: c, answering: func(error) {}, corrections: &corrections{}, writer: &writer{client: c, direct: c, tell: func(string) {}}}
			for _, asked := range []Configurations{{validating, mutating}, want} {
				w.fallback = wanting{Configurations: asked}
				if err := w.serve(t.Context(), Remaining{}); err != nil {
					t.Fatal(err)
				}
			}
			there := func(name string, o client.Object) bool {
				return c.Get(t.Context(), client.ObjectKey{Name: name}, o) == nil
			}
			if got := there("kvap-webhook", &admissionregistrationv1.ValidatingWebhookConfiguration{}); got != (want.Validating != nil) {
				t.Errorf("the validating one is there: %t", got)
			}
			if got := there("kvap-webhook", &admissionregistrationv1.MutatingWebhookConfiguration{}); got != (want.Mutating != nil) {
				t.Errorf("the mutating one is there: %t", got)
			}
			if !there("foreign", &admissionregistrationv1.ValidatingWebhookConfiguration{}) {
				t.Error("what is not the controller's is gone")
			}
		})
	}
}

// Nothing may depend on a webhook that API servers were not seen to reach; where it
// does so already, what they ask it may change.
func TestRegisteredOnceReached(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	var unreached error
	w := &webhooks{
		client: c, answering: func(error) {}, corrections: &corrections{}, writer: &writer{client: c, direct: c, tell: func(string) {}},
		reached: func(context.Context, string) error { return unreached },
	}
	configured := func(failure admissionregistrationv1.FailurePolicyType, names ...string) Configurations {
		v := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kvap-webhook"}}
		for _, name := range names {
			v.Webhooks = append(v.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: name, FailurePolicy: &failure})
		}
		return Configurations{Validating: v}
	}
	for i, step := range []struct {
		unreached error
		wanted    Configurations
		want      int // webhooks that are there afterwards
	}{
		{errNotReached, configured(admissionregistrationv1.Fail, "a"), 0},
		{errNotReached, configured(admissionregistrationv1.Ignore, "a"), 1},
		{errNotReached, configured(admissionregistrationv1.Fail, "a", "b"), 1},
		{nil, configured(admissionregistrationv1.Fail, "a", "b"), 2},
		{errNotReached, configured(admissionregistrationv1.Fail, "a", "b", "c"), 3},
	} {
		unreached = step.unreached
		w.fallback = wanting{Configurations: step.wanted, probe: probes}
		err := w.serve(t.Context(), Remaining{})
		have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if got := c.Get(t.Context(), client.ObjectKey{Name: "kvap-webhook"}, have); client.IgnoreNotFound(got) != nil {
			t.Fatal(got)
		}
		if len(have.Webhooks) != step.want || (err == nil) != (len(step.wanted.Validating.Webhooks) == step.want) {
			t.Errorf("step %d: %d webhooks, %v", i, len(have.Webhooks), err)
		}
	}
}

// What judged before goes on until every API server asks by what was written: by the kind
// that was written, and by a name that it was never asked before.
func TestWidenedOnceTakenUp(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	var asked []string
	var deaf error
	w := &webhooks{
		client: c, answering: func(error) {}, corrections: &corrections{}, writer: &writer{client: c, direct: c, tell: func(string) {}}, was: map[string]map[string]bool{},
		reached: func(ctx context.Context, name string) error {
			v := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := c.Get(ctx, client.ObjectKey{Name: "kvap-webhook-probe"}, v); err != nil {
				return err
			}
			if got := v.Webhooks[0].Name; got != name {
				t.Errorf("the probe asks about %s, not %s", got, name)
			}
			asked = append(asked, name)
			return deaf
		},
	}
	validating := func(names ...string) Configurations {
		ignore := admissionregistrationv1.Ignore
		v := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kvap-webhook"}}
		for _, name := range names {
			v.Webhooks = append(v.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: name, FailurePolicy: &ignore})
		}
		return Configurations{Validating: v}
	}
	for i, step := range []struct {
		deaf   error
		wanted Configurations
		asked  int // names that API servers were asked so far
	}{
		{nil, validating("a"), 1},
		{nil, validating("a"), 1},
		{context.DeadlineExceeded, validating("a", "b"), 2},
		{context.DeadlineExceeded, validating("a", "b"), 3},
		{nil, validating("a", "b"), 4},
		{nil, validating("a", "b"), 4},
	} {
		deaf = step.deaf
		w.fallback = wanting{Configurations: step.wanted, probe: probes}
		err := w.widen(t.Context(), Remaining{}, nil, nil)
		if len(asked) != step.asked || errors.Is(err, errNotTakenUp) != (deaf != nil) {
			t.Errorf("step %d: asked %d times, %v", i, len(asked), err)
		}
	}
	if asked[0] == asked[1] || asked[1] != asked[2] || asked[2] != asked[3] {
		t.Errorf("asked about %v", asked)
	}
}

// What was handed over is served until no request can be on its way that went past the
// native policies before that: as long as an API server waits for an answer.
func TestOnTheWay(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	serving := func(rules ...string) Remaining {
		p := RemainingPolicy{Source: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"}, Policy: &policy.Policy{}}
		for _, name := range rules {
			p.Rules = append(p.Rules, &policy.Rule{Name: name})
		}
		return Remaining{Policies: []RemainingPolicy{p}}
	}
	asking := Configurations{Validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "kvap-webhook"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "a", TimeoutSeconds: new(int32(7))}, {Name: "b", TimeoutSeconds: new(int32(3))}},
	}}
	w := &webhooks{client: c, answering: func(error) {}, corrections: &corrections{}, writer: &writer{client: c, direct: c, tell: func(string) {}}, fallback: wanting{Configurations: asking}}
	if err := w.serve(t.Context(), serving("one", "two")); err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct {
		remaining Remaining
		seen      time.Duration
		want      time.Duration
	}{
		{serving("one", "two"), 0, 0},
		{serving("one"), 0, 7 * time.Second},
		{serving("one"), 5 * time.Second, 2 * time.Second},
		{serving("one"), time.Minute, 0},
		{Remaining{}, time.Second, 6 * time.Second},
	} {
		if got := w.onTheWay(at.remaining, at.seen); got != at.want {
			t.Errorf("%d rules, seen for %s: waits %s, not %s", len(at.remaining.Policies), at.seen, got, at.want)
		}
	}
	if err := w.narrow(t.Context(), serving("one")); err != nil {
		t.Fatal(err)
	}
	if got := w.onTheWay(serving("one"), 0); got != 0 {
		t.Errorf("what is let go is waited for: %s", got)
	}
}

// A webhook that leaves every policy out has nothing registered and is there all the
// same: what it says of each is not covered up by a word that there is none.
func TestAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		fallback Fallback
		want     bool
	}{
		"none":            {NoFallback{}, true},
		"leaves all out":  {wanting{}, false},
		"serves some":     {asking{}, false},
		"default of none": {mustDefault(t).Fallback, true},
	} {
		if got := (&webhooks{fallback: c.fallback}).absent(); got != c.want {
			t.Errorf("%s: absent %t", name, got)
		}
	}
}

func mustDefault(t *testing.T) Options {
	t.Helper()
	o, err := Options{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A configuration that has lost its label, or was restored from a backup, is repaired; one that
// was given away, or that somebody else made, is left alone, and its name is told to be taken.
func TestWhoseConfigurations(t *testing.T) {
	const name = "kvap-webhook"
	entries := []admissionregistrationv1.ValidatingWebhook{mustAnswerEntry("a.webhook.kvap.dev", "old")}
	update := func(t *testing.T, c client.Client, change func(*admissionregistrationv1.ValidatingWebhookConfiguration)) {
		t.Helper()
		have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, have); err != nil {
			t.Fatal(err)
		}
		change(have)
		if err := c.Update(t.Context(), have, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	}
	for what, test := range map[string]struct {
		other func(t *testing.T, c client.Client)
		taken bool
	}{
		"without its label": {func(t *testing.T, c client.Client) {
			update(t, c, func(o *admissionregistrationv1.ValidatingWebhookConfiguration) { o.Labels = nil })
		}, false},
		"given away": {func(t *testing.T, c client.Client) {
			update(t, c, func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
				o.Labels["app.kubernetes.io/managed-by"] = "Helm"
			})
		}, true},
		"restored": {func(t *testing.T, c client.Client) {
			remake(t, c, &admissionregistrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ownLabels(nil)}, Webhooks: entries,
			})
		}, false},
		"made by somebody else": {func(t *testing.T, c client.Client) {
			remake(t, c, &admissionregistrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{mustAnswerEntry("a.acme.io", "")},
			})
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
			w := &webhooks{client: c, answering: func(error) {}, corrections: &corrections{}, writer: &writer{client: c, direct: c, tell: func(string) {}}}
			serve := func(bundle string) error {
				w.fallback = wanting{Configurations: Configurations{Validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
					ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{mustAnswerEntry("a.webhook.kvap.dev", bundle)},
				}}}
				return w.serve(t.Context(), Remaining{})
			}
			if err := serve("old"); err != nil {
				t.Fatal(err)
			}
			test.other(t, c)
			taken, err := w.taken(t.Context())
			if err != nil || slices.Contains(taken, name) != test.taken {
				t.Errorf("taken: %v, %v", taken, err)
			}
			err = serve("new")
			have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: name}, have); err != nil {
				t.Fatal(err)
			}
			repaired := string(have.Webhooks[0].ClientConfig.CABundle) == "new" && have.Labels["app.kubernetes.io/managed-by"] == Manager
			if repaired == test.taken || errors.Is(err, errForeign) != test.taken {
				t.Errorf("repaired %t, %v", repaired, err)
			}
		})
	}
}

// remake makes an object anew.
func remake(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Delete(t.Context(), emptyLikeNamed(o)); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), o, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
}

func emptyLikeNamed(o client.Object) client.Object {
	out := emptyLike(o)
	out.SetName(o.GetName())
	return out
}

// While entries move from one configuration to another, or become others, each is in one of
// them all the time.
func TestEntriesMoveWithoutAGap(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	there := func() map[string]bool {
		out := map[string]bool{}
		var list admissionregistrationv1.ValidatingWebhookConfigurationList
		if err := c.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			for name := range sharedFieldsOf(&list.Items[i]) {
				out[name] = true
			}
		}
		return out
	}
	// replaced are entries in place of which one of the others must be there before they go.
	replaced := map[string]string{}
	w := &webhooks{client: c, answering: func(error) {}, corrections: &corrections{}, writer: &writer{client: c, direct: c}}
	w.writer.tell = func(string) { // before each write
		now := there()
		for old, by := range replaced {
			if !now[old] && !now[by] {
				t.Errorf("neither %s nor %s is there", old, by)
			}
		}
	}
	for _, step := range []struct {
		shards   [][]string
		replaced map[string]string
	}{
		{[][]string{{"a", "b"}, {"c", "d"}, {"e"}}, nil},
		{[][]string{{"c", "b"}, {"a", "d"}, {"e"}}, map[string]string{"a": "a", "b": "b", "c": "c", "d": "d", "e": "e"}}, // change places
		{[][]string{{"e"}, {"a", "d"}, {"c2", "b"}}, map[string]string{"a": "a", "b": "b", "c": "c2", "d": "d", "e": "e"}},
	} {
		var serving []Configurations
		for i, names := range step.shards {
			v := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kvap-webhook-" + string(rune('0'+i))}}
			for _, name := range names {
				v.Webhooks = append(v.Webhooks, mustAnswerEntry(name, "x"))
			}
			serving = append(serving, Configurations{Validating: v})
		}
		replaced = step.replaced
		w.fallback = sharded(serving)
		if err := w.serve(t.Context(), Remaining{}); err != nil {
			t.Fatal(err)
		}
		w.writer.tell("")
		for i, names := range step.shards {
			have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(serving[i].Validating), have); err != nil || len(have.Webhooks) != len(names) {
				t.Errorf("%v: %d entries, %v", names, len(have.Webhooks), err)
			}
		}
	}
}

// sharded is a Fallback that wants these configurations.
type sharded []Configurations

func (s sharded) Serve(context.Context, Remaining) (Serving, error) {
	return Serving{Configurations: s}, nil
}

func (sharded) Changed() <-chan struct{} { return nil }
