package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
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

// Options say what an Authority is for. Store and Names must be there.
type Options struct {
	Store Store
	Names Names
	// Now is the clock; that of the machine by default.
	Now func() time.Time
	// Validity is how long an authority is valid; a year by default. All other times are
	// parts of it.
	Validity time.Duration
	// Known tells whether all API servers were told to trust an authority, which signs
	// nothing before. nil takes it for granted.
	Known func(ctx context.Context, authority *x509.Certificate) (bool, error)
	// Stored yields after what is stored was changed, by whomever; nil where nobody tells.
	Stored <-chan struct{}
}

// MinValidity is what makes sense: the parts are seconds then.
const MinValidity = 30 * time.Second

// terms are how long what we sign is valid, and how long before its end it is
// replaced. A certificate never outlives its authority.
type terms struct {
	authority, authorityRenew time.Duration
	serving, servingRenew     time.Duration
	// overlap is how long a new authority is in the bundle before it signs: for API
	// servers to see the configuration, and for controllers that were down to write it.
	overlap time.Duration
	// interval is how often Run looks. It is much shorter than overlap, so that all
	// replicas show what is new soon after it may be shown.
	interval time.Duration
}

func termsOf(validity time.Duration) terms {
	overlap := min(validity/8, time.Hour)
	return terms{
		authority: validity, authorityRenew: validity / 6, serving: validity / 4, servingRenew: validity / 12,
		overlap: overlap, interval: overlap / 6,
	}
}

// An Authority signs the webhook's certificates, in agreement with other replicas.
type Authority struct {
	options Options
	terms   terms

	mu      sync.RWMutex
	serving *tls.Certificate
	trusted error // why API servers do not trust it
	waits   bool  // another authority is to be shown once they know it
	bundle  []byte
	changed chan struct{}

	renewing sync.Mutex
	last     *record              // as it was taken last
	shown    *x509.Certificate    // the authority of what is shown
	since    map[string]time.Time // API servers were seen to know an authority, by its certificate
}

// NewAuthority makes an authority. It has no certificate before Renew.
func NewAuthority(o Options) *Authority {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Validity = cmp.Or(o.Validity, 365*24*time.Hour)
	return &Authority{options: o, terms: termsOf(max(o.Validity, MinValidity)), changed: make(chan struct{}, 1), since: map[string]time.Time{}}
}

// attempts is how often Renew tries when others save at the same time.
const attempts = 5

// Run renews until the context ends. failed hears of what went wrong; what there is
// stays in use, and it is tried again soon.
func (a *Authority) Run(ctx context.Context, failed func(error)) {
	for {
		wait := a.terms.interval
		if err := a.Renew(ctx); err != nil && ctx.Err() == nil {
			failed(err)
			wait = min(10*time.Second, wait)
		}
		if a.pending() { // which ends when the controller has written the bundle
			wait = min(time.Second, wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.options.Stored:
		case <-time.After(wait):
		}
	}
}

// Renew takes what is stored, brings it up to date and stores that, if need be.
func (a *Authority) Renew(ctx context.Context) error {
	a.renewing.Lock()
	defer a.renewing.Unlock()
	for range attempts {
		data, version, err := a.options.Store.Load(ctx)
		if err != nil {
			return fmt.Errorf("reading the webhook's certificates: %w", err)
		}
		r, err := decodeRecord(data)
		if err != nil {
			r = &record{} // what nobody can read is made anew
		}
		by := renewal{names: a.options.Names, terms: a.terms, now: a.options.Now()}
		kept := r.keep(a.last, by.now)
		var unknown error // what is not known to be known waits, and the rest goes on
		if by.known, unknown = a.isKnown(ctx, r, by); unknown != nil {
			unknown = fmt.Errorf("looking whether API servers know the webhook's next authority: %w", unknown)
		}
		changed, err := r.renew(by)
		if err != nil {
			return fmt.Errorf("making the webhook's certificates: %w", err)
		}
		if !changed && !kept {
			return errors.Join(unknown, a.take(ctx, r))
		}
		if data, err = r.encode(); err != nil {
			return err
		}
		err = a.options.Store.Save(ctx, data, version)
		switch {
		case err == nil:
			return errors.Join(unknown, a.take(ctx, r))
		case !errors.Is(err, ErrConflict):
			return fmt.Errorf("storing the webhook's certificates: %w", err)
		}
	}
	return ErrConflict
}

// isKnown tells that API servers know the next authority, and have for a while: they
// hear of a configuration after it was written.
func (a *Authority) isKnown(ctx context.Context, r *record, by renewal) (bool, error) {
	if !r.due(by) {
		return true, nil
	}
	_, lasting, err := a.knows(ctx, r.next, by.now)
	return lasting, err
}

// knows tells whether API servers know an authority, and whether they have for a while.
func (a *Authority) knows(ctx context.Context, p *pair, now time.Time) (known, lasting bool, err error) {
	if a.options.Known == nil {
		return true, true, nil
	}
	key := string(p.cert.Raw)
	if known, err = a.options.Known(ctx, p.cert); err != nil || !known {
		delete(a.since, key)
		return false, false, err
	}
	if _, ok := a.since[key]; !ok {
		a.since[key] = now
	}
	return true, now.Sub(a.since[key]) >= a.terms.interval/2, nil
}

// take shows what a record has from now on. Of another authority it shows nothing before API
// servers know that, where there is something else to show.
func (a *Authority) take(ctx context.Context, r *record) error {
	a.last = r
	now := a.options.Now()
	known, lasting, err := a.knows(ctx, r.signer, now)
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
	if a.waits = a.shown != nil && !r.signer.is(a.shown) && !lasting && now.Before(a.serving.Leaf.NotAfter); a.waits {
		return err
	}
	a.serving = &tls.Certificate{Certificate: [][]byte{r.serving.cert.Raw}, PrivateKey: r.serving.key, Leaf: r.serving.cert}
	a.shown = r.signer.cert
	if a.trusted = nil; !known && err == nil {
		a.trusted = errUntrusted
	}
	return err
}

// errUntrusted is for whoever would send requests to a webhook that refuses them.
var errUntrusted = errors.New("API servers are not told yet to trust the webhook's certificate")

// pending tells that API servers are to be told of an authority.
func (a *Authority) pending() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.trusted != nil || a.waits
}

