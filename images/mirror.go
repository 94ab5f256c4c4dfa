package images

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/config"
	"github.com/theupdateframework/go-tuf/v2/metadata/updater"
)

// A Mirror is where a TUF repository has a trusted root, and who may change it.
//
//	https://tuf-repo-cdn.sigstore.dev    15.root.json, timestamp.json, …, targets/….trusted_root.json
type Mirror struct {
	URL string
	// Root is a root.json of the repository, which the operator trusts: whoever it names signs the
	// next one, and all else.
	Root []byte
	// Dir is a folder where the answers stay, in a folder for each URL and Root.
	Dir string
	// Local allows addresses of this machine and of its link, and Client is how the repository is
	// asked; nil as registries are.
	Local  bool
	Client http.RoundTripper
}

// A MirrorRead is what came of asking a repository.
type MirrorRead struct {
	Err     error     // ErrUnreachable, or why its answer is not taken
	Changed bool      // the trusted root is another than before
	Expires time.Time // when what it answered counts no longer; zero with an error
}

// A TrustMirror is a trusted root that a TUF repository has. What is not taken of it, because it
// is not signed as the root says, is older than what was there, has expired, or is another file
// than the one that is signed for, leaves the one before in force; so does a repository that does
// not answer, also after a restart.
type TrustMirror struct {
	mirror Mirror
	dir    string
	told   func(MirrorRead)
	now    func() time.Time

	current atomic.Pointer[Trust]

	asking sync.Mutex
	data   []byte // of the one in force
}

const (
	// How often a repository is asked: after an answer, and after the first that was none, from
	// then on with twice the pause each time.
	mirrorLife  = time.Hour
	mirrorPause = time.Minute

	mirrorTimeout = 30 * time.Second
	trustTarget   = "trusted_root.json"
)

// OpenMirror has what the folder has of the repository, and asks nobody.
func OpenMirror(m Mirror, told func(MirrorRead)) (*TrustMirror, error) {
	at, err := url.Parse(m.URL)
	switch {
	case err != nil:
		return nil, err
	case at.Scheme != "https" || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return nil, fmt.Errorf("%q is not the address of a TUF repository; write https://HOST/PATH", m.URL)
	case len(m.Root) > maxTrust:
		return nil, fmt.Errorf("the root.json has more than %d bytes", maxTrust)
	}
	t := &TrustMirror{mirror: m, told: told, now: time.Now, dir: filepath.Join(m.Dir, hex.EncodeToString(sum(append([]byte(m.URL+"\n"), m.Root...)))[:16])}
	if t.told == nil {
		t.told = func(MirrorRead) {}
	}
	if _, err := updater.New(&config.UpdaterConfig{LocalTrustedRoot: m.Root, RemoteMetadataURL: m.URL, DisableLocalCache: true}); err != nil {
		return nil, fmt.Errorf("the root.json of the TUF repository: %w", err)
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return nil, err
	}
	t.current.Store(&Trust{id: "unknown", unknown: fmt.Errorf("%w: the TUF repository %s has not answered yet, so who is trusted is not known", ErrUnreachable, m.URL)})
	if data, err := readSmall(filepath.Join(t.dir, trustTarget)); err == nil {
		if trust, err := ReadTrust(data); err == nil {
			t.data = data
			t.current.Store(trust)
		}
	}
	return t, nil
}

// Trust is the one in force. Until the repository has answered once, all that depends on it is
// ErrUnreachable.
func (t *TrustMirror) Trust() *Trust { return t.current.Load() }

