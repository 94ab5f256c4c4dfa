//go:build e2e

package scan

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A cutter ends watches, and counts what is read and written besides.
type cutter struct {
	mu      sync.Mutex
	watches []io.Closer
	asked   []string
}

// A cutTransport is what one client sends by.
type cutTransport struct {
	http.RoundTripper
	*cutter
}

// RoundTrip implements http.RoundTripper.
func (c cutTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	watches := r.URL.Query().Has("watch")
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !watches:
		c.asked = append(c.asked, r.Method+" "+r.URL.Path)
	case err == nil:
		c.watches = append(c.watches, answer.Body)
	}
	return answer, err
}

// cut ends all watches.
func (c *cutter) cut() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watches {
		_ = w.Close() // it may have ended
	}
	n, c.watches = len(c.watches), nil
	return n
}

// since are the requests since the last question that have a word in their path.
func (c *cutter) since(word string) (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.asked {
		if strings.Contains(request, word) {
			out = append(out, request)
		}
	}
	c.asked = nil
	return out
}

// Watches that end cost no look at what has not changed, and the next leader writes no report that is
// right.
func TestRestarts(t *testing.T) {
	c, config := startPlane(t)
	watched := &cutter{}
	cutting := rest.CopyConfig(config)
	cutting.Wrap(func(rt http.RoundTripper) http.RoundTripper { return cutTransport{rt, watched} })
	stop := lead(t, cutting)
	var bad []*unstructured.Unstructured
	for i := range 20 {
		bad = append(bad, c.make(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: bad-%d, namespace: default}}", i)))
	}
	c.make(t, owners)
	versions := map[string]string{}
	for _, o := range bad {
		testcluster.Soon(t, "each object has a report", func() bool {
			r := c.report(t, "PolicyReport", o)
			if r != nil {
				versions[r.GetName()] = r.GetResourceVersion()
			}
			return r != nil
		})
	}
	watched.since("")
	if n := watched.cut(); n == 0 {
		t.Error("nothing was watched")
	}
	later := c.make(t, "{apiVersion: v1, kind: Secret, metadata: {name: later, namespace: default}}")
	testcluster.Soon(t, "a new object has a report", func() bool { return c.report(t, "PolicyReport", later) != nil })
	if asked := watched.since("/secrets"); len(asked) != 1 || !strings.HasSuffix(asked[0], "/later") {
		t.Errorf("after watches that ended were asked for Secrets: %v", asked)
	}

	stop()
	c.remove(t, bad[0])
	meanwhile := c.make(t, "{apiVersion: v1, kind: Secret, metadata: {name: meanwhile, namespace: default}}")
	watched.since("")
	lead(t, cutting)
	testcluster.Soon(t, "an object has a report that came while nobody led", func() bool { return c.report(t, "PolicyReport", meanwhile) != nil })
	testcluster.Soon(t, "the report goes of one that went", func() bool { return c.report(t, "PolicyReport", bad[0]) == nil })
	for _, o := range bad[1:] {
		if r := c.report(t, "PolicyReport", o); r == nil || r.GetResourceVersion() != versions[r.GetName()] {
			t.Errorf("the report about %s was written again, or is gone", o.GetName())
		}
	}
	for _, request := range watched.since("policyreports/") {
		if !strings.HasPrefix(request, "DELETE") {
			t.Errorf("the next leader asked %s", request)
		}
	}
}