// Trusted tells why API servers do not trust what is shown; nil where they do.
func (a *Authority) Trusted() error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.trusted
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
	case a.options.Now().After(a.serving.Leaf.NotAfter):
		return errors.New("the webhook's certificate has expired")
	}
	return nil
}

// A Memory is a Store for one process, for as long as it runs.
type Memory struct {
	mu      sync.Mutex
	data    map[string][]byte
	version int
}

// Load implements Store.
func (m *Memory) Load(context.Context) (map[string][]byte, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.data), strconv.Itoa(m.version), nil
}

// Save implements Store.
func (m *Memory) Save(_ context.Context, data map[string][]byte, version string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if version != strconv.Itoa(m.version) {
		return ErrConflict
	}
	m.data = maps.Clone(data)
	m.version++
	return nil
}

// Files are certificates that somebody else writes: tls.crt, tls.key and ca.crt in
// a folder, as a mounted Secret of cert-manager has them.
type Files struct {
	dir     string
	watcher *certwatcher.CertWatcher

	mu      sync.Mutex
	bundle  []byte
	changed chan struct{}
}

// NewFiles reads a folder. ca.crt may be missing where the bundle gets into the
// configurations in another way, such as by cert-manager's injector.
func NewFiles(dir string) (*Files, error) {
	watcher, err := certwatcher.New(filepath.Join(dir, keyServing), filepath.Join(dir, keyPrivate))
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's certificates: %w", err)
	}
	f := &Files{dir: dir, watcher: watcher, changed: make(chan struct{}, 1)}
	watcher.RegisterCallback(func(tls.Certificate) { f.readBundle() })
	f.readBundle()
	return f, nil
}

// Run reads the files again when they change, until the context ends.
func (f *Files) Run(ctx context.Context) error { return f.watcher.Start(ctx) }

// readBundle keeps what there was if the file cannot be read.
func (f *Files) readBundle() {
	data, err := os.ReadFile(filepath.Join(f.dir, keyBundle))
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if string(data) == string(f.bundle) {
		return
	}
	f.bundle = data
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Certificate is for a handshake.
func (f *Files) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.watcher.GetCertificate(hello)
}

// Bundle are the authorities to trust, as PEM.
func (f *Files) Bundle() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bundle
}

// Changed yields after the bundle changed.
func (f *Files) Changed() <-chan struct{} { return f.changed }

// Ready is nil: there are no Files without a certificate.
func (f *Files) Ready() error { return nil }

// Trusted is nil: who writes the files has API servers trust them.
func (f *Files) Trusted() error { return nil }
