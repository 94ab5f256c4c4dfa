package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/controlplane"
)

// Kyverno's own definitions, given by --crds, serve other versions than a stand-in: of a
// kind that has both, dev would wait for versions that nobody serves.
func TestStandInsFillGapsOnly(t *testing.T) {
	const name = "cleanuppolicies.kyverno.io"
	given := controlplane.StandIn(schema.GroupVersionKind{Group: "kyverno.io", Version: "v2", Kind: "CleanupPolicy"}, "cleanuppolicies", true)
	seen := map[string]int{}
	for _, d := range withStandIns([]controlplane.CRD{given}) {
		seen[d.GetName()]++
	}
	if seen[name] != 1 {
		t.Errorf("%s is defined %d times", name, seen[name])
	}
	if len(seen) != len(standIns()) {
		t.Errorf("%d kinds are defined, of %d that the controller reads", len(seen), len(standIns()))
	}
}

// The stand-in's webhooks are called as those that compare and enforce know.
func TestKyvernoName(t *testing.T) {
	for _, tt := range []struct{ verb, name, url, want string }{
		{"validate", "validate-fail.webhook.kvap.dev", "https://a/validate/fail", "validate.kyverno.svc-fail"},
		{"mutate", "mutate-ignore.webhook.kvap.dev", "https://a/mutate/ignore", "mutate.kyverno.svc-ignore"},
		{"mutate", "mutate-fail-1a2b.webhook.kvap.dev", "https://a/mutate/fail/within/1a2b", "mutate.kyverno.svc-1a2b-fail"},
		{"validate", "validate-fail-1a2b.webhook.kvap.dev", "https://a/validate/fail/policy/shop/teams", "validate.kyverno.svc-fail-finegrained-shop-teams"},
	} {
		if got := kyvernoName(tt.verb, tt.name, tt.url); got != tt.want {
			t.Errorf("%s at %s is called %s, want %s", tt.name, tt.url, got, tt.want)
		}
	}
}
