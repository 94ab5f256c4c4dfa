package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/kvap/kvap/interp"
)

// What the policies of a namespace may take of the server: whoever may write them there is not
// trusted with the requests of others.
const (
	// maxOfNamespaces is how many requests are read and judged at once by policies of
	// namespaces, and maxOfNamespace by those of one.
	maxOfNamespaces = maxJudged / 2
	maxOfNamespace  = 4
	// waitOfNamespace is how many more requests wait for those of one, while they are read.
	waitOfNamespace = 32
	// namespaceSteps are the steps of JMESPath for a request, of all policies of its namespace:
	// as many as any one expression may take.
	namespaceSteps = 10_000_000
)

// ofNamespace tells whether policies of the namespace of a request are among those that judge it,
// of which only the beginning is read: what waits for its turn has no memory.
func ofNamespace(policies []*servedPolicy, beginning []byte) (namespace string, is bool) {
	namespace = namespaceIn(beginning)
	return namespace, slices.ContainsFunc(policies, func(p *servedPolicy) bool { return p.Namespaced() && (p.Namespace == namespace || namespace == "") })
}

// turnOfNamespace waits for a turn of the policies of a namespace, for who asks at an address.
func (s *Server) turnOfNamespace(ctx context.Context, host, namespace string) (done func(), err error) {
	began := time.Now()
	done, err = s.namespaces.Take(ctx, host, namespace)
	s.metrics.waits.WithLabelValues(waitTurn).Observe(time.Since(began).Seconds())
	if err != nil {
		return func() {}, errBusy
	}
	return done, nil
}

// namespaceIn is the namespace of a request, which API servers write before the object; "" where
// the beginning of the review does not have it.
func namespaceIn(beginning []byte) string {
	d := json.NewDecoder(bytes.NewReader(beginning))
	for depth, key := 0, ""; ; {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		switch token := token.(type) {
		case json.Delim:
			if key = ""; token == '{' || token == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			if depth == 2 && key == "namespace" {
				return token
			}
			if key == "" {
				key = token
			} else {
				key = ""
			}
		default:
			key = ""
		}
	}
}

// boundedKey is where the context of a request has that of the policies of its namespace.
type boundedKey struct{}

// withNamespace gives the policies of the namespace steps for all of them together, and half of
// the time, so that others judge the request too.
func withNamespace(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, cancel := interp.WithSteps(ctx, namespaceSteps), context.CancelFunc(func() {})
	if end, ok := ctx.Deadline(); ok {
		bounded, cancel = context.WithTimeout(bounded, time.Until(end)/2)
	}
	return context.WithValue(ctx, boundedKey{}, bounded), cancel
}

// within is the context that the policy judges in, and a request as it is asked about it.
func (p *servedPolicy) within(ctx context.Context, req *interp.Request) (context.Context, *interp.Request) {
	if bounded, ok := ctx.Value(boundedKey{}).(context.Context); ok && p.Namespaced() {
		ctx = bounded
	}
	if p.evaluatesConditions {
		own := *req
		own.OwnConditions, req = true, &own
	}
	return ctx, req
}
