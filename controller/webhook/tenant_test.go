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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// heavy is a Policy of a namespace of which each rule evaluates an expression.
func heavy(expression string) string {
	var out strings.Builder
	out.WriteString("apiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: heavy, namespace: tenant}\nspec:\n  validationFailureAction: Enforce\n  rules:\n")
	for i := range 30 {
		fmt.Fprintf(&out, `  - name: r%d
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      deny: {conditions: {all: [{key: "{{ %s }}", operator: Equals, value: -1}]}}
`, i, expression)
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

const numbers = 90_000

// numbered is the review of a ConfigMap of the namespace, with a list of numbers.
func numbered(t *testing.T) string {
	t.Helper()
	return creation(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large","namespace":"tenant"},"data":{"x":[`+strings.Repeat("0,", numbers-1)+`0]}}`)
}

// A namespace's own policies take half of the time of a request and no more, and do not slow others.
func TestHeavyPoliciesOfANamespace(t *testing.T) {
	c := start(t, Options{})
	list := policies(t, heavy("length(sort(request.object.data.x[].join('-', [to_string(@), 'a'])))")+"---\n"+enforced(ownerRequired))
	c.Set(set(list))
	path, body := registration.RouteOf(list[0], registration.Validate).Path(), numbered(t)
	var wg sync.WaitGroup
	var left atomic.Int32
	for range 4 {
		left.Add(1)
		wg.Go(func() {
			defer left.Add(-1)
			if status, text, took := sends(c.http, c.url+path+"?timeout=2s", body); status != http.StatusOK || !strings.Contains(text, "deadline exceeded") {
				t.Errorf("the heavy policy after %v: %d %.900s", took, status, text)
			}
		})
	}
	elsewhere(t, c, func() bool { return left.Load() > 0 })
	wg.Wait()
}

// All policies of a namespace together take so many steps for a request. Those of the cluster
// judge it all the same.
func TestStepsOfANamespace(t *testing.T) {
	s := New(Options{World: &interp.Offline{}})
	text := heavy("length(request.object.data.x | [] | [] | [] | [])")
	s.Set(set(policies(t, text+"---\n"+strings.Replace(text, "name: heavy", "name: second", 1)+"---\n"+
		strings.NewReplacer("kind: Policy", "kind: ClusterPolicy", ", namespace: tenant", "").Replace(text))))
	in, err := decode([]byte(numbered(t)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := withNamespace(t.Context())
	defer cancel()
	var list []*servedPolicy
	for _, p := range s.current.Load().policies {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *servedPolicy) int { return -strings.Compare(a.FullName(), b.FullName()) })
	verdicts := s.judge(ctx, list, &interp.Request{Admission: in.request})
	for i, p := range list {
		stopped := 0
		for _, one := range verdicts[i] {
			if one.Status == interp.Error && strings.Contains(one.Message, "too many steps for one request") {
				stopped++
			}
		}
		switch {
		case !p.Namespaced() && stopped != 0, p.Name == "second" && stopped == 0, p.Name == "heavy" && p.Namespaced() && stopped != len(verdicts[i]):
			t.Errorf("%s: %d of %d rules are stopped", p.FullName(), stopped, len(verdicts[i]))
		}
	}
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

// held is a server with a policy of a namespace that waits as long as the world does, whose turns
// are taken. ask asks it once more.
func held(t *testing.T, o Options) (c *client, ask func(timeout string) (status int)) {
	t.Helper()
	world := &waitingWorld{goOn: make(chan struct{})}
	o.World = world
	c = start(t, o)
	list := policies(t, `
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: waits, namespace: tenant}
spec:
  validationFailureAction: Enforce
  rules:
  - name: waits
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: [{name: settings, configMap: {name: settings, namespace: tenant}}]
    validate: {deny: {conditions: {all: [{key: "{{ settings.data.x || 'y' }}", operator: Equals, value: x}]}}}
---
`+enforced(ownerRequired))
	c.Set(set(list))
	url := c.url + registration.RouteOf(list[0], registration.Validate).Path() + "?timeout="
	body := creation(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"small","namespace":"tenant"}}`)
	ask = func(timeout string) int {
		status, _, _ := sends(c.http, url+timeout, body)
		return status
	}
	var asked sync.WaitGroup
	t.Cleanup(func() {
		close(world.goOn)
		asked.Wait()
	})
	for range maxOfNamespace {
		asked.Go(func() { ask("30s") })
	}
	for world.asked.Load() < maxOfNamespace {
		time.Sleep(time.Millisecond)
	}
	return c, ask
}

// A request that gets no turn of its namespace is refused, which is no crash.
func TestNoTurnOfANamespace(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, ask := held(t, Options{Metrics: registry})
	status := ask("100ms")
	if got := samples(t, registry); status != http.StatusServiceUnavailable || got["kvap_webhook_panics_total"] != 0 {
		t.Errorf("the fifth request: %d, and %v crashed", status, got["kvap_webhook_panics_total"])
	}
}

// However many requests wait for the turns of a namespace, those of others are read and judged.
func TestManyRequestsOfANamespace(t *testing.T) {
	c, ask := held(t, Options{})
	var refused atomic.Int32
	var asked sync.WaitGroup
	for range maxReading + 50 {
		asked.Go(func() {
			if ask("10s") == http.StatusServiceUnavailable {
				refused.Add(1)
			}
		})
	}
	for reading := 0; reading < waitOfNamespace; time.Sleep(time.Millisecond) {
		c.memory.mu.Lock()
		reading = len(c.memory.reading)
		c.memory.mu.Unlock()
	}
	elsewhere(t, c, func() bool { return refused.Load() < maxReading+50-waitOfNamespace })
	if status, text, _ := sends(c.http, c.url+"/validate/fail?timeout=10s", creation(t, plain)); status != http.StatusOK {
		t.Errorf("another namespace's write while %d wait: %d %s", waitOfNamespace, status, text)
	}
	asked.Wait()
}

// Where as many bodies wait for turns as may, one more is refused, and others are read.
func TestBodiesThatWait(t *testing.T) {
	c, ask := held(t, Options{})
	c.memory.waiting.Store(maxWaits)
	if status := ask("10s"); status != http.StatusServiceUnavailable {
		t.Errorf("one more that waits: %d", status)
	}
	if status, text, _ := sends(c.http, c.url+"/validate/fail?timeout=10s", creation(t, plain)); status != http.StatusOK {
		t.Errorf("one that need not wait: %d %s", status, text)
	}
}

func TestNamespaceOfABeginning(t *testing.T) {
	for text, want := range map[string]string{
		creation(t, plain): "prod",
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","kind":{"group":"","namespace":"no"},"name":"namespace","namespace":"yes","object":{`: "yes",
		`{"request":{"object":{"namespace":"no"},"list":["namespace","no"],"dryRun":true,"namespace":"yes`:                                                                       "",
		`{"request":{"name":"x","dryRun":false,"options":null,"namespace":"yes","object":`:                                                                                       "yes",
		`{"namespace":"no","request":{"name":"x"}}`: "",
		`[`: "",
	} {
		if got := namespaceIn([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Match conditions that API servers do not evaluate decide here as they would there: what they
// leave out is admitted, and one that errs is an error of the policy.
func TestOwnConditionsOfANamespace(t *testing.T) {
	c := start(t, Options{})
	list := policies(t, `
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: conditions, namespace: prod}
spec:
  validationFailureAction: Enforce
  webhookConfiguration: {matchConditions: [{name: a, expression: "object.data.all(k, k != 'left-out')"}]}
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: no owner, pattern: {metadata: {annotations: {acme.io/owner: "?*"}}}}
`)
	c.Set(set(list))
	path := registration.RouteOf(list[0], registration.Validate).Path()
	for data, want := range map[string]string{`,"data":{"x":"y"}`: "no owner", `,"data":{"left-out":"y"}`: "", "": "match conditions"} {
		got := c.ask(t, path, strings.Replace(plain, "}}", "}"+data+"}", 1))
		if got.Allowed != (want == "") || want != "" && !strings.Contains(got.Result.Message, want) {
			t.Errorf("%s: %v %v, want %q", data, got.Allowed, got.Result, want)
		}
	}
}
