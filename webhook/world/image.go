package world

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/interp"
)

// imageData is what registries said.
type imageData struct {
	mu    sync.Mutex
	known map[string]image
}

// An image is what a registry knows of one.
type image struct {
	data  map[string]any
	until time.Time
}

// How long an answer is used again: what a digest names never changes, a tag may
// move. How many are kept.
const (
	digestLife = time.Hour
	tagLife    = 30 * time.Second
	maxImages  = 500
)

func newImages() *imageData { return &imageData{known: map[string]image{}} }

// Image is what a registry knows of an image, if the list of registries allows to
// ask.
func (w *World) Image(ctx context.Context, reference string, with interp.Access) (map[string]any, error) {
	wanted, _ := with.Credentials.(map[string]any)
	insecure, _ := wanted["allowInsecureRegistry"].(bool)
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(reference, options...)
	if err != nil {
		return nil, fmt.Errorf("failed to parse image reference: %s: %w", reference, err)
	}
	if !w.mayAsk(ref) {
		return nil, fmt.Errorf("the registry of %s is not allowed; name it with --image-registries", reference)
	}
	key, err := json.Marshal([]any{reference, with})
	if err != nil {
		return nil, err
	}
	return w.images.get(string(key), ref, func() (map[string]any, error) {
		ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
		defer cancel()
		keys, err := w.keychain(ctx, wanted, with.Namespace)
		if err != nil {
			return nil, err
		}
		return images.Describe(reference, ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(keys),
			remote.WithTransport(&bounded{transport(insecure), w.options.MaxBytes}))
	})
}

// get is what is known, or what fetch finds out.
func (i *imageData) get(key string, ref name.Reference, fetch func() (map[string]any, error)) (map[string]any, error) {
	now := time.Now()
	i.mu.Lock()
	found, ok := i.known[key]
	i.mu.Unlock()
	if ok && now.Before(found.until) {
		return found.data, nil
	}
	data, err := fetch()
	if err != nil {
		return nil, err
	}
	life := tagLife
	if _, isDigest := ref.(name.Digest); isDigest {
		life = digestLife
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) >= maxImages {
		i.forget(now)
	}
	i.known[key] = image{data, now.Add(life)}
	return data, nil
}

// forget drops what is too old; all, if that is nothing.
func (i *imageData) forget(now time.Time) {
	for key, one := range i.known {
		if now.After(one.until) {
			delete(i.known, key)
		}
	}
	if len(i.known) >= maxImages {
		clear(i.known)
	}
}

// mayAsk tells whether the list of registries has the one of the image. An entry is
// a registry, perhaps with the beginning of a repository; * is all, and *. in front
// of a name all below it.
func (w *World) mayAsk(ref name.Reference) bool {
	registry := strings.Replace(ref.Context().RegistryStr(), "index.docker.io", "docker.io", 1)
	return slices.ContainsFunc(w.options.Registries, func(entry string) bool {
		host, repository, _ := strings.Cut(strings.TrimSuffix(entry, "/"), "/")
		hosts := host == "*" || host == registry
		if below, ok := strings.CutPrefix(host, "*."); ok {
			hosts = strings.HasSuffix(registry, "."+below)
		}
		at := ref.Context().RepositoryStr()
		return hosts && (repository == "" || at == repository || strings.HasPrefix(at, repository+"/"))
	})
}

func transport(insecure bool) http.RoundTripper {
	if !insecure {
		return remote.DefaultTransport
	}
	t := remote.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the policy's author asked for it
	return t
}

// bounded cuts answers that are too large.
type bounded struct {
	http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, b.limit), response.Body}
	}
	return response, err
}

// keychain has the pull secrets that a rule names, and those of the process. The secrets of a
// policy of a namespace are there: who may write one need not be allowed to use others.
func (w *World) keychain(ctx context.Context, wanted map[string]any, namespace string) (authn.Keychain, error) {
	from := cmp.Or(namespace, w.options.RegistrySecrets)
	secrets, _ := wanted["secrets"].([]any)
	var chain []authn.Keychain
	for _, item := range secrets {
		secret, _ := item.(string)
		if from == "" || strings.ContainsAny(secret, "/%") {
			return nil, fmt.Errorf("the pull secret %q is not available", secret)
		}
		at := apiPath{resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}
		object, err := w.object(ctx, at.path(from, secret))
		if err != nil {
			return nil, fmt.Errorf("the pull secret %s/%s: %w", from, secret, err)
		}
		one, err := readSecret(object)
		if err != nil {
			return nil, fmt.Errorf("the pull secret %q: %w", secret, err)
		}
		chain = append(chain, one)
	}
	return authn.NewMultiKeychain(append(chain, authn.DefaultKeychain)...), nil
}

// A pullSecret has the credentials of registries, by host.
type pullSecret map[string]authn.AuthConfig

func readSecret(object map[string]any) (pullSecret, error) {
	var secret struct {
		Data map[string][]byte `json:"data"`
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &secret); err != nil {
		return nil, err
	}
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(secret.Data[".dockerconfigjson"], &config); err != nil {
		return nil, fmt.Errorf(".dockerconfigjson is no JSON: %w", err)
	}
	out := pullSecret{}
	for host, one := range config.Auths {
		host = strings.TrimPrefix(strings.TrimPrefix(host, "https://"), "http://")
		host, _, _ = strings.Cut(host, "/")
		out[strings.Replace(host, "index.docker.io", "docker.io", 1)] = one
	}
	return out, nil
}

// Resolve implements authn.Keychain.
func (s pullSecret) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if one, ok := s[strings.Replace(r.RegistryStr(), "index.docker.io", "docker.io", 1)]; ok {
		return authn.FromConfig(one), nil
	}
	return authn.Anonymous, nil
}
