package world

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
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
	by map[bool]http.RoundTripper // how they are asked, by whether anybody's certificate will do

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

func newImages(local bool) *imageData {
	return &imageData{known: map[string]image{}, by: map[bool]http.RoundTripper{false: transport(false, local), true: transport(true, local)}}
}

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
		keys, _, err := w.keychain(ctx, with)
		if err != nil {
			return nil, err
		}
		return images.Describe(reference, ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(keys),
			remote.WithTransport(&bounded{w.images.by[insecure], w.options.MaxBytes}))
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
		at := ref.Context().RepositoryStr()
		return hosts(host, registry) && (repository == "" || at == repository || strings.HasPrefix(at, repository+"/"))
	})
}

// hosts tells that a host of the list is a registry, or has it below.
func hosts(host, registry string) bool {
	below, wild := strings.CutPrefix(host, "*.")
	return host == "*" || host == registry || wild && strings.HasSuffix(registry, "."+below)
}

// MayAskAny tells whether the list of registries has one of some image that a pattern matches,
// with * in it for any text.
func (w *World) MayAskAny(pattern string) bool {
	fixed, _, wild := strings.Cut(strings.ReplaceAll(pattern, "?", "*"), "*")
	if !wild {
		ref, err := name.ParseReference(fixed)
		return err == nil && w.mayAsk(ref)
	}
	registry, begins, known := strings.Cut(fixed, "/")
	return slices.ContainsFunc(w.options.Registries, func(entry string) bool {
		host, repository, _ := strings.Cut(strings.TrimSuffix(entry, "/"), "/")
		switch {
		case !known: // the registry may be any
			return true
		case !strings.ContainsAny(registry, ".:") && registry != "localhost": // it begins the name of an image of Docker's
			return hosts(host, "docker.io")
		}
		return hosts(host, registry) && (strings.HasPrefix(begins, repository) || strings.HasPrefix(repository, begins))
	})
}

// transport connects to no address of this machine or its link, unless local ones are allowed.
func transport(insecure, local bool) http.RoundTripper {
	t := remote.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = images.Registry{Local: local}.Dialer().DialContext
	if insecure {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the policy's author asked for it
	}
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

// maxPodSecrets is how many pull secrets of a Pod are read.
const maxPodSecrets = 10

// keychain has the pull secrets that a rule names, those of the Pod, and those of the process, in
// this order. The secrets of a policy of a namespace are there: who may write one need not be
// allowed to use others. A secret of a Pod that is not there, or that kvap may not read, is left
// out, as the kubelet does; missing says so where the registry then asks for credentials.
func (w *World) keychain(ctx context.Context, with interp.Access) (keys authn.Keychain, missing error, err error) {
	wanted, _ := with.Credentials.(map[string]any)
	secrets, _ := wanted["secrets"].([]any)
	var chain []authn.Keychain
	for _, item := range secrets {
		text, _ := item.(string)
		namespace, name, named := strings.Cut(text, "/")
		if !named {
			namespace, name = cmp.Or(with.Namespace, w.options.RegistrySecrets), text
		}
		if namespace == "" || name == "" || strings.ContainsAny(name, "/%") || with.Namespace != "" && namespace != with.Namespace {
			return nil, nil, fmt.Errorf("the pull secret %q is not available", text)
		}
		object, err := w.object(ctx, secretPath(namespace, name))
		if err != nil {
			return nil, nil, fmt.Errorf("the pull secret %s/%s: %w", namespace, name, err)
		}
		one, err := readSecret(object)
		if err != nil {
			return nil, nil, fmt.Errorf("the pull secret %q: %w", text, err)
		}
		chain = append(chain, one)
	}
	if len(with.PodSecrets) > maxPodSecrets {
		return nil, nil, fmt.Errorf("%w: the Pod names more than %d pull secrets", interp.ErrRefused, maxPodSecrets)
	}
	for _, name := range with.PodSecrets {
		one, err := w.podSecret(ctx, with.PodNamespace, name)
		var answered *statusError
		switch {
		case err == nil:
			chain = append(chain, one)
		case errors.As(err, &answered) && answered.code < http.StatusInternalServerError && answered.code != http.StatusTooManyRequests, errors.Is(err, errNoSecret):
			missing = errors.Join(missing, fmt.Errorf("the Pod's pull secret %s was not used: %w", name, err))
		default:
			return nil, nil, fmt.Errorf("%w: the Pod's pull secret %s: %w", images.ErrUnreachable, name, err)
		}
	}
	return authn.NewMultiKeychain(append(chain, authn.DefaultKeychain)...), missing, nil
}

func secretPath(namespace, name string) string {
	return apiPath{resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}.path(namespace, name)
}

// errNoSecret is the error of what is no pull secret.
var errNoSecret = errors.New("it is no pull secret")

// podSecret asks the API server each time: nothing watches the Secrets of a namespace because
// somebody named one.
func (w *World) podSecret(ctx context.Context, namespace, name string) (pullSecret, error) {
	path := secretPath(namespace, name)
	if err := lawful(path); err != nil || namespace == "" || strings.Contains(name, "/") {
		return nil, errNoSecret
	}
	answer, err := w.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(answer, &object); err != nil {
		return nil, errNoSecret
	}
	one, err := readSecret(object)
	if err != nil {
		return nil, errNoSecret
	}
	return one, nil
}

// A pullSecret has the credentials of registries, the more exact ones first.
type pullSecret []registryCredentials

// registryCredentials are those of a registry, perhaps below a repository.
type registryCredentials struct {
	host, repository string
	authn.AuthConfig
}

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
	if before, ok := secret.Data[".dockercfg"]; ok && secret.Data[".dockerconfigjson"] == nil {
		if err := json.Unmarshal(before, &config.Auths); err != nil {
			return nil, fmt.Errorf(".dockercfg is no JSON: %w", err)
		}
	} else if err := json.Unmarshal(secret.Data[".dockerconfigjson"], &config); err != nil {
		return nil, fmt.Errorf(".dockerconfigjson is no JSON: %w", err)
	}
	out := pullSecret{}
	for at, one := range config.Auths {
		at = strings.TrimPrefix(strings.TrimPrefix(at, "https://"), "http://")
		host, repository, _ := strings.Cut(at, "/")
		host, repository = strings.Replace(host, "index.docker.io", "docker.io", 1), strings.Trim(repository, "/")
		if repository == "v1" || repository == "v2" { // of the API, as https://index.docker.io/v1/
			repository = ""
		}
		out = append(out, registryCredentials{host, repository, one})
	}
	slices.SortFunc(out, func(a, b registryCredentials) int {
		return cmp.Or(len(b.repository)-len(a.repository), strings.Compare(a.host+"/"+a.repository, b.host+"/"+b.repository))
	})
	return out, nil
}

// Resolve implements authn.Keychain.
func (s pullSecret) Resolve(r authn.Resource) (authn.Authenticator, error) {
	_, repository, _ := strings.Cut(r.String(), "/")
	for _, one := range s {
		if one.host == strings.Replace(r.RegistryStr(), "index.docker.io", "docker.io", 1) && (one.repository == "" || strings.HasPrefix(repository+"/", one.repository+"/")) {
			return authn.FromConfig(one.AuthConfig), nil
		}
	}
	return authn.Anonymous, nil
}
