package evidence

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

const quotas = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: quotas}
spec:
  rules:
  - name: quota
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    exclude: {any: [{resources: {names: [excluded]}}]}
    generate:
      apiVersion: v1
      kind: ResourceQuota
      name: default
      namespace: "{{ request.object.metadata.name }}"
      synchronize: true
      data: {spec: {hard: {cpu: "1", pods: 10}}}
`

// there are the objects of a cluster, by namespace.
type there map[string]map[string]any

func (o there) Get(_ context.Context, _, _, namespace, _ string) (map[string]any, bool, error) {
	if namespace == "locked" {
		return nil, false, errors.New("forbidden")
	}
	object, found := o[namespace]
	return object, found, nil
}

func (there) List(context.Context, string, string, string, labels.Selector) ([]map[string]any, error) {
	return nil, nil
}

func (there) Namespaced(context.Context, string, string) (bool, error) { return true, nil }

// What a generate rule wants of an object that is there is held against what Kyverno has
// made of it.
func TestGenerated(t *testing.T) {
	quota := func(manager string, hard map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "default", "labels": map[string]any{"app.kubernetes.io/managed-by": manager}},
			"spec": map[string]any{"hard": hard, "scopes": []any{"Terminating"}}, "status": map[string]any{},
		}
	}
	objects := there{
		"same":    quota("kyverno", map[string]any{"cpu": "1000m", "pods": "10"}),
		"changed": quota("kyverno", map[string]any{"cpu": "1", "pods": "20"}),
		"foreign": quota("helm", map[string]any{"cpu": "1", "pods": "10"}),
	}
	for name, c := range map[string]struct {
		seen, disagreed, unclear int
		says                     string
	}{
		"same":     {1, 0, 0, ""},
		"changed":  {1, 1, 0, "spec.hard.pods is 20"},
		"foreign":  {0, 0, 1, "nobody has generated"},
		"locked":   {0, 0, 1, "forbidden"},
		"absent":   {0, 0, 1, "it wants is not there"},
		"excluded": {0, 0, 0, "only what it has made"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, quotas, nil)
			l := b.ledger()
			f, _ := policy.Parse("p.yaml", []byte(quotas))
			l.Making = &Making{Engine: interp.New(f.Policies, nil, &interp.Offline{}, interp.Limits{}), Objects: objects}
			l.Judge(t.Context(), func(yield func(Item) bool) {
				o := aConfigMap(name)
				yield(Item{Source: Objects, Subject: name, Made: true, Request: func() (*judge.Request, error) { return b.request(o), nil }})
			}, func(_ Item, err error) { t.Error(err) })
			r := l.Comparison().Rules[0]
			total := r.Total()
			if total.Seen != c.seen || total.Disagreed != c.disagreed || total.Unclear != c.unclear {
				t.Errorf("%+v", total)
			}
			said := strings.Join(append(r.Notes, r.Thin...), "; ")
			for _, d := range r.Disagreements {
				said += d.Sides[1].Message
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("says %q, not %q", said, c.says)
			}
		})
	}
}
