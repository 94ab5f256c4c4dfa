package schema_test

import (
	"errors"
	"slices"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/schema"
)

func TestResolverKnowsAll(t *testing.T) {
	s := builtin(t, "1.36")
	for _, r := range s.Resources("*", "*", "*") {
		if _, err := s.Resolver().ResolveSchema(apischema.GroupVersionKind(r.GVK)); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Resolver().ResolveSchema(apischema.GroupVersionKind{Kind: "Nothing"}); !errors.Is(err, schema.ErrNotFound) {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestRESTMapper(t *testing.T) {
	s := withBackup(t)
	m := s.RESTMapper()
	for _, r := range s.Resources("*", "*", "*") {
		kinds, err := m.KindsFor(apischema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural})
		if err != nil || !slices.Contains(kinds, apischema.GroupVersionKind(r.GVK)) {
			t.Errorf("%s: %v, %v", r.GVK, kinds, err)
		}
		mapping, err := m.RESTMapping(apischema.GroupKind{Group: r.Group, Kind: r.Kind}, r.Version)
		if err != nil || mapping.Resource.Resource != r.Plural {
			t.Errorf("%s: %v, %v", r.GVK, mapping, err)
		}
	}
	best, err := m.KindFor(apischema.GroupVersionResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"})
	if err != nil || best.Version != "v2" {
		t.Errorf("the preferred HorizontalPodAutoscaler is %v, %v", best, err)
	}
}
