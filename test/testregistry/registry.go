package testregistry

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A Registry is one in memory.
type Registry struct {
	Host string

	t      testing.TB
	mu     sync.Mutex
	answer func(http.ResponseWriter, *http.Request) (done bool)
	asked  []string
}

// New is an empty registry that is there as long as the test.
func New(t testing.TB) *Registry {
	t.Helper()
	r := &Registry{t: t}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, q.Method+" "+q.URL.Path)
		answer := r.answer
		r.mu.Unlock()
		if answer == nil || !answer(w, q) {
			inner.ServeHTTP(w, q)
		}
	}))
	t.Cleanup(server.Close)
	r.Host = strings.TrimPrefix(server.URL, "http://")
	return r
}

// Answer has requests answered otherwise, where done, and forgets what was asked.
func (r *Registry) Answer(otherwise func(http.ResponseWriter, *http.Request) (done bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer, r.asked = otherwise, nil
}

// Asked is what was asked for, as METHOD /path.
func (r *Registry) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

// Push puts an image at repository:tag. It is known as host/repository@sha256:….
func (r *Registry) Push(tag string) (pinned string) {
	r.t.Helper()
	one, err := random.Image(64, 1)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(tag, one)
	digest, err := one.Digest()
	if err != nil {
		r.t.Fatal(err)
	}
	repository, _, _ := strings.Cut(tag, ":")
	return r.Host + "/" + repository + "@" + digest.String()
}

func (r *Registry) write(tag string, one v1.Image) {
	r.t.Helper()
	ref, err := name.ParseReference(r.Host+"/"+tag, name.Insecure)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := remote.Write(ref, one); err != nil {
		r.t.Fatal(err)
	}
}

// A Layer is a blob with the annotations that its manifest has of it.
type Layer struct {
	Data        []byte
	Annotations map[string]string
}

// Attach puts layers beside an image that is pinned: its signatures under the suffix sig, its
// attestations under att.
func (r *Registry) Attach(pinned, suffix string, layers ...Layer) {
	r.t.Helper()
	one := empty.Image
	for _, l := range layers {
		var err error
		one, err = mutate.Append(one, mutate.Addendum{Layer: static.NewLayer(l.Data, types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")), Annotations: l.Annotations})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	repository, digest, _ := strings.Cut(strings.TrimPrefix(pinned, r.Host+"/"), "@")
	r.write(repository+":"+strings.Replace(digest, ":", "-", 1)+"."+suffix, one)
}

// Digest is that of an image that is pinned.
func Digest(pinned string) string {
	_, digest, _ := strings.Cut(pinned, "@")
	return digest
}
