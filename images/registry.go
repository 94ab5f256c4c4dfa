package images

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
)

// ErrUnreachable is the error of a registry that does not answer, or that answers that it
// cannot now. What it would say is not known.
var ErrUnreachable = errors.New("the registry cannot be asked")

// errAbsent is the error of what a registry says that it does not have.
var errAbsent = errors.New("not found")

// What is read of a registry at most. The count of signatures is an error and no cut: what
// is beyond it would not be looked at.
const (
	maxManifest    = 1 << 20
	maxPayload     = 64 << 10
	maxAttestation = 10 << 20
	maxAttested    = 20 << 20 // of all of a type
	maxLayers      = 50
	callTimeout    = 5 * time.Second
)

// A Registry is how registries are asked.
type Registry struct {
	// Credentials are those to send; none are if it is nil.
	Credentials authn.Keychain
	// Insecure allows connections without TLS, and certificates of anybody.
	Insecure bool
	// Local allows addresses of this machine and of its link.
	Local bool
	// Budget bounds what is held at once; nil does not.
	Budget *Budget
	// Recorded answers in the place of all registries, unless it is nil.
	Recorded *Recorded
}

// An Image is pinned by a digest.
type Image struct {
	repository name.Repository
	digest     v1.Hash
}

// String is the repository and the digest.
func (i Image) String() string { return i.repository.Name() + "@" + i.digest.String() }

// Digest is the digest, as sha256:….
func (i Image) Digest() string { return i.digest.String() }

// Pinned is the image of a reference that has a digest.
func Pinned(reference string) (Image, error) {
	d, err := name.NewDigest(reference, name.StrictValidation)
	if err != nil {
		return Image{}, fmt.Errorf("%q is no image with a digest: %w", reference, err)
	}
	digest, err := v1.NewHash(d.DigestStr())
	if err != nil {
		return Image{}, fmt.Errorf("%q is no image with a digest: %w", reference, err)
	}
	return Image{d.Context(), digest}, nil
}

// Resolve is the image that a reference means now: of a tag, what the registry says.
func (r Registry) Resolve(ctx context.Context, reference string) (Image, error) {
	ref, err := name.ParseReference(reference, r.options()...)
	if err != nil {
		return Image{}, fmt.Errorf("%q is no image reference: %w", reference, err)
	}
	if d, ok := ref.(name.Digest); ok {
		return Pinned(d.Name())
	}
	var found *v1.Descriptor
	err = r.call(ctx, func(options []remote.Option) (err error) {
		if found, err = remote.Head(ref, options...); err != nil && !isAnswer(err) {
			var got *remote.Descriptor
			if got, err = remote.Get(ref, options...); err == nil {
				found = &got.Descriptor
			}
		}
		return err
	})
	if err != nil {
		return Image{}, fmt.Errorf("the digest of %s: %w", reference, err)
	}
	return Image{ref.Context(), found.Digest}, nil
}

func (r Registry) options() []name.Option {
	if r.Insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

// A layer is a blob with the annotations that the manifest has of it.
type layer struct {
	annotations map[string]string
	of          v1.Layer
	budget      *Budget
	logged      []*rekor.TransparencyLogEntry // of a bundle
	stamps      [][]byte                      // timestamps, of a bundle
	// Of an artifact that refers to another: its own manifest, what it is about, and the media
	// type of the one layer that it has.
	artifact v1.Descriptor
	subject  v1.Hash
	media    string
}

// entries are those of logs that are beside what is signed.
func (l layer) entries() ([]*rekor.TransparencyLogEntry, error) {
	if text := l.annotations[bundleKey]; text != "" {
		e, err := entryBeside(text)
		return []*rekor.TransparencyLogEntry{e}, err
	}
	return l.logged, nil
}

// layers are those of what is beside an image under a prefix, its digest and a suffix: sig or
// att.
func (r Registry) layers(ctx context.Context, at name.Repository, prefix string, digest v1.Hash, suffix string) ([]layer, error) {
	tag := at.Tag(prefix + digest.Algorithm + "-" + digest.Hex + "." + suffix)
	var out []layer
	err := r.call(ctx, func(options []remote.Option) error {
		puller, err := remote.NewPuller(options...)
		if err != nil {
			return err
		}
		found, err := puller.Get(ctx, tag)
		if err != nil {
			return err
		}
		artifact, err := found.Image()
		if err != nil {
			return err
		}
		manifest, err := artifact.Manifest()
		if err != nil {
			return err
		}
		if len(manifest.Layers) > maxLayers {
			return fmt.Errorf("%s has %d layers, and %d at most are looked at", tag, len(manifest.Layers), maxLayers)
		}
		for _, d := range manifest.Layers {
			blob, err := puller.Layer(context.WithValue(ctx, limitOfBlob{}, int64(maxAttestation)+1), at.Digest(d.Digest.String()))
			if err != nil {
				return err
			}
			out = append(out, layer{annotations: d.Annotations, of: blob, budget: r.Budget})
		}
		return nil
	})
	return out, err
}

// read is what a layer has in it: all of it, since only the end shows that it is what its
// digest names. It counts as held until done is called, which is never nil.
func (l layer) read(limit int64) (data []byte, done func(), err error) {
	in := &counted{budget: l.budget}
	blob, err := l.of.Compressed()
	if err != nil {
		return nil, in.done, classified(err)
	}
	defer blob.Close() //nolint:errcheck // it was read, or is not wanted
	in.Reader = io.LimitReader(blob, limit+1)
	data, err = io.ReadAll(in)
	switch {
	case err != nil:
		return nil, in.done, classified(err)
	case int64(len(data)) > limit:
		return nil, in.done, fmt.Errorf("it has more than %d bytes", limit)
	}
	return data, in.done, nil
}

// call asks a registry. What it reads lazily is asked for with the time
// of ctx.
func (r Registry) call(ctx context.Context, ask func([]remote.Option) error) error {
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(r.transport()),
		remote.WithRetryBackoff(remote.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 2}),
		remote.WithRetryStatusCodes(retried()...),
	}
	if r.Credentials != nil {
		options = append(options, remote.WithAuthFromKeychain(r.Credentials))
	}
	return classified(ask(options))
}

