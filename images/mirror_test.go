package images

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/test/testregistry"
)

// A mirrored is a TUF repository, and what is kept of it.
type mirrored struct {
	*testing.T
	*testregistry.TUF

	root []byte
	dir  string
	told []MirrorRead
	*TrustMirror
}

func mirroring(t *testing.T) *mirrored {
	t.Helper()
	m := &mirrored{T: t, TUF: testregistry.NewTUF(t), dir: t.TempDir()}
	m.root = m.Root(1)
	m.open()
	return m
}

// open is what a restart does.
func (m *mirrored) open() {
	m.Helper()
	var err error
	m.TrustMirror, err = OpenMirror(Mirror{URL: m.URL, Root: m.root, Dir: m.dir, Local: true, Client: m.TUF.Client}, func(r MirrorRead) { m.told = append(m.told, r) })
	if err != nil {
		m.Fatal(err)
	}
}

// published is another trusted root in the repository.
func (m *mirrored) published() (id string) {
	data := rootFile(m.T, testregistry.NewAuthority(m.T, nil, time.Hour))
	m.Publish(data)
	return hex.EncodeToString(sum(data))
}

// is holds what is in force to a trusted root.
func (m *mirrored) is(what, id string) {
	m.Helper()
	if got := m.Trust().ID(); got != id {
		m.Errorf("%s: %.12s is in force and not %.12s", what, got, id)
	}
}

// refused holds a refresh to an error, and to what was in force.
func (m *mirrored) refused(what, because string) {
	m.Helper()
	before := m.Trust().ID()
	says(m.T, what, m.Refresh(m.Context()), because)
	m.is(what, before)
}

func (m *mirrored) taken(what, id string) {
	m.Helper()
	if err := m.Refresh(m.Context()); err != nil {
		m.Errorf("%s: %v", what, err)
	}
	m.is(what, id)
}

func TestMirror(t *testing.T) {
	m := mirroring(t)
	m.is("before it was asked", "unknown")
	m.taken("the first", m.published())
	m.taken("the second", m.published())
	m.Asked()
	m.taken("the same", m.Trust().ID())
	if asked := m.Asked(); !slices.Equal(asked, []string{"2.root.json", "timestamp.json"}) {
		t.Errorf("it was asked for %v", asked)
	}
	for i, changed := range []bool{true, true, false} {
		if got := m.told[i]; got.Err != nil || got.Changed != changed || got.Expires.Sub(m.Expires).Abs() > time.Second {
			t.Errorf("told %+v", got)
		}
	}
	m.Rotate(testregistry.RoleRoot, testregistry.RoleTimestamp, testregistry.RoleTargets)
	m.taken("by a root that is new", m.published())
	m.Rotate(testregistry.RoleRoot)
	m.Rotate(testregistry.RoleRoot, testregistry.RoleSnapshot)
	third := m.published()
	m.taken("two roots later", third)
	m.open()
	m.is("after a restart", third)
	m.Asked()
	m.taken("after a restart", third)
	if asked := m.Asked(); slices.Contains(asked, "2.root.json") {
		t.Errorf("the way from the first root is gone again: %v", asked)
	}
	m.root = m.Root(4) // the operator pins another
	m.open()
	m.is("by another root", "unknown")
	m.taken("by another root", third)
}

