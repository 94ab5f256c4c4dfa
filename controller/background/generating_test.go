package background

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
)

// quotas makes a ConfigMap of its own and a copy of a Secret in each Namespace with a team.
const quotas = `
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: quotas}
spec:
  evaluation:
    synchronize: {enabled: true}
    generateExisting: {enabled: true}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [namespaces], operations: [CREATE, UPDATE]}]}
  matchConditions: [{name: team, expression: "has(object.metadata.labels) && 'team' in object.metadata.labels"}]
  variables: [{name: ns, expression: object.metadata.name}]
  generate:
  - expression: >-
      generator.Apply(variables.ns, [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "q-" + object.metadata.labels.team}, "data": {"size": "1"}}])
  - expression: generator.Apply(variables.ns, [resource.Get("v1", "secrets", "default", "s")])
`

// generatingFor is a bench whose policies in CEL have been carried out for what is there.
func generatingFor(t *testing.T, policies string, objects ...string) *bench {
	t.Helper()
	b := start(t, policies, objects...)
	b.served()
	b.begin()
	b.drain()
	return b
}

func (b *bench) served() {
	b.options.Resources = func(_, _, resource string) []v1alpha1.KindReference {
		return []v1alpha1.KindReference{{APIVersion: "v1", Kind: map[string]string{"namespaces": "Namespace", "pods": "Pod", "configmaps": "ConfigMap"}[resource]}}
	}
}

func (b *bench) has(t *testing.T, kind, name string, want bool) {
	t.Helper()
	if got := b.stored("v1", kind, "shop", name) != nil; got != want {
		t.Errorf("%s %s is there: %v, want %v; %v", kind, name, got, want, b.cluster.log)
	}
}

// A policy makes its objects for a request, and for what was there before it, and the copy
// knows its source.
func TestGeneratingPolicy(t *testing.T) {
	for _, existing := range []bool{true, false} {
		b := generatingFor(t, quotas, source)
		trigger := object(t, shop)
		if existing {
			b = generatingFor(t, quotas, source, shop)
		} else {
			names := b.asked("CREATE", trigger, nil)
			b.cluster.store(trigger)
			if len(names) != 1 || b.doRequest(t.Context(), names[0]) != 0 {
				t.Fatal(names)
			}
		}
		b.has(t, "ConfigMap", "q-a", true)
		b.has(t, "Secret", "s", true)
		made := labelsOf(b.stored("v1", "Secret", "shop", "s"))
		for key, want := range map[string]string{
			"app.kubernetes.io/managed-by": "kyverno", "generate.kyverno.io/policy-name": "quotas", "generate.kyverno.io/policy-kind": "GeneratingPolicy",
			"generate.kyverno.io/trigger-uid": "u1", "generate.kyverno.io/trigger-name": "shop", "generate.kyverno.io/source-uid": "src",
		} {
			if made[key] != want {
				t.Errorf("%s is %q", key, made[key])
			}
		}
		if labelsOf(b.stored("v1", "Secret", "default", "s"))["generate.kyverno.io/clone-source"] != "" || len(b.told) > 0 {
			t.Errorf("%v", b.told)
		}
		// What it makes was written down before.
		deeds, _ := b.options.Records.Load(t.Context())
		if len(deeds) != 1 || !slices.Equal(deeds[0].Kinds, []v1alpha1.KindReference{{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "v1", Kind: "Secret"}}) {
			t.Errorf("%+v", deeds)
		}
	}
}

