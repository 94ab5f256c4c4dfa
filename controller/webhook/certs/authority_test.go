package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// memory is a Store.
type memory struct {
	mu      sync.Mutex
	data    map[string][]byte
	version int
	saves   int
	before  func() // is called in front of a save
}

func (m *memory) Load(context.Context) (map[string][]byte, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.data), strconv.Itoa(m.version), nil
}

func (m *memory) Save(_ context.Context, data map[string][]byte, version string) error {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if version != strconv.Itoa(m.version) {
		return ErrConflict
	}
	m.data, m.version, m.saves = maps.Clone(data), m.version+1, m.saves+1
	return nil
}

// clock is what the test says.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func loopback() Names {
	return Names{DNS: []string{"kvap.kvap.svc"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

// Over three years of two replicas that look at different times, every handshake
// succeeds with each bundle that an API server may still hold: one up to half an hour
// old. A live server shows the certificates.
func TestRotationDropsNoHandshake(t *testing.T) {
	store, time0 := &memory{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &clock{now: time0}
	replicas := []*Authority{NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now}), NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now})}
	for _, a := range replicas {
		if err := a.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	urls := []string{serve(t, replicas[0]), serve(t, replicas[1])}
	seen := map[string]bool{}
	handshakes := 0
	stale := replicas[0].Bundle()
	for c.Now().Before(time0.AddDate(3, 0, 0)) {
		bundle := replicas[0].Bundle()
		// The step is short around a change, and a day elsewhere.
		step := 24 * time.Hour
		if string(bundle) != string(stale) || hasNext(store) {
			step = 30 * time.Minute
		}
		stale = bundle
		c.advance(step)
		for _, a := range replicas {
			if err := a.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			leaf, _ := a.Certificate(nil)
			serial := leaf.Leaf.SerialNumber.String()
			if seen[serial] && step > time.Hour {
				continue
			}
			seen[serial] = true
			verify(t, leaf.Leaf, stale, c.Now())
			verify(t, leaf.Leaf, bundle, c.Now())
		}
		if handshakes < len(seen)*2 {
			for _, url := range urls {
				handshakes++
				get(t, url, stale, c.Now)
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("only %d certificates in three years", len(seen))
	}
	if store.saves > 40 {
		t.Errorf("%d writes in three years", store.saves)
	}
}

func hasNext(m *memory) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.data[keyNext]) > 0
}

func verify(t *testing.T, leaf *x509.Certificate, bundle []byte, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "kvap.kvap.svc", CurrentTime: now}); err != nil {
		t.Fatalf("at %s: %v", now, err)
	}
}

// serve shows an authority's certificates.
func serve(t *testing.T, a *Authority) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: a.Certificate})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return "https://" + l.Addr().String()
}

func get(t *testing.T, url string, bundle []byte, now func() time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Time: now}, DisableKeepAlives: true}
	r, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		t.Fatalf("at %s: %v", now(), err)
	}
	r.Body.Close()
}

// At rest nothing is written, and a replica that starts takes what there is.
func TestRestAndRestart(t *testing.T) {
	store, c := &memory{}, &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	first := NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now})
	if err := first.Ready(); err == nil {
		t.Error("ready without a certificate")
	}
	for range 3 {
		if err := first.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	second := NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now})
	if err := second.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if store.saves != 1 || string(first.Bundle()) != string(second.Bundle()) {
		t.Errorf("%d writes", store.saves)
	}
	<-first.Changed()
	select {
	case <-first.Changed():
		t.Error("it tells of a change that was none")
	default:
	}
}

// Of two replicas that start at once, one's authority counts.
func TestTwoAtOnce(t *testing.T) {
	store, c := &memory{}, &clock{now: time.Now()}
	one, two := NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now}), NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now})
	store.before = func() {
		if err := two.Renew(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := one.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if string(one.Bundle()) != string(two.Bundle()) || store.saves != 1 {
		t.Errorf("the replicas differ after %d writes", store.saves)
	}
}

// Another name needs another certificate, and no other authority; and what cannot be
// read is made anew.
func TestNamesAndRubbish(t *testing.T) {
	store, c := &memory{}, &clock{now: time.Now()}
	a := NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now})
	if err := a.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := NewAuthority(Options{Store: store, Names: Names{DNS: []string{"other.kvap.svc"}}, Now: c.Now})
	if err := b.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	leaf, _ := b.Certificate(nil)
	if err := leaf.Leaf.VerifyHostname("other.kvap.svc"); err != nil || string(a.Bundle()) != string(b.Bundle()) {
		t.Errorf("%v", err)
	}
	store.data[keyCA] = []byte("rubbish")
	if err := b.Renew(t.Context()); err != nil || b.Ready() != nil {
		t.Errorf("%v %v", err, b.Ready())
	}
}

