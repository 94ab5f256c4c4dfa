package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

// Outages are the kinds whose objects an API server refuses to list or watch, as where
// a permission was taken away, or a version is served no more. What is known of them
// grows old, and nothing else would tell.
type outages struct {
	changed func()
	now     func() time.Time

	mu   sync.Mutex
	seen map[string]outage // by the informer's name of the kind
}

type outage struct {
	since, last time.Time
	err         error
}

// Statuses tell of an outage that has lasted this long: API servers that start refuse what
// they do not know yet. It is over when no attempt has failed for outageEnds, because informers
// try again within a minute.
const (
	outageLasts = 20 * time.Second
	outageEnds  = 90 * time.Second
)

// lasts tells of attempts that have failed for long; when the last one did does not matter.
func (o outage) lasts() bool { return o.last.Sub(o.since) >= outageLasts }

func newOutages(changed func()) *outages {
	return &outages{changed: changed, now: time.Now, seen: map[string]outage{}}
}

// failed is told of each attempt to list or watch that failed.
func (o *outages) failed(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	if refused(err) {
		o.note(r.TypeDescription(), err)
		o.changed()
	}
}

func (o *outages) note(kind string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	have, ok := o.seen[kind]
	if !ok || now.Sub(have.last) > outageEnds {
		have.since = now
	}
	have.last, have.err = now, err
	o.seen[kind] = have
}

// over is told of a kind whose objects were listed.
func (o *outages) over(kind schema.GroupVersionKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, kind.String())
}

// refused tells of an answer of an API server that may stay what it is. One that is
// away, or busy, or asks to list anew, is none.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false
	}
	code := int(status.Status().Code)
	return code >= http.StatusBadRequest && code <= http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// begun tells that the last attempts at a kind failed, be it for a moment.
func (o *outages) begun(kind schema.GroupVersionKind) bool {
	_, ok := o.current()[kind.String()]
	return ok
}

// of is why nothing is heard of a kind, since when; nil where it is.
func (o *outages) of(kind schema.GroupVersionKind) error {
	have, ok := o.current()[kind.String()]
	if !ok || !have.lasts() {
		return nil
	}
	return fmt.Errorf("since %s: %w", have.since.UTC().Format(time.RFC3339), have.err)
}

// any tells that there is an outage, be it for a moment.
func (o *outages) any() bool { return len(o.current()) > 0 }

// lasting are the kinds of which nothing is heard.
func (o *outages) lasting() []string {
	var out []string
	for kind, have := range o.current() {
		if have.lasts() {
			out = append(out, kind)
		}
	}
	return out
}

func (o *outages) current() map[string]outage {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]outage{}
	for kind, have := range o.seen {
		if o.now().Sub(have.last) > outageEnds {
			delete(o.seen, kind)
			continue
		}
		out[kind] = have
	}
	return out
}
