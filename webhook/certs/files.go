package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

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