// What expires while nobody renews is not ready, and is made anew.
func TestExpiry(t *testing.T) {
	store, c := &memory{}, &clock{now: time.Now()}
	a := NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now})
	if err := a.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.advance(2 * 365 * 24 * time.Hour)
	if a.Ready() == nil {
		t.Error("ready with a certificate that has expired")
	}
	if err := a.Renew(t.Context()); err != nil || a.Ready() != nil {
		t.Errorf("%v %v", err, a.Ready())
	}
	leaf, _ := a.Certificate(nil)
	verify(t, leaf.Leaf, a.Bundle(), c.Now())
}

// brokenStore fails.
type brokenStore struct{ memory }

func (*brokenStore) Save(context.Context, map[string][]byte, string) error {
	return errors.New("forbidden")
}

func TestWhatCannotBeStoredIsNotShown(t *testing.T) {
	a := NewAuthority(Options{Store: &brokenStore{}, Names: loopback(), Now: time.Now})
	if err := a.Renew(t.Context()); err == nil || a.Ready() == nil {
		t.Errorf("%v %v", err, a.Ready())
	}
}

// A new authority signs nothing before API servers were told to trust it, however long
// nobody told them, for instance because the process was killed; but where the old one
// has ended, it does.
func TestSignsNothingBeforeKnown(t *testing.T) {
	store, c := &memory{}, &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	told := map[string]bool{}
	authority := func() *Authority {
		return NewAuthority(Options{Store: store, Names: loopback(), Now: c.Now, Known: func(_ context.Context, authority *x509.Certificate) (bool, error) {
			if serial := authority.SerialNumber.String(); !told[serial] {
				return false, errors.New("nobody wrote the configuration")
			}
			return true, nil
		}})
	}
	renew := func(a *Authority, d time.Duration) *tls.Certificate {
		t.Helper()
		c.advance(d)
		_ = a.Renew(t.Context()) // not known is told, and no more
		serving, err := a.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return serving
	}
	first := renew(authority(), 0)
	signer, err := decodeRecord(store.data)
	if err != nil {
		t.Fatal(err)
	}
	renew(authority(), 306*24*time.Hour)
	if !hasNext(store) {
		t.Fatal("there is no next authority")
	}
	for range 30 {
		if now := renew(authority(), 24*time.Hour); now.Leaf.CheckSignatureFrom(signer.signer.cert) != nil || now.Leaf.Equal(first.Leaf) {
			t.Fatal("the next authority has signed, or nobody")
		}
	}
	next, err := decodeRecord(store.data)
	if err != nil {
		t.Fatal(err)
	}
	told[next.next.cert.SerialNumber.String()] = true
	a := authority()
	if now := renew(a, 0); now.Leaf.CheckSignatureFrom(signer.signer.cert) != nil {
		t.Error("the next authority signs as soon as it was told of")
	}
	if now := renew(a, 10*time.Minute); now.Leaf.CheckSignatureFrom(next.next.cert) != nil {
		t.Error("the next authority does not sign")
	}
	renew(a, 310*24*time.Hour) // the next but one, of which nobody tells
	if now := renew(a, 60*24*time.Hour); a.Ready() != nil || now.Leaf.CheckSignatureFrom(next.next.cert) == nil {
		t.Errorf("the old authority has ended: %v", a.Ready())
	}
}

// Files are read again when they are replaced, as by a mounted Secret.
func TestFiles(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	write := func() *record {
		r := &record{}
		if _, err := r.renew(renewal{names: loopback(), terms: termsOf(365 * 24 * time.Hour), now: now}); err != nil {
			t.Fatal(err)
		}
		data, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{keyPrivate, keyServing, keyBundle} {
			if err := os.WriteFile(filepath.Join(dir, name+".new"), data[name], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{keyBundle, keyPrivate, keyServing} {
			if err := os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	first := write()
	f, err := NewFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.watcher.WithWatchInterval(20 * time.Millisecond) // whatever the file system tells of
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = f.Run(ctx) }()
	if got, _ := f.Certificate(nil); !got.Leaf.Equal(first.serving.cert) {
		t.Error("another certificate")
	}
	second := write()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got, err := f.Certificate(nil)
		if err == nil && got.Leaf.Equal(second.serving.cert) && string(f.Bundle()) == string(second.bundle()) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the new files are not seen")
		}
	}
	if _, err := NewFiles(t.TempDir()); err == nil {
		t.Error("an empty folder is taken")
	}
}