// What is not as it must be leaves what is in force.
func TestMirrorIsHeldToItsRoot(t *testing.T) {
	with := func(name string, change func(m *mirrored), because string) {
		t.Run(name, func(t *testing.T) {
			m := mirroring(t)
			m.taken("the first", m.published())
			change(m)
			m.refused(name, because)
			if told := m.told[len(m.told)-1]; told.Err == nil || errors.Is(told.Err, ErrUnreachable) || told.Changed || !told.Expires.IsZero() {
				t.Errorf("told %+v", told)
			}
			before := m.Trust().ID()
			m.open()
			m.is("after a restart", before)
		})
	}
	with("a rollback", func(m *mirrored) {
		before := m.Files()
		m.taken("the second", m.published())
		m.Serve(before)
	}, "version")
	with("a rollback after a restart", func(m *mirrored) {
		before := m.Files()
		m.taken("the second", m.published())
		m.Serve(before)
		m.open()
	}, "version")
	with("expired", func(m *mirrored) {
		m.Expires = time.Now().Add(-time.Minute)
		m.published()
	}, "expired")
	with("expired since", func(m *mirrored) {
		m.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	}, "expired")
	with("a root that has expired", func(m *mirrored) {
		m.Expires = time.Now().Add(-time.Minute)
		m.Rotate(testregistry.RoleRoot)
		m.Expires = time.Now().Add(time.Hour)
		m.published()
	}, "expired")
	with("another file than is signed for", func(m *mirrored) {
		m.published()
		files := m.Files()
		for name := range files {
			if strings.HasPrefix(name, "targets/") {
				files[name] = slices.Concat([]byte{' '}, files[name][:len(files[name])-1])
			}
		}
		m.Serve(files)
	}, "hash")
	with("a bit of the timestamp", func(m *mirrored) {
		m.published()
		files := m.Files()
		files["timestamp.json"] = []byte(strings.Replace(string(files["timestamp.json"]), `"version":2`, `"version":3`, 1))
		m.Serve(files)
	}, "not enough signatures")
	with("a root that the one before did not sign", func(m *mirrored) {
		other := testregistry.NewTUF(m.T)
		other.Rotate(testregistry.RoleRoot)
		other.Publish(rootFile(m.T, testregistry.NewAuthority(m.T, nil, time.Hour)))
		m.Serve(other.Files())
	}, "not enough signatures")
	with("a root that only the one before signed", func(m *mirrored) {
		before := testregistry.NewSigner(m.T)
		m.RootBy(before)
	}, "not enough signatures")
	with("metadata of another repository", func(m *mirrored) {
		other := testregistry.NewTUF(m.T)
		for range 2 {
			other.Publish(rootFile(m.T, testregistry.NewAuthority(m.T, nil, time.Hour)))
		}
		m.Serve(other.Files())
	}, "not enough signatures")
	with("no trusted root", func(m *mirrored) { m.PublishAs("other.json", []byte("{}")) }, "trusted_root.json")
	with("a trusted root that cannot be read", func(m *mirrored) { m.Publish([]byte("{}")) }, "no authority")
	with("a trusted root that is too large", func(m *mirrored) { m.Publish([]byte(strings.Repeat(" ", maxTrust+1))) }, "at most are read")
	with("endless", func(m *mirrored) {
		m.Answer(func(w http.ResponseWriter, q *http.Request) bool {
			for strings.HasSuffix(q.URL.Path, "/timestamp.json") {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					break
				}
			}
			return false
		})
	}, "more than 16384 bytes")
	with("a redirect elsewhere", func(m *mirrored) {
		other := testregistry.NewTUF(m.T)
		m.Answer(func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, other.URL+q.URL.Path, http.StatusFound)
			return true
		})
	}, "one host")
	with("a redirect to what has no TLS", func(m *mirrored) {
		m.Answer(func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, "http://"+q.Host+q.URL.Path, http.StatusFound)
			return true
		})
	}, "one host")
}

// An outage of the repository is not felt, however long, unless it never answered.
func TestMirrorIsAway(t *testing.T) {
	m := mirroring(t)
	for _, answer := range []func(http.ResponseWriter, *http.Request) bool{
		func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		},
		func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true },
		func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	} {
		m.Answer(answer)
		m.refused("away", m.URL)
		if !errors.Is(m.told[len(m.told)-1].Err, ErrUnreachable) {
			t.Errorf("it is told as refused: %v", m.told[len(m.told)-1].Err)
		}
	}
	m.is("never known", "unknown")
	m.Answer(nil)
	first := m.published()
	m.taken("back", first)
	m.Answer(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true })
	m.now = func() time.Time { return time.Now().AddDate(1, 0, 0) }
	m.refused("away for a year", "502")
	m.open()
	m.is("after a restart", first)
	// Halfway: the timestamp is new, and what it names is not there.
	m.open()
	m.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "snapshot") {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	})
	second := m.published()
	m.refused("halfway", "502")
	m.open()
	m.is("after a restart", first)
	m.Answer(nil)
	m.taken("back", second)
}