// What is made is kept in step: with itself, with its source, and with its trigger.
func TestGeneratingInStep(t *testing.T) {
	for _, tt := range []struct {
		name           string
		change         func(*testing.T, *bench)
		config, secret bool
	}{
		{"removed by somebody", func(t *testing.T, b *bench) {
			gone := b.stored("v1", "ConfigMap", "shop", "q-a")
			delete(b.cluster.objects, b.cluster.keyOf(gone))
			b.seen(gone, false, true)
		}, true, true},
		{"the source is gone", func(t *testing.T, b *bench) {
			gone := b.stored("v1", "Secret", "default", "s")
			delete(b.cluster.objects, b.cluster.keyOf(gone))
			b.seen(gone, true, true)
		}, true, false},
		{"the trigger is another", func(t *testing.T, b *bench) {
			old := b.stored("v1", "Namespace", "", "shop")
			next := object(t, strings.Replace(shop, "team: a", "team: b", 1))
			names := b.asked("UPDATE", next, old)
			b.cluster.store(next)
			if len(names) != 1 || b.doRequest(t.Context(), names[0]) != 0 {
				t.Error(names)
			}
			b.has(t, "ConfigMap", "q-b", true)
		}, false, true},
		{"the trigger is none any more", func(t *testing.T, b *bench) {
			old := b.stored("v1", "Namespace", "", "shop")
			next := object(t, strings.Replace(shop, "team: a", "x: a", 1))
			names := b.asked("UPDATE", next, old)
			b.cluster.store(next)
			if len(names) != 1 || b.doRequest(t.Context(), names[0]) != 0 {
				t.Error(names)
			}
		}, false, false},
		{"the trigger is gone", func(t *testing.T, b *bench) {
			old := b.stored("v1", "Namespace", "", "shop")
			names := b.asked("DELETE", nil, old)
			delete(b.cluster.objects, b.cluster.keyOf(old))
			if len(names) != 1 || b.doRequest(t.Context(), names[0]) != 0 {
				t.Error(names)
			}
		}, false, false},
		{"the policy is another", func(t *testing.T, b *bench) {
			b.Set(setOf(t, strings.Replace(quotas, `"q-"`, `"r-"`, 1)))
			b.drain()
			b.has(t, "ConfigMap", "r-a", true)
		}, false, true},
		{"the policy is about others", func(t *testing.T, b *bench) {
			b.Set(setOf(t, strings.Replace(quotas, `'team' in`, `'boss' in`, 1)))
		}, false, false},
		{"the policy is gone", func(t *testing.T, b *bench) {
			b.Set(PolicySet{})
			b.drain()
			b.finish()
		}, false, true}, // copies stay
		{"the policy is turned off", func(t *testing.T, b *bench) {
			b.cluster.store(object(t, `{apiVersion: policies.kyverno.io/v1, kind: GeneratingPolicy, metadata: {name: quotas, uid: p}}`))
			b.Set(PolicySet{})
			b.drain()
			b.finish()
		}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := generatingFor(t, quotas, source, shop)
			b.has(t, "ConfigMap", "q-a", true)
			tt.change(t, b)
			b.drain()
			b.has(t, "ConfigMap", "q-a", tt.config)
			b.has(t, "Secret", "s", tt.secret)
			if len(b.told) > 0 {
				t.Errorf("%+v", b.told)
			}
		})
	}
}

// What asks for the user is for requests only; what makes an object with a field that is
// called like a variable of patterns is not.
func TestGeneratingAsksUser(t *testing.T) {
	for expression, asks := range map[string]bool{
		`object.metadata.name + string(request.userInfo.username)`:             true,
		`object.metadata.name + string(request[?"userInfo"].orValue(""))`:      true,
		`object.metadata.name + string(request.?userInfo.orValue(""))`:         true,
		`object.metadata.name + {"serviceAccountName": ""}.serviceAccountName`: false,
	} {
		p := setOf(t, strings.Replace(quotas, "expression: object.metadata.name", "expression: '"+expression+"'", 1)).Policies[0]
		if got := preparedRules(p.Policy)[0].needsRequest; got != asks {
			t.Errorf("%s: %v", expression, got)
		}
	}
}

// A copy follows its source.
func TestGeneratingFollowsSource(t *testing.T) {
	b := generatingFor(t, quotas, source, shop)
	b.cluster.store(object(t, strings.Replace(source, "b25l", "dHdv", 1)))
	b.seen(b.stored("v1", "Secret", "default", "s"), true, false)
	b.drain()
	if data := b.stored("v1", "Secret", "shop", "s")["data"].(map[string]any); data["a"] != "dHdv" {
		t.Errorf("%v", data)
	}
}

