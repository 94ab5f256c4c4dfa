//go:build e2e

package webhook

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A law is what holds of a rule like inTeam, whatever becomes of its ConfigMap: what the
// rule is not about is never refused, and no blue one of what it matches is let through.
type law struct {
	sent, refused, admitted atomic.Int64
	first                   atomic.Pointer[string] // what was said of the first that was refused
	stop                    func()
}

// holds sends requests to some namespaces, all the time.
func (c *cluster) holds(t *testing.T, team string, namespaces ...string) *law {
	t.Helper()
	l := &law{}
	var all []func(context.Context)
	for _, namespace := range namespaces {
		in := func(ctx context.Context, name string) error {
			_, err := c.try(ctx, t, strings.Replace(secretOf(name, "blue"), "namespace: default", "namespace: "+namespace, 1))
			return err
		}
		testcluster.Soon(t, "nothing is left of tests before", func() bool {
			return in(t.Context(), "another") == nil && in(t.Context(), team+"-a") != nil
		})
		all = append(all, func(ctx context.Context) {
			err := in(ctx, "another")
			if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsInternalError(err) { // the last is a webhook that does not answer
				said := err.Error()
				l.first.CompareAndSwap(nil, &said)
				l.refused.Add(1)
			}
			if err := in(ctx, team+"-a"); err == nil {
				l.admitted.Add(1)
			}
			l.sent.Add(2)
		})
	}
	l.stop = testcluster.Repeat(t, all...)
	return l
}

// check ends it, and tells where the law was broken.
func (l *law) check(t *testing.T) {
	t.Helper()
	l.stop()
	if n := l.admitted.Load(); n > 0 {
		t.Errorf("%d of %d requests were admitted that the rule must refuse", n, l.sent.Load())
	}
	if n := l.refused.Load(); n > 0 {
		t.Errorf("%d of %d requests were refused that no rule is about: %s", n, l.sent.Load(), *l.first.Load())
	}
	if l.sent.Load() == 0 {
		t.Error("no request was sent")
	}
}
