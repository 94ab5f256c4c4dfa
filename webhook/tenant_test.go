package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/webhook/registration"
)

// heavy is a Policy of a namespace whose rules each go through all of an object again and again.
func heavy(rules int) string {
	var out strings.Builder
	out.WriteString("apiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: heavy, namespace: tenant}\nspec:\n  validationFailureAction: Enforce\n  rules:\n")
	for i := range rules {
		fmt.Fprintf(&out, `  - name: r%d
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      deny: {conditions: {all: [{key: "{{ length(sort(split(request.object.data.x || '', ',')[].join('-', [@, @, '%d']))) }}", operator: Equals, value: -1}]}}
`, i, i)
	}
	return out.String()
}

// elsewhere are small writes of other namespaces, as long as something goes on, and how long they
// took.
func elsewhere(t *testing.T, c *client, goesOn func() bool) {
	t.Helper()
	var took []time.Duration
	small := creation(t, plain)
	for goesOn() {
		status, text, one := sends(c.http, c.url+"/validate/fail?timeout=10s", small)
		if took = append(took, one); status != http.StatusOK {
			t.Errorf("another namespace's write: %d %s", status, text)
		}
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("%d writes of other namespaces, of which one of a hundred took %v", len(took), p99)
	if p99 > time.Second {
		t.Errorf("one of a hundred took %v", p99)
	}
}

// A namespace's own policies take so much for a request and no more, and do not slow others.
func TestHeavyPoliciesOfANamespace(t *testing.T) {
	c := start(t, Options{})
	list := policies(t, heavy(30)+"---\n"+enforced(ownerRequired))
	c.Set(set(list))
	path := registration.RouteOf(list[0], registration.Validate).Path()
	body := creation(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large","namespace":"tenant"},"data":{"x":"`+strings.Repeat("x,", 500_000)+`"}}`)
	var wg sync.WaitGroup
	var left atomic.Int32
	for range 12 {
		left.Add(1)
		wg.Go(func() {
			defer left.Add(-1)
			if status, text, _ := sends(c.http, c.url+path+"?timeout=30s", body); status != http.StatusOK || !strings.Contains(text, "too many steps for one request") {
				t.Errorf("the heavy policy: %d %.300s", status, text)
			}
		})
	}
	elsewhere(t, c, func() bool { return left.Load() > 0 })
	wg.Wait()
}

// A waitingWorld answers when it may, or the request ends.
type waitingWorld struct {
	interp.Offline
	asked atomic.Int32
	goOn  chan struct{}
}

func (w *waitingWorld) ConfigMap(ctx context.Context, _, _ string) (map[string]any, error) {
	w.asked.Add(1)
	select {
	case <-w.goOn:
		return map[string]any{"data": map[string]any{}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Policies of a namespace that wait leave turns to others, however many routes they have, and
// memory to be read and judged in.
func TestWaitingPoliciesOfANamespace(t *testing.T) {
	world := &waitingWorld{goOn: make(chan struct{})}
	c := start(t, Options{World: world})
	var list []*policy.Policy
	for i := range 40 {
		list = append(list, policies(t, fmt.Sprintf(`
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: waits%d, namespace: tenant}
spec:
  validationFailureAction: Enforce
  webhookConfiguration: {matchConditions: [{name: a, expression: "true"}]}
  rules:
  - name: waits
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: [{name: settings, configMap: {name: settings, namespace: tenant}}]
    validate: {deny: {conditions: {all: [{key: "{{ settings.data.x || 'y' }}", operator: Equals, value: x}]}}}
`, i))...)
	}
	c.Set(set(append(list, policies(t, enforced(ownerRequired))...)))
	body := creation(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large","namespace":"tenant"},"data":{"x":"`+strings.Repeat("x", 800<<10)+`"}}`)
	var wg sync.WaitGroup
	for _, p := range list {
		path := registration.RouteOf(p, registration.Validate).Path()
		for range 3 {
			wg.Go(func() { sends(c.http, c.url+path+"?timeout=20s", body) })
		}
	}
	for world.asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	until := time.Now().Add(2 * time.Second)
	elsewhere(t, c, func() bool { return time.Now().Before(until) })
	if status, text, took := sends(c.http, c.url+"/validate/fail?timeout=10s", large(t, 2e6)); status != http.StatusOK || took > 5*time.Second {
		t.Errorf("another namespace's large write after %v: %d %.300s", took, status, text)
	}
	close(world.goOn)
	wg.Wait()
}