// Without synchronize, and with the objects of policies that are deleted left, what was made
// stays.
func TestGeneratingStays(t *testing.T) {
	for name, text := range map[string]string{
		"no synchronize": strings.Replace(quotas, "synchronize: {enabled: true}", "synchronize: {enabled: false}", 1),
		"orphan":         strings.Replace(quotas, "    generateExisting", "    orphanDownstreamOnPolicyDelete: {enabled: true}\n    generateExisting", 1),
	} {
		b := generatingFor(t, text, source, shop)
		b.has(t, "ConfigMap", "q-a", true)
		b.Set(PolicySet{})
		b.drain()
		b.finish()
		if b.stored("v1", "ConfigMap", "shop", "q-a") == nil {
			t.Errorf("%s: %v", name, b.cluster.log)
		}
	}
}

// Whoever takes over knows of what kinds objects were made, and removes what is left by a
// policy that was deleted meanwhile.
func TestGeneratingTakenOver(t *testing.T) {
	b := generatingFor(t, quotas, source, shop)
	next := b.taken(t, strings.Replace(quotas, "name: quotas", "name: others", 1))
	next.served()
	next.begin()
	next.drain()
	next.finish()
	next.has(t, "Secret", "s", true)
	for key, made := range next.cluster.objects {
		if labelsOf(made)["generate.kyverno.io/policy-name"] == "quotas" && !strings.Contains(key, "Secret") {
			t.Errorf("%s is left", key)
		}
	}
}

// What somebody else has made is left alone, and what cannot be written down is not made.
func TestGeneratingRefused(t *testing.T) {
	b := generatingFor(t, quotas, source, shop, `{apiVersion: v1, kind: ConfigMap, metadata: {name: q-a, namespace: shop}, data: {size: "9"}}`)
	if data := b.stored("v1", "ConfigMap", "shop", "q-a")["data"].(map[string]any); data["size"] != "9" {
		t.Errorf("somebody else's is %v", data)
	}
	b = start(t, quotas, source, shop)
	b.served()
	b.options.Records = &full{}
	b.begin()
	b.drain()
	b.has(t, "ConfigMap", "q-a", false)
	if len(b.told) == 0 {
		t.Error("nobody was told")
	}
}

// A full ledger takes what is there first, and no more.
type full struct{ memoryStore }

func (f *full) Save(ctx context.Context, all []RuleRecord) error {
	if len(all) > 0 && len(all[0].Kinds) > 0 {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "kvap-generated", nil)
	}
	return f.memoryStore.Save(ctx, all)
}

// A policy of a namespace writes nothing elsewhere, and nothing of elsewhere triggers it.
func TestGeneratingOfNamespace(t *testing.T) {
	const text = `
apiVersion: policies.kyverno.io/v1
kind: NamespacedGeneratingPolicy
metadata: {name: p, namespace: shop}
spec:
  evaluation: {synchronize: {enabled: true}, generateExisting: {enabled: true}}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  generate:
  - expression: 'generator.Apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": object.metadata.name, "namespace": "other"}}])'
`
	pod := func(namespace string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: ` + namespace + `, uid: ` + namespace + `}}`
	}
	b := generatingFor(t, text, pod("shop"), pod("other"))
	b.has(t, "ConfigMap", "web", true)
	if !slices.Equal(b.cluster.log, []string{"create ConfigMap shop/web"}) {
		t.Errorf("%v", b.cluster.log)
	}
	if names := b.asked("CREATE", object(t, pod("other")), nil); len(names) > 0 {
		t.Errorf("another namespace starts %v", names)
	}
	old := b.stored("v1", "Pod", "shop", "web")
	names := b.asked("DELETE", nil, old)
	delete(b.cluster.objects, b.cluster.keyOf(old))
	if len(names) != 1 || b.doRequest(t.Context(), names[0]) != 0 {
		t.Fatal(names)
	}
	b.has(t, "ConfigMap", "web", false)
}
