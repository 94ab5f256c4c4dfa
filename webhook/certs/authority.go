package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Store keeps the record that replicas share: the data of a Secret.
type Store interface {
	// Load is what is stored, and a version of it; empty data where nothing is.
	Load(ctx context.Context) (data map[string][]byte, version string, err error)
	// Save stores data in place of a version; ErrConflict if that is not there any
	// more.
	Save(ctx context.Context, data map[string][]byte, version string) error
}

// ErrConflict tells that somebody else has saved.
var ErrConflict = errors.New("somebody else has changed the certificates")

// An Authority signs the webhook's certificates, in agreement with other replicas.
type Authority struct {
	store Store
	names Names
	now   func() time.Time

	mu      sync.RWMutex
	serving *tls.Certificate
	bundle  []byte
	changed chan struct{}
}

// NewAuthority makes an authority for names. It has no certificate before Renew.
func NewAuthority(store Store, names Names, now func() time.Time) *Authority {
	return &Authority{store: store, names: names, now: now, changed: make(chan struct{}, 1)}
}

// interval is how often Run looks. It is much shorter than overlap, so that all
// replicas show what is new soon after it may be shown.
const interval = 10 * time.Minute

// attempts is how often Renew tries when others save at the same time.
const attempts = 5

// Run renews until the context ends. failed hears of what went wrong; what there is
// stays in use, and it is tried again soon.
func (a *Authority) Run(ctx context.Context, failed func(error)) {
	for {
		wait := interval
		if err := a.Renew(ctx); err != nil && ctx.Err() == nil {
			failed(err)
			wait = 10 * time.Second
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Renew takes what is stored, brings it up to date and stores that, if need be.
func (a *Authority) Renew(ctx context.Context) error {
	for range attempts {
		data, version, err := a.store.Load(ctx)
		if err != nil {
			return fmt.Errorf("reading the webhook's certificates: %w", err)
		}
		r, err := decodeRecord(data)
		if err != nil {
			r = &record{} // what nobody can read is made anew
		}
		changed, err := r.renew(a.names, a.now())
		if err != nil {
			return fmt.Errorf("making the webhook's certificates: %w", err)
		}
		if !changed {
			a.take(r)
			return nil
		}
		if data, err = r.encode(); err != nil {
			return err
		}
		err = a.store.Save(ctx, data, version)
		switch {
		case err == nil:
			a.take(r)
			return nil
		case !errors.Is(err, ErrConflict):
			return fmt.Errorf("storing the webhook's certificates: %w", err)
		}
	}
	return ErrConflict
}

// take shows what a record has from now on.
func (a *Authority) take(r *record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	bundle := r.bundle()
	if string(bundle) != string(a.bundle) {
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}
	a.bundle = bundle
	a.serving = &tls.Certificate{Certificate: [][]byte{r.serving.cert.Raw}, PrivateKey: r.serving.key, Leaf: r.serving.cert}
}

// errNone is for handshakes before the first certificate.
var errNone = errors.New("the webhook has no certificate yet")

// Certificate is for a handshake.
func (a *Authority) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.serving == nil {
		return nil, errNone
	}
	return a.serving, nil
}

// Bundle are the authorities to trust, as PEM.
func (a *Authority) Bundle() []byte {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.bundle
}

// Changed yields after the bundle changed.
func (a *Authority) Changed() <-chan struct{} { return a.changed }

// Ready tells why there is no certificate that may be shown; nil if there is one.
func (a *Authority) Ready() error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	switch {
	case a.serving == nil:
		return errNone
	case a.now().After(a.serving.Leaf.NotAfter):
		return errors.New("the webhook's certificate has expired")
	}
	return nil
}
