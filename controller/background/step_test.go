package background

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
)

// drain does what is in the queue, and what that adds, as far as it is due.
func (b *bench) drain() {
	b.t.Helper()
	for range 100 {
		if b.queue.Len() == 0 {
			return
		}
		t, _ := b.queue.Get()
		t.do(b.t.Context(), b.Worker)
		b.queue.Done(t)
	}
	b.t.Fatal("the work has no end")
}

// seen tells the worker of an object as a watch does.
func (b *bench) seen(object map[string]any, sources, gone bool) {
	at := referenceOf(object)
	b.ObjectChanged(ObjectChange{
		Of: Watched{KindReference: v1alpha1.KindReference{APIVersion: at.APIVersion, Kind: at.Kind}, Sources: sources}, Object: at,
		Version: metaText(object, "resourceVersion"), Labels: labelsOf(object), Gone: gone,
	})
}

const copies = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: copies}
spec:
  generateExisting: true
  rules:
  - name: secret
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate: {apiVersion: v1, kind: Secret, name: s, namespace: "{{ request.object.metadata.name }}", synchronize: true, orphanDownstreamOnPolicyDelete: false, clone: {namespace: default, name: s}}
`

const source = `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default, uid: src}, data: {a: b25l}}`

// existing is a bench whose rules have generated for what is there.
func existing(t *testing.T, policies string, objects ...string) *bench {
	t.Helper()
	b := start(t, policies, objects...)
	b.options.Kinds = func(_, _, kind string) []v1alpha1.KindReference {
		return []v1alpha1.KindReference{{APIVersion: "v1", Kind: kind}}
	}
	b.begin()
	b.drain()
	return b
}

// Objects of a kind that the cluster serves only later are looked at when it does, and
// others not again.
func TestKindComesLater(t *testing.T) {
	b := start(t, copies, shop, source)
	var kinds []v1alpha1.KindReference
	b.options.Kinds = func(_, _, _ string) []v1alpha1.KindReference { return kinds }
	set := setOf(t, copies)
	b.Set(set)
	b.begin()
	b.drain()
	if len(b.cluster.log) != 0 {
		t.Fatal(b.cluster.log)
	}
	kinds = []v1alpha1.KindReference{{APIVersion: "v1", Kind: "Namespace"}}
	b.Set(set)
	b.drain()
	if b.stored("v1", "Secret", "shop", "s") == nil {
		t.Errorf("what was there is left alone: %v, told %v", b.cluster.log, b.told)
	}
	again := func(set PolicySet, served ...v1alpha1.KindReference) bool {
		delete(b.cluster.objects, b.cluster.key("v1", "Secret", "shop", "s"))
		kinds = served
		b.Set(set)
		b.drain()
		return b.stored("v1", "Secret", "shop", "s") != nil
	}
	if again(set, kinds...) {
		t.Error("everything was looked at though nothing has changed")
	}
	if again(set) {
		t.Error("everything was looked at for a kind that has gone")
	}
	if !again(set, v1alpha1.KindReference{APIVersion: "v1", Kind: "Namespace"}) {
		t.Error("what was there is left alone when the kind comes again")
	}
	if !again(setOf(t, copies), kinds...) {
		t.Error("what was there is left alone when the policy is another one")
	}
}

// A copy is made for what is there, is made again when somebody changes or removes
// it, follows its source and goes with it.
func TestCopyInStep(t *testing.T) {
	b := existing(t, copies, shop, source)
	made := b.stored("v1", "Secret", "shop", "s")
	if made == nil || labelsOf(b.stored("v1", "Secret", "default", "s"))["generate.kyverno.io/clone-source"] != "" {
		t.Fatalf("%v", b.cluster.log)
	}
	writes := len(b.cluster.log)
	b.seen(made, false, false)
	b.drain()
	if len(b.cluster.log) != writes {
		t.Errorf("what was written here is answered: %v", b.cluster.log[writes:])
	}

	changed := maps.Clone(made)
	changed["data"] = map[string]any{"a": "eA=="}
	b.cluster.store(changed)
	b.seen(b.stored("v1", "Secret", "shop", "s"), false, false)
	b.drain()
	if got := b.stored("v1", "Secret", "shop", "s")["data"].(map[string]any)["a"]; got != "b25l" {
		t.Errorf("changed by somebody: %v", got)
	}

	next := object(t, strings.Replace(source, "b25l", "dHdv", 1))
	next["metadata"].(map[string]any)["labels"] = map[string]any{"generate.kyverno.io/clone-source": ""}
	b.cluster.store(next)
	b.seen(b.stored("v1", "Secret", "default", "s"), true, false)
	b.drain()
	if got := b.stored("v1", "Secret", "shop", "s")["data"].(map[string]any)["a"]; got != "dHdv" {
		t.Errorf("the source has changed: %v", got)
	}

	gone := b.stored("v1", "Secret", "default", "s")
	delete(b.cluster.objects, b.cluster.keyOf(gone))
	b.seen(gone, true, true)
	b.drain()
	if b.stored("v1", "Secret", "shop", "s") != nil {
		t.Errorf("the source is gone: %v", b.cluster.log)
	}
}

// A copy that is being made while its source goes does not stay, whether the source goes
// before it is labelled or before the copy is written. That it goes is heard of before the
// copy is there to be removed.
func TestSourceGoesMeanwhile(t *testing.T) {
	for _, before := range []string{"label", "write"} {
		t.Run(before, func(t *testing.T) {
			b := start(t, copies, shop, source)
			b.options.Kinds = func(_, _, kind string) []v1alpha1.KindReference {
				return []v1alpha1.KindReference{{APIVersion: "v1", Kind: kind}}
			}
			goes := func() {
				gone := b.stored("v1", "Secret", "default", "s")
				delete(b.cluster.objects, b.cluster.keyOf(gone))
				sourceTask{ruleID{"kyverno.io/ClusterPolicy//copies", "secret"}, referenceOf(gone)}.do(t.Context(), b.Worker)
			}
			if before == "label" {
				b.cluster.beforeLabel = goes
			} else {
				b.cluster.meanwhile = goes
			}
			b.begin()
			b.drain()
			if b.stored("v1", "Secret", "shop", "s") != nil {
				t.Errorf("the copy of a source that is gone stays: %v", b.cluster.log)
			}
		})
	}
}

// What bears labels of a rule that would not make it is left alone.
func TestForged(t *testing.T) {
	b := existing(t, copies, shop, source)
	forged := maps.Clone(b.stored("v1", "Secret", "shop", "s"))
	forged["metadata"] = map[string]any{"name": "other", "namespace": "shop", "labels": forged["metadata"].(map[string]any)["labels"]}
	b.cluster.store(forged)
	writes := len(b.cluster.log)
	b.seen(b.stored("v1", "Secret", "shop", "other"), false, false)
	b.drain()
	if len(b.cluster.log) != writes {
		t.Errorf("%v", b.cluster.log[writes:])
	}
}

// Labels that name a trigger of a kind that the rule is not about start nothing, for
// everybody may write them.
func TestForgedTrigger(t *testing.T) {
	b := existing(t, copies, shop, source)
	for kind, starts := range map[string]bool{"Namespace": true, "Secret": false, "Nonsense": false} {
		forged := object(t, mustJSON(t, b.stored("v1", "Secret", "shop", "s")))
		meta := forged["metadata"].(map[string]any)
		meta["name"], meta["resourceVersion"] = "other", "0"
		meta["labels"].(map[string]any)["generate.kyverno.io/trigger-kind"] = kind
		b.seen(forged, false, false)
		if started := b.queue.Len() > 0; started != starts {
			t.Errorf("a trigger of the kind %s: %t", kind, started)
		}
		b.drain()
	}
}

// Who changes an object again and again is answered later and later.
func TestPace(t *testing.T) {
	b := start(t, settings)
	work := triggerTask{ruleID: ruleID{"p", "r"}}
	var waits []time.Duration
	for range 6 {
		waits = append(waits, b.backoff.wait(work))
		b.backoff.repaired(work)
	}
	if want := []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second}; !slices.Equal(waits, want) {
		t.Errorf("waits %v", waits)
	}
	b.now = b.now.Add(time.Hour)
	if got := b.backoff.wait(work); got != 0 {
		t.Errorf("long after: %v", got)
	}
}

const plainCopies = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: copies}
spec: {rules: [{name: other, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: x, pattern: {metadata: {name: "?*"}}}}]}
`

