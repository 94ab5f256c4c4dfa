package schema_test

import "testing"

func TestMissing(t *testing.T) {
	s := builtin(t, "1.36")
	container := map[string]any{"name": "a", "image": "b"}
	for _, c := range []struct {
		name, want string
		spec       any
	}{
		{"all is there", "", map[string]any{"containers": []any{container}}},
		{"what is optional may be missing", "", map[string]any{"containers": []any{container}, "volumes": []any{map[string]any{"name": "v"}}}},
		{"no spec", "spec", nil},
		{"no containers", "spec.containers", map[string]any{}},
		{"no image", "spec.containers[1].image", map[string]any{"containers": []any{container, map[string]any{"name": "b"}}}},
		{"a part of what is optional", "spec.volumes[0].hostPath.path", map[string]any{
			"containers": []any{container}, "volumes": []any{map[string]any{"name": "v", "hostPath": map[string]any{}}}}},
		{"a value of another type", "", map[string]any{"containers": "none"}},
	} {
		object := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}}
		if c.spec != nil {
			object["spec"] = c.spec
		}
		if got := s.Type(pod).Missing(object); got != c.want {
			t.Errorf("%s: %q is missing, want %q", c.name, got, c.want)
		}
	}
}
