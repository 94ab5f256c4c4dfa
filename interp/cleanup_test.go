package interp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

func cleanup(t *testing.T, kind, version, spec string, world interp.World) *interp.Cleanup {
	t.Helper()
	f, ds := policy.Parse("c.yaml", []byte("apiVersion: kyverno.io/"+version+"\nkind: "+kind+"\nmetadata: {name: c, namespace: team}\nspec:\n  schedule: \"0 * * * *\"\n"+spec))
	if ds.HasErrors() || len(f.Cleanups) != 1 {
		t.Fatal(ds)
	}
	return interp.NewCleanup(f.Cleanups[0], nil, world, interp.Limits{})
}

func TestCleanupDeletes(t *testing.T) {
	const pods = "  match: {any: [{resources: {kinds: [Pod]}}]}\n"
	const old = "  conditions: {all: [{key: \"{{ time_since('', '{{ target.metadata.creationTimestamp }}', '') }}\", operator: GreaterThan, value: 1h}]}\n"
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team, creationTimestamp: "2026-01-01T00:00:00Z", labels: {keep: "no"}}, spec: {containers: [{name: c, image: "reg.example.com/app:1"}]}}`
	world := &interp.Offline{Time: time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC)}
	for _, tt := range []struct {
		name, kind, spec, object string
		want                     bool
		err                      string
	}{
		{"no conditions", "ClusterCleanupPolicy", pods, pod, true, ""},
		{"another kind", "ClusterCleanupPolicy", pods, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team}}`, false, ""},
		{"excluded", "ClusterCleanupPolicy", pods + "  exclude: {any: [{resources: {selector: {matchLabels: {keep: \"no\"}}}}]}\n", pod, false, ""},
		{"old enough", "ClusterCleanupPolicy", pods + old, pod, true, ""},
		{"too young", "ClusterCleanupPolicy", pods + strings.Replace(old, "1h", "3h", 1), pod, false, ""},
		{"minutes, old enough", "ClusterCleanupPolicy", pods + strings.Replace(old, "1h", "90m", 1), pod, true, ""},
		{"minutes, too young", "ClusterCleanupPolicy", pods + strings.Replace(old, "1h", "150m", 1), pod, false, ""},
		{"minutes between", "ClusterCleanupPolicy", pods + "  conditions: {all: [{key: \"{{ time_diff('{{ target.metadata.creationTimestamp }}', '2026-01-01T00:20:00Z') }}\", operator: Equals, value: 20m}]}\n", pod, true, ""},
		{"its own namespace", "CleanupPolicy", pods, pod, true, ""},
		{"another namespace", "CleanupPolicy", pods, strings.Replace(pod, "team", "other", 1), false, ""},
		{"images", "ClusterCleanupPolicy", pods + "  conditions: {all: [{key: \"{{ images.containers.*.registry }}\", operator: AnyIn, value: [reg.example.com]}]}\n", pod, true, ""},
		{"the namespace", "ClusterCleanupPolicy", pods + "  conditions: {all: [{key: \"{{ request.namespace }}\", operator: Equals, value: team}]}\n", pod, true, ""},
		{"a context of its own", "ClusterCleanupPolicy", pods + "  context: [{name: title, variable: {value: \"{{ target.metadata.name }}\"}}]\n  conditions: {all: [{key: \"{{ title }}\", operator: Equals, value: p}]}\n", pod, true, ""},
		{"there is no request.object", "ClusterCleanupPolicy", pods + "  conditions: {all: [{key: \"{{ request.object.kind }}\", operator: Equals, value: Pod}]}\n", pod, false, "failed to evaluate conditions"},
		{"an object's text is no pattern", "ClusterCleanupPolicy", pods + "  conditions: {all: [{key: \"{{ target.metadata.labels.keep }}\", operator: AnyIn, value: [yes-please]}]}\n", strings.Replace(pod, `"no"`, `"*"`, 1), false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, version := range []string{"v2", "v2beta1"} {
				got, err := cleanup(t, tt.kind, version, tt.spec, world).Deletes(t.Context(), schema.GroupVersionResource{}, object(t, tt.object))
				if got != tt.want || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s: got %v, %v; want %v, %q", version, got, err, tt.want, tt.err)
				}
			}
		})
	}
}

// lostNamespaces is a world that cannot tell of namespaces.
type lostNamespaces struct{ interp.Offline }

func (*lostNamespaces) Namespace(context.Context, string) (map[string]any, error) {
	return nil, errors.New("lost")
}

func TestCleanupWithoutNamespaceLabels(t *testing.T) {
	c := cleanup(t, "ClusterCleanupPolicy", "v2", "  match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {a: b}}}}]}\n", &lostNamespaces{})
	if got, err := c.Deletes(t.Context(), schema.GroupVersionResource{}, object(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team}}`)); got || err == nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestNextRun(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 30, 0, 0, time.FixedZone("", 3600))
	for schedule, want := range map[string]string{
		"0 * * * *": "2026-03-01T10:00:00Z", "@daily": "2026-03-02T00:00:00Z", "*/7 9 * * *": "2026-03-01T09:35:00Z",
		"0 0 31 2 *": "never due", "* * * *": "cannot be read", "": "cannot be read",
	} {
		got, err := interp.NextRun(schedule, at)
		text := got.Format(time.RFC3339)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("%q: got %s, want %s", schedule, text, want)
		}
	}
}

func TestExpiry(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]string{
		"90m": "2026-01-01T01:30:00Z", "1h30m": "2026-01-01T01:30:00Z", "2d": "2026-01-03T00:00:00Z", "1w": "2026-01-08T00:00:00Z",
		"1week2days": "2026-01-10T00:00:00Z", "3Hours": "2026-01-01T03:00:00Z", "2026-02-03": "2026-02-03T00:00:00Z",
		"2026-02-03T101112Z": "2026-02-03T10:11:12Z", "5 lightyears": "neither", "": "neither", "d": "neither", "9999999999999w": "neither", "2026-02-30": "neither",
	} {
		got, err := interp.Expiry(value, created)
		text := got.Format(time.RFC3339)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("%q: got %s, want %s", value, text, want)
		}
	}
}