// What a rule has made goes with the rule, by way of a request that outlives the
// process, and stays where the rule says so, or where it is only not enforced any more.
func TestRuleGone(t *testing.T) {
	for _, tt := range []struct {
		name, policy string
		inCluster    string
		stays        bool
	}{
		{"the policy is deleted", copies, "", false},
		{"the rule is taken out", copies, plainCopies, false},
		{"the policy is turned off", copies, copies, true},
		{"orphaned", strings.Replace(copies, "Delete: false", "Delete: true", 1), "", true},
		{"a copy, and the rule says nothing", strings.Replace(copies, "orphanDownstreamOnPolicyDelete: false, ", "", 1), "", true},
		{"a copy of a list, and the rule says nothing", strings.NewReplacer(
			"orphanDownstreamOnPolicyDelete: false, ", "", "apiVersion: v1, kind: Secret, name: s,", "", "clone: {namespace: default, name: s}", "cloneList: {namespace: default, kinds: [v1/Secret]}",
		).Replace(copies), "", true},
		{"made of data, and the rule says nothing", strings.NewReplacer(
			"orphanDownstreamOnPolicyDelete: false, ", "", "clone: {namespace: default, name: s}", "data: {data: {a: b25l}}",
		).Replace(copies), "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := existing(t, tt.policy, shop, source)
			if tt.inCluster != "" {
				b.cluster.store(object(t, tt.inCluster))
			}
			b.Set(PolicySet{})
			b.drain()
			b.finish()
			if stays := b.stored("v1", "Secret", "shop", "s") != nil; stays != tt.stays || len(b.requests) != 0 {
				t.Errorf("stays: %t; requests %v", stays, b.requests)
			}
		})
	}
}

