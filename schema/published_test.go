package schema_test

import (
	"testing"

	"github.com/kvap/kvap/schema"
)

// Each published kind has fields of its own or keeps unknown ones, and none that is required.
func TestPublishedTypes(t *testing.T) {
	set := builtin(t, "1.36").WithPublished()
	for _, r := range schema.Published() {
		typ := set.Type(r.GVK)
		if typ == nil || typ.Kind != schema.Object || !typ.Open {
			t.Errorf("%v is %+v", r.GVK, typ)
			continue
		}
		for name, f := range typ.Fields {
			if f.Required && name != "apiVersion" && name != "kind" && name != "metadata" {
				t.Errorf("%v requires %s", r.GVK, name)
			}
		}
		if r.Kind == "SecurityContextConstraints" && r.Plural != "securitycontextconstraints" {
			t.Errorf("the resource of %v is %s", r.GVK, r.Plural)
		}
	}
	if builtin(t, "1.36").Type(schema.GVK{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}) != nil {
		t.Error("a set has published kinds that was not asked for them")
	}
}

// A definition that is given takes the place of all published versions.
func TestDefinitionComesFirst(t *testing.T) {
	set, ds := builtin(t, "1.36").WithPublished().WithCRDs([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"apps.argoproj.io"},"spec":{"group":"argoproj.io","scope":"Cluster","names":{"kind":"Application","plural":"apps"},
		"versions":[{"name":"v2","served":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`))
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	got := set.Resources("*", "*", "Application")
	if len(got) != 1 || got[0].Plural != "apps" || got[0].Version != "v2" || got[0].Guessed {
		t.Errorf("%+v", got)
	}
	if set.Type(schema.GVK{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}) != nil {
		t.Error("a version is known that the definition does not serve")
	}
}