func retried() []int {
	return []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
}

// classified is ErrUnreachable where it is not known what the registry would say, and
// errAbsent where it says that there is nothing.
func classified(err error) error {
	if err == nil {
		return nil
	}
	var answer *transport.Error
	if errors.As(err, &answer) {
		switch {
		case answer.StatusCode == http.StatusNotFound:
			return fmt.Errorf("%w: %w", errAbsent, err)
		case answer.StatusCode >= 500 || slices.Contains(retried(), answer.StatusCode):
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return err
	}
	var asked *url.Error // the first, where there are several: that by TLS
	var no refused
	if errors.As(err, &asked) && errors.As(asked, &no) {
		return err
	}
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// isAnswer tells of an error that another way to ask would have too.
func isAnswer(err error) bool {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return errors.Is(classified(err), ErrUnreachable)
	}
	return answer.StatusCode == http.StatusUnauthorized || answer.StatusCode >= 500 || slices.Contains(retried(), answer.StatusCode)
}

// transport connects as the Registry allows.
func (r Registry) transport() http.RoundTripper {
	if r.Recorded != nil {
		return confined{registry: r, RoundTripper: r.Recorded}
	}
	return confined{registry: r, RoundTripper: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           r.Dialer().DialContext,
		TLSHandshakeTimeout:   callTimeout,
		ResponseHeaderTimeout: callTimeout,
		DisableKeepAlives:     true,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: r.Insecure}, //nolint:gosec // where the policy's author asked for it
	}}
}

// Dialer connects to registries: to no address that the Registry does not allow.
func (r Registry) Dialer() *net.Dialer {
	return &net.Dialer{Timeout: callTimeout, ControlContext: r.control}
}

// control refuses an address, of which the name is known no longer.
func (r Registry) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return r.allows(to.Addr())
}

// allows is nil if there may be a registry at an address.
func (r Registry) allows(at netip.Addr) error {
	at = at.Unmap()
	if !r.Local && (at.IsLoopback() || at.IsLinkLocalUnicast() || at.IsUnspecified() || at.IsMulticast()) {
		return refused(fmt.Sprintf("the address %s is of this machine or its link, where no registry of a cluster is", at))
	}
	return nil
}

// A refused is why nothing is asked. It is not a failure of the network.
type refused string

// Error implements error.
func (e refused) Error() string { return string(e) }

// confined refuses what has no TLS, which a redirect or a token service may ask for, and what
// is too large.
type confined struct {
	http.RoundTripper
	registry Registry
}

// RoundTrip implements http.RoundTripper.
func (c confined) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !c.registry.Insecure {
		return nil, refused(fmt.Sprintf("%s has no TLS; imageRegistryCredentials.allowInsecureRegistry: true allows it", r.URL.Host))
	}
	if at, err := netip.ParseAddr(r.URL.Hostname()); err == nil { // which a proxy would connect to
		if err := c.registry.allows(at); err != nil {
			return nil, err
		}
	}
	response, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	limit, ok := r.Context().Value(limitOfBlob{}).(int64)
	if !ok {
		limit = maxManifest
	}
	response.Body = &bounded{response.Body, limit, limit}
	return response, nil
}

// limitOfBlob is the key of how much may be read where a blob is asked for. No path says so:
// repositories, redirects and token services may have any.
type limitOfBlob struct{}

// bounded is an answer that may not be larger. It is an error, and not the end: what is cut
// would look like a connection that broke.
type bounded struct {
	io.ReadCloser
	left, limit int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it has more than %d bytes", b.limit)
	}
	return n, err
}

// repositoryNamed is the repository of a policy.
func repositoryNamed(text string, r Registry) (name.Repository, error) {
	at, err := name.NewRepository(text, r.options()...)
	if err != nil {
		return at, fmt.Errorf("%q is no repository: %w", text, err)
	}
	return at, nil
}
