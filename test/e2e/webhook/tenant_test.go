//go:build e2e

package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// heavy is a Policy of a namespace with thirty rules, each of which evaluates an expression that
// takes long for a large object.
func heavy() string {
	var out strings.Builder
	out.WriteString("apiVersion: kvap.dev/v1alpha1\nkind: Policy\nmetadata: {name: heavy, namespace: tenant}\nspec:\n  webhookConfiguration: {timeoutSeconds: 20}\n  rules:\n")
	for i := range 30 {
		fmt.Fprintf(&out, `  - name: r%d
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      failureAction: Enforce
      message: m
      deny: {conditions: {all: [{key: "{{ length(sort(split(request.object.data.x, ',')[].join('-', [@, 'a']))) }}", operator: Equals, value: -1}]}}
`, i)
	}
	return out.String()
}

// While heavy policies of one namespace judge large objects, small writes of another one are
// judged at once.
func TestHeavyTenant(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.Namespace(t, "tenant", nil)
	shared.start(t, "")
	shared.Apply(t, heavy())
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	large := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large, namespace: tenant}\ndata: {x: '" + strings.Repeat("0,", 500_000) + "0'}"
	testcluster.Soon(t, "the heavy policy judges", func() bool {
		began := time.Now()
		_, err := shared.try(t.Context(), t, large)
		t.Logf("a large one alone took %v: %.200v", time.Since(began), err)
		return time.Since(began) > time.Second
	})
	ctx, end := context.WithTimeout(t.Context(), 15*time.Second)
	defer end()
	shared.beside(t, time.Second, func() {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_, _ = shared.try(ctx, t, large)
				}
			})
		}
		wg.Wait()
	})
}

// beside sends small ones of another namespace while something goes on: each is judged, and of a
// hundred all but one within the bound. Before it, the policy guarded is to be enforced.
func (c *cluster) beside(t *testing.T, bound time.Duration, something func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		something()
	}()
	var took []time.Duration
	for beside := true; beside; {
		began := time.Now()
		_, err := c.try(t.Context(), t, unowned)
		took = append(took, time.Since(began))
		if err == nil || !strings.Contains(err.Error(), "denied the request") {
			t.Errorf("a small one after %v: %.300v", time.Since(began), err)
		}
		select {
		case <-ended:
			beside = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d small ones: the median %v, one of a hundred %v, the longest %v", len(took), p50, p99, took[len(took)-1])
	if p99 > bound {
		t.Errorf("one of a hundred took %v", p99)
	}
}
