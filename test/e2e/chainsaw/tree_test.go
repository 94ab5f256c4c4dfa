//go:build e2e

package chainsaw

import (
	"strings"
	"testing"
)

func TestDiffers(t *testing.T) {
	t.Parallel()
	names := scope{"error": nil, "stderr": " denied: no team\n", "test": map[string]any{"metadata": map[string]any{"name": "one"}}}
	pod := map[string]any{
		"metadata": map[string]any{"name": "one", "generation": int64(3)},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "a", "image": "x:1"}, map[string]any{"name": "b", "image": "y:2"}}, "empty": []any{}},
	}
	for _, c := range []struct {
		asserted, value any
		why             string
	}{
		{map[string]any{"metadata": map[string]any{"generation": float64(3)}}, pod, ""},
		{map[string]any{"metadata": map[string]any{"name": "($test.metadata.name)"}}, pod, ""},
		{map[string]any{"metadata": map[string]any{"name": "two"}}, pod, ".metadata.name is one, want two"},
		{map[string]any{"metadata": map[string]any{"labels": nil}}, pod, ""},
		{map[string]any{"metadata": map[string]any{"labels": map[string]any{}}}, pod, ".metadata.labels is not there"},
		{map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": nil}}}, pod, ".metadata.labels is not an object"},
		{map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a"}}}}, pod, ".spec.containers has 2 elements, want 1"},
		{map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}, "empty": []any{}}}, pod, ""},
		{map[string]any{"spec": map[string]any{"none": []any{}}}, pod, ".spec.none is not a list"},
		{map[string]any{"spec": map[string]any{"(length(containers))": float64(2), "(containers[?name == 'b'])": []any{map[string]any{"image": "y:2"}}}}, pod, ""},
		{map[string]any{"spec": map[string]any{"(containers[?name == 'c'])": []any{map[string]any{}}}}, pod, "has 0 elements, want 1"},
		{map[string]any{"($error != null)": false, "(trim_space($stderr))": "denied: no team"}, nil, ""},
		{map[string]any{"(contains($stderr, 'team'))": false}, nil, "is true, want false"},
	} {
		why, err := names.differs(c.asserted, c.value, "")
		if err != nil || (c.why == "") != (why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%v: got %q, %v; want %q", c.asserted, why, err, c.why)
		}
	}
	for _, asserted := range []any{"(nonsuch(@))", map[string]any{"($nothing)": "x"}, "(a.)"} {
		if _, err := names.differs(asserted, pod, ""); err == nil {
			t.Errorf("%v is no error", asserted)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	names := scope{"name": "one"}
	got, err := names.resolve(map[string]any{"name": "($name)", "(image)": "*:latest", "list": []any{"($name)", "a (b)", int64(1)}, "cel": "(a ||\n b)"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"name": "one", "(image)": "*:latest", "list": []any{"one", "a (b)", int64(1)}, "cel": "(a ||\n b)"}
	if why, err := (scope{}).differs(map[string]any{"name": "one", "list": want["list"]}, got, ""); why != "" || err != nil {
		t.Error(why, err)
	}
	for name, value := range want {
		if name != "list" && got.(map[string]any)[name] != value {
			t.Errorf("%s is %v, want %v", name, got.(map[string]any)[name], value)
		}
	}
	if _, err := names.resolve("($other)"); err == nil {
		t.Error("a name that is not bound is no error")
	}
}