// Run asks the repository until the context ends.
func (t *TrustMirror) Run(ctx context.Context) {
	for pause := mirrorPause; ; {
		wait := mirrorLife
		if t.Refresh(ctx) != nil {
			wait, pause = pause, min(2*pause, mirrorLife)
		} else {
			pause = mirrorPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Refresh asks the repository once.
func (t *TrustMirror) Refresh(ctx context.Context) error {
	t.asking.Lock()
	defer t.asking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, mirrorTimeout)
	defer cancel()
	data, expires, err := t.ask(ctx)
	read := MirrorRead{Err: err, Expires: expires, Changed: err == nil && !bytes.Equal(data, t.data)}
	if read.Changed {
		if read.Err = t.take(data); read.Err != nil {
			read.Changed, read.Expires = false, time.Time{}
		}
	}
	if read.Err != nil {
		read.Err = fmt.Errorf("the TUF repository %s: %w", t.mirror.URL, classified(read.Err))
	}
	t.told(read)
	return read.Err
}

// take makes a trusted root the one in force, and keeps it.
func (t *TrustMirror) take(data []byte) error {
	trust, err := ReadTrust(data)
	if err != nil {
		return err
	}
	at := filepath.Join(t.dir, trustTarget)
	if err := errors.Join(os.WriteFile(at+".new", data, 0o600), os.Rename(at+".new", at)); err != nil {
		return err
	}
	t.data = data
	t.current.Store(trust)
	return nil
}

// ask is the trusted root that the repository has, proven as TUF says it, and when that counts no
// longer.
func (t *TrustMirror) ask(ctx context.Context) (data []byte, expires time.Time, err error) {
	u, err := t.updater(ctx)
	if err != nil {
		return nil, expires, err
	}
	u.UnsafeSetRefTime(t.now()) // unsafe only with another time
	if err := u.Refresh(); err != nil {
		return nil, expires, err
	}
	target, err := u.GetTargetInfo(trustTarget)
	if err != nil {
		return nil, expires, err
	}
	if target.Length > maxTrust {
		return nil, expires, fmt.Errorf("%s has %d bytes, and %d at most are read", trustTarget, target.Length, maxTrust)
	}
	if _, data, err = u.FindCachedTarget(target, ""); err == nil && data == nil {
		_, data, err = u.DownloadTarget(target, "", "")
	}
	if err != nil {
		return nil, expires, err
	}
	all := u.GetTrustedMetadataSet()
	return data, slices.MinFunc([]time.Time{
		all.Root.Signed.Expires, all.Timestamp.Signed.Expires, all.Snapshot.Signed.Expires, all.Targets[metadata.TARGETS].Signed.Expires,
	}, time.Time.Compare), nil
}

// updater goes on where it was last: from the newest root.json that was proven.
func (t *TrustMirror) updater(ctx context.Context) (*updater.Updater, error) {
	options, err := config.New(t.mirror.URL, t.mirror.Root)
	if err != nil {
		return nil, err
	}
	options.LocalMetadataDir, options.LocalTargetsDir = t.dir, filepath.Join(t.dir, "targets")
	options.MaxDelegations = 4
	options.Fetcher = t.fetcher(ctx)
	t.tidy()
	if root, err := readSmall(filepath.Join(t.dir, "root.json")); err == nil {
		newest := *options
		newest.LocalTrustedRoot = root
		if u, err := updater.New(&newest); err == nil {
			return u, nil
		}
	}
	return updater.New(options)
}

// tidy drops what was cut off in the folder, which would be an error each time.
func (t *TrustMirror) tidy() {
	for name, read := range map[string]func([]byte) error{
		metadata.TIMESTAMP: func(data []byte) error { _, err := metadata.Timestamp().FromBytes(data); return err },
		metadata.SNAPSHOT:  func(data []byte) error { _, err := metadata.Snapshot().FromBytes(data); return err },
		metadata.TARGETS:   func(data []byte) error { _, err := metadata.Targets().FromBytes(data); return err },
	} {
		at := filepath.Join(t.dir, name+".json")
		if data, err := os.ReadFile(at); err == nil && read(data) != nil {
			_ = os.Remove(at)
		}
	}
}

// A mirrorFetcher asks a repository, within the time of a context.
type mirrorFetcher struct {
	ctx    context.Context
	client *http.Client
}

const maxMirrorRedirects = 3

func (t *TrustMirror) fetcher(ctx context.Context) mirrorFetcher {
	through := t.mirror.Client
	if through == nil {
		through = Registry{Local: t.mirror.Local}.transport()
	}
	return mirrorFetcher{context.WithValue(ctx, limitOfBlob{}, int64(maxMirrorFile)), &http.Client{Transport: through, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxMirrorRedirects || r.URL.Host != via[0].URL.Host || r.URL.Scheme != "https" {
			return refused(fmt.Sprintf("%s redirects to %s, and a TUF repository is one host", via[0].URL.Host, r.URL.Host))
		}
		return nil
	}}}
}

// maxMirrorFile bounds all files of a repository; each has a bound of its own below.
const maxMirrorFile = 8 << 20

// DownloadFile implements fetcher.Fetcher.
func (f mirrorFetcher) DownloadFile(at string, limit int64, _ time.Duration) ([]byte, error) {
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read, or is not wanted
	if response.StatusCode != http.StatusOK {
		answer := &metadata.ErrDownloadHTTP{StatusCode: response.StatusCode, URL: at}
		if response.StatusCode == http.StatusNotFound {
			return nil, answer
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, answer)
	}
	limit = min(cmp.Or(limit, maxTrust), maxMirrorFile-1)
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", at, limit)
	}
	return data, err
}
