package testregistry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A TUF is a repository of TUF over HTTPS on loopback that has a trusted root of Sigstore: its metadata is
// written by hand, in consistent snapshots as the public Sigstore's is.
type TUF struct {
	URL    string
	Client http.RoundTripper
	// Expires is when what is published next counts no longer.
	Expires time.Time

	t      testing.TB
	keys   map[string]*Signer // by role
	root   int
	others int // the version of the other roles

	mu     sync.Mutex
	files  map[string][]byte
	answer func(http.ResponseWriter, *http.Request) (done bool)
	asked  []string
}

// The roles of a repository.
const (
	RoleRoot      = "root"
	RoleTimestamp = "timestamp"
	RoleSnapshot  = "snapshot"
	RoleTargets   = "targets"
)

// NewTUF is a repository with a root and without anything else.
func NewTUF(t testing.TB) *TUF {
	t.Helper()
	out := &TUF{t: t, Expires: time.Now().Add(24 * time.Hour), keys: map[string]*Signer{}, files: map[string][]byte{}}
	for _, role := range []string{RoleRoot, RoleTimestamp, RoleSnapshot, RoleTargets} {
		out.keys[role] = NewSigner(t)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		out.mu.Lock()
		name := strings.TrimPrefix(q.URL.Path, "/")
		out.asked = append(out.asked, name)
		data, found := out.files[name]
		answer := out.answer
		out.mu.Unlock()
		switch {
		case answer != nil && answer(w, q):
		case !found:
			http.NotFound(w, q)
		default:
			_, _ = w.Write(data)
		}
	}))
	t.Cleanup(server.Close)
	out.URL, out.Client = server.URL, server.Client().Transport
	out.Rotate()
	return out
}

// Rotate gives some roles other keys in a new root, which the keys before and the new ones sign.
func (r *TUF) Rotate(roles ...string) {
	r.t.Helper()
	by := []*Signer{r.keys[RoleRoot]}
	for _, role := range roles {
		r.keys[role] = NewSigner(r.t)
	}
	if r.keys[RoleRoot] != by[0] {
		by = append(by, r.keys[RoleRoot])
	}
	r.RootBy(by...)
}

// RootBy is a new root that some sign.
func (r *TUF) RootBy(by ...*Signer) {
	r.t.Helper()
	r.root++
	keys, roles := map[string]any{}, map[string]any{}
	for role, s := range r.keys {
		keys[s.tufID()] = s.tufKey()
		roles[role] = map[string]any{"keyids": []string{s.tufID()}, "threshold": 1}
	}
	signed := r.signed(RoleRoot, r.root, map[string]any{"consistent_snapshot": true, "keys": keys, "roles": roles})
	r.put(fmt.Sprintf("%d.root.json", r.root), r.document(signed, by...))
}

// Root is a root.json that it had.
func (r *TUF) Root(version int) []byte { return r.Files()[fmt.Sprintf("%d.root.json", version)] }

// Publish has another trusted root in the place of the one before.
func (r *TUF) Publish(trusted []byte) {
	r.t.Helper()
	r.PublishAs("trusted_root.json", trusted)
}

// PublishAs has a file of any name.
func (r *TUF) PublishAs(name string, data []byte) {
	r.t.Helper()
	r.others++
	hash := sha256.Sum256(data)
	r.put("targets/"+hex.EncodeToString(hash[:])+"."+name, data)
	targets := r.role(RoleTargets, map[string]any{"targets": map[string]any{name: fileOf(data)}})
	r.put(fmt.Sprintf("%d.targets.json", r.others), targets)
	snapshot := r.role(RoleSnapshot, map[string]any{"meta": map[string]any{"targets.json": r.metaOf(targets)}})
	r.put(fmt.Sprintf("%d.snapshot.json", r.others), snapshot)
	r.put("timestamp.json", r.role(RoleTimestamp, map[string]any{"meta": map[string]any{"snapshot.json": r.metaOf(snapshot)}}))
}

func fileOf(data []byte) map[string]any {
	hash := sha256.Sum256(data)
	return map[string]any{"length": len(data), "hashes": map[string]any{"sha256": hex.EncodeToString(hash[:])}}
}

func (r *TUF) metaOf(data []byte) map[string]any {
	out := fileOf(data)
	out["version"] = r.others
	return out
}

func (r *TUF) role(role string, content map[string]any) []byte {
	return r.document(r.signed(role, r.others, content), r.keys[role])
}

func (r *TUF) signed(role string, version int, content map[string]any) map[string]any {
	out := map[string]any{"_type": role, "spec_version": "1.0.31", "version": version, "expires": r.Expires.UTC().Format("2006-01-02T15:04:05Z")}
	maps.Copy(out, content)
	return out
}

func (r *TUF) document(signed map[string]any, by ...*Signer) []byte {
	r.t.Helper()
	var signatures []any
	for _, s := range by {
		signatures = append(signatures, map[string]any{"keyid": s.tufID(), "sig": hex.EncodeToString(s.Sign(canonical(signed)))})
	}
	out, err := json.Marshal(map[string]any{"signed": signed, "signatures": signatures})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// canonical is the canonical JSON that TUF signs: keys in order, and in texts only quotes and
// backslashes are escaped.
func canonical(of map[string]any) []byte {
	out, _ := json.Marshal(of)
	return bytes.ReplaceAll(out, []byte(`\n`), []byte("\n"))
}

func (s *Signer) tufKey() map[string]any {
	return map[string]any{"keytype": "ecdsa", "scheme": "ecdsa-sha2-nistp256", "keyval": map[string]any{"public": s.PEM()}}
}

func (s *Signer) tufID() string {
	hash := sha256.Sum256(canonical(s.tufKey()))
	return hex.EncodeToString(hash[:])
}

func (r *TUF) put(name string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[name] = data
}

// Files are those that it has.
func (r *TUF) Files() map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.files)
}

// Serve has other files than it published.
func (r *TUF) Serve(files map[string][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = maps.Clone(files)
}

// Answer answers in its place, unless it is nil or says that it did not.
func (r *TUF) Answer(answer func(http.ResponseWriter, *http.Request) (done bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// Asked are the files that it was asked for, since the last time.
func (r *TUF) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.asked
	r.asked = nil
	return out
}