// What is broken in the folder is asked for again.
func TestMirrorWithABrokenFolder(t *testing.T) {
	m := mirroring(t)
	first := m.published()
	m.Rotate(testregistry.RoleRoot)
	m.taken("the first", first)
	err := filepath.Walk(m.dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			err = os.WriteFile(path, []byte("x"), 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m.open()
	m.is("broken", "unknown")
	m.taken("asked again", first)
}

// Until who is trusted is known, what depends on it is unreachable; the rest does not mind.
func TestUnknownTrust(t *testing.T) {
	unknown := mirroring(t).Trust()
	key, root := testregistry.NewSigner(t), testregistry.NewAuthority(t, nil, time.Hour)
	roots := root.Certificate()
	for _, tt := range []struct {
		what string
		by   Attestor
		asks bool
	}{
		{"a key", Attestor{Key: key.PEM(), IgnoreLog: true}, false},
		{"a key, and a log", Attestor{Key: key.PEM()}, true},
		{"a key, and its own log", Attestor{Key: key.PEM(), Log: key.PEM()}, false},
		{"keyless", Attestor{Keyless: &Keyless{Subject: "a"}}, true},
		{"keyless, by its own log", Attestor{Log: key.PEM(), Keyless: &Keyless{Subject: "a", IgnoreSCT: true}}, true},
		{"keyless, by its own roots", Attestor{Log: key.PEM(), Keyless: &Keyless{Subject: "a", Roots: roots}}, true},
		{"keyless, by its own roots and logs", Attestor{Log: key.PEM(), CertificateLog: key.PEM(), Keyless: &Keyless{Subject: "a", Roots: roots}}, false},
		{"keyless, by its own roots, and one log", Attestor{Log: key.PEM(), Keyless: &Keyless{Subject: "a", Roots: roots, IgnoreSCT: true}}, false},
		{"keyless, and a time by anybody", Attestor{IgnoreLog: true, Keyless: &Keyless{Subject: "a", Roots: roots, IgnoreSCT: true}}, true},
		{"a chain", Attestor{Chain: roots, Log: key.PEM()}, false},
		{"a chain, and logs of certificates", Attestor{Chain: roots, Log: key.PEM(), LoggedCertificates: true}, true},
		{"Notary", Attestor{Chain: roots, Format: Notation}, false},
	} {
		_, err := NewVerifier(tt.by, unknown, time.Now)
		if got := errors.Is(err, ErrUnreachable); got != tt.asks || err != nil && !tt.asks {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
}

func TestMirrorsThatAreNone(t *testing.T) {
	repo := testregistry.NewTUF(t)
	for url, because := range map[string]string{
		"http://tuf.acme.io": "https://HOST/PATH", "tuf.acme.io": "https://HOST/PATH", "https://": "https://HOST/PATH",
		"https://a:b@tuf.acme.io": "https://HOST/PATH", "https://tuf.acme.io?a=b": "https://HOST/PATH", "https://tuf acme": "invalid",
	} {
		_, err := OpenMirror(Mirror{URL: url, Root: repo.Root(1), Dir: t.TempDir()}, nil)
		says(t, url, err, because)
	}
	for name, root := range map[string][]byte{"none": nil, "no JSON": []byte("x"), "too large": make([]byte, maxTrust+1), "not signed": []byte(strings.ReplaceAll(string(repo.Root(1)), `"version":1`, `"version":2`))} {
		_, err := OpenMirror(Mirror{URL: repo.URL, Root: root, Dir: t.TempDir()}, nil)
		says(t, name, err, "root.json")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenMirror(Mirror{URL: repo.URL, Root: repo.Root(1), Dir: file}, nil)
	says(t, "a file", err, "not a directory")
	// An address of this machine is no mirror's, unless that is allowed.
	m, err := OpenMirror(Mirror{URL: repo.URL, Root: repo.Root(1), Dir: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	says(t, "this machine", m.Refresh(t.Context()), "of this machine")
	if len(repo.Asked()) > 0 {
		t.Error("it was asked")
	}
}

func TestMirrorRuns(t *testing.T) {
	m := mirroring(t)
	id := m.published()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { m.TrustMirror.Run(ctx); close(ended) }()
	for m.Trust().ID() != id {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
}