// What is there triggers nothing in namespaces that are left out, nor does a namespace
// that is.
func TestLeftOut(t *testing.T) {
	b := start(t, copies, shop, source, `{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: u2}}`)
	b.options.Kinds = func(_, _, kind string) []v1alpha1.KindReference {
		return []v1alpha1.KindReference{{APIVersion: "v1", Kind: kind}}
	}
	set := setOf(t, copies)
	set.ExcludeNamespaces = []string{"kube-system"}
	b.Set(set)
	b.begin()
	b.drain()
	if b.stored("v1", "Secret", "kube-system", "s") != nil || b.stored("v1", "Secret", "shop", "s") == nil {
		t.Error(b.cluster.log)
	}
}

// What a rule has made does not trigger it, however often everything is looked at.
func TestOwnTrigger(t *testing.T) {
	b := existing(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: again}
spec:
  generateExisting: true
  rules:
  - name: more
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate: {apiVersion: v1, kind: ConfigMap, name: "{{ request.object.metadata.name }}-more", namespace: shop, data: {}}
`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u}}`)
	b.begin()
	b.drain()
	if want := []string{"create ConfigMap shop/c-more"}; !slices.Equal(b.cluster.log, want) {
		t.Error(b.cluster.log)
	}
}

// What a policy has made stays where one of its name in another group has the rule:
// the labels are the same, and the one that was adopted goes on.
func TestAdopted(t *testing.T) {
	adopted := strings.Replace(copies, "kyverno.io/v1", "kvap.dev/v1alpha1", 1)
	for _, early := range []bool{true, false} { // before the policy is gone, or before its objects are
		b := existing(t, copies, shop, source)
		if early {
			b.cluster.store(object(t, adopted))
		}
		b.Set(PolicySet{})
		b.drain()
		b.cluster.store(object(t, adopted))
		for name := range b.requests {
			b.doRequest(t.Context(), name)
		}
		if b.stored("v1", "Secret", "shop", "s") == nil || len(b.requests) != 0 {
			t.Errorf("early %t: %v, requests %v", early, b.cluster.log, b.requests)
		}
	}
}

// Rules that need a request look after nothing without one.
func TestNeedsRequest(t *testing.T) {
	listed := strings.Replace(copies, "kinds: [Namespace]", "kinds: [Namespace], operations: [CREATE]", 1)
	for _, policies := range []string{settings, listed, strings.Replace(copies, "resources:", "subjects: [{kind: User, name: alice}], resources:", 1)} {
		b := existing(t, policies, shop, source)
		if len(b.cluster.log) != 0 || len(b.told) != 0 {
			t.Errorf("%v, told %v", b.cluster.log, b.told)
		}
	}
}

// A policy of a namespace generates nothing elsewhere.
func TestNamespaced(t *testing.T) {
	b := start(t, `
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: own, namespace: shop}
spec:
  rules:
  - name: out
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate: {apiVersion: v1, kind: Secret, name: s, namespace: shop, data: {}}
`)
	for _, p := range b.current.Load().policies { // as a variable would have it
		p.Rules[0].Generate.Namespace.Value = "{{ request.object.data.to }}"
	}
	trigger := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u}, data: {to: default}}`)
	b.cluster.store(trigger)
	name := b.asked("CREATE", trigger, nil)[0]
	if again := b.doRequest(t.Context(), name); again == 0 || len(b.cluster.log) != 0 || !strings.Contains(b.requests[name].Status.Message, "cannot generate into the namespace") {
		t.Errorf("%v %+v", b.cluster.log, b.requests[name].Status)
	}
}

// Server-side apply is for policies that ask for it.
func TestApply(t *testing.T) {
	b := existing(t, strings.Replace(copies, "generateExisting: true", "generateExisting: true\n  useServerSideApply: true", 1), shop, source)
	if !slices.Contains(b.cluster.log, "apply Secret shop/s") {
		t.Errorf("%v", b.cluster.log)
	}
}

// What is kept of a request: no data of Secrets, no new object, and not too much.
func TestCapture(t *testing.T) {
	b := start(t, strings.Replace(settings, "kinds: [Namespace], selector: {matchLabels: {team: \"*\"}}", "kinds: [Secret]", 1))
	secret := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop, uid: u, annotations: {kubectl.kubernetes.io/last-applied-configuration: "c2VjcmV0"}}, data: {a: c2VjcmV0}}`)
	names := b.asked("UPDATE", secret, secret)
	text := mustJSON(t, b.requests[names[0]])
	if strings.Contains(text, "c2VjcmV0") || strings.Contains(text, `"object":`) || !strings.Contains(text, `"oldObject":`) {
		t.Errorf("%s", text)
	}
	if secret["data"] == nil || metaText(secret, "uid") != "u" {
		t.Error("the request was changed")
	}
	big := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: s, namespace: shop, uid: u}}`)
	big["data"] = map[string]any{"a": strings.Repeat("x", maxCaptured)}
	_, err := Capture(Trigger{Type: v1alpha1.GenerateObjects, Object: big, Request: requestWith(big)})
	if err == nil {
		t.Error("a request without bounds is kept")
	}
}
