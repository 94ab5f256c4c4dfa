package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/test/controlplane"
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
