package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvap/kvap/controller/internal/turns"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// Options say how to serve. World and Certificate must be there; other zero fields
// have their defaults.
type Options struct {
	// World is what rules look things up in.
	World interp.World
	// WorldOf is what the rules of a policy look things up in; nil is World for all.
	WorldOf func(*policy.Policy) interp.World
	// Roles are what is bound to a user, as namespace:name, and the cluster roles;
	// nil knows of none.
	Roles func(ctx context.Context, user User, namespace string) (roles, clusterRoles []string, err error)
	// Start keeps work that a request starts. It is called before the request is
	// answered, and again when it is asked about again. nil keeps nothing.
	Start func(ctx context.Context, work Start) error
	// User is whom the program itself is to the API server; empty where that is not
	// known.
	User string
	// DryRun marks the context in which a request that is a dry run is judged, for the
	// World; nil marks nothing.
	DryRun func(context.Context) context.Context
	// ExcludeGroups are groups whose users no rule is about.
	ExcludeGroups []string
	// Certificate is the server's at the moment.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientCAs are who may vouch for whoever asks, who is one of ClientNames then, or
	// anybody where there are none; nil asks for no certificate.
	ClientCAs   *x509.CertPool
	ClientNames []string
	// Ready tells whether what Set does not bring is there: caches, a certificate.
	Ready func() error
	// Policies looks at policies that are written; nil looks at none.
	Policies PolicyReview
	// Record hears of violations and errors, of all that policies in shadow say, and of
	// what was not judged.
	Record func(Record)

	// Metrics is where the server's metrics are registered; nil registers none.
	Metrics prometheus.Registerer
	// Log has lines of what is refused and of what fails; the zero value writes none.
	Log logr.Logger

	MaxBytes int64 // of a review; 8 MiB: two objects, and what is around them
	// MaxMemory is of all large reviews that are judged, and of all that are read, but for four of
	// these, which may take up to MaxBytes each beyond it; 16 MiB.
	MaxMemory int64
	// Drain is how long the server goes on after it says that it is not ready, so
	// that no new connections come; 5 s.
	Drain time.Duration
	Now   func() time.Time
}

// A User is who sends a request.
type User struct {
	Name   string
	Groups []string
}

func (o Options) withDefaults() Options {
	o.MaxBytes, o.Drain = cmp.Or(o.MaxBytes, 8<<20), cmp.Or(o.Drain, drain)
	o.MaxMemory = cmp.Or(o.MaxMemory, max(16<<20, o.MaxBytes))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	if o.WorldOf == nil {
		o.WorldOf = func(*policy.Policy) interp.World { return o.World }
	}
	if o.Record == nil {
		o.Record = func(Record) {}
	}
	return o
}

// A Server answers AdmissionReviews.
type Server struct {
	options Options
	// turns are held while judging, by what a request is about and where it comes in: a policy
	// that waits for something slow keeps only the requests waiting that it is about.
	turns *turns.Turns
	// namespaces are held while policies of a namespace judge, by its name.
	namespaces  *turns.Turns
	memory      *memory
	connections *connections
	metrics     *metrics
	journal     *journal

	setting  sync.Mutex // of Set
	current  atomic.Pointer[snapshot]
	draining atomic.Bool
}

// New makes a server that has no policies yet and so is not ready.
func New(o Options) *Server {
	o = o.withDefaults()
	m := newMetrics(o.Metrics)
	return &Server{
		options: o, turns: turns.New(maxJudged, maxJudged/2), namespaces: turns.NewBounded(maxOfNamespaces, maxOfNamespace, waitOfNamespace), memory: newMemory(o.MaxMemory, m),
		connections: &connections{metrics: m, open: map[net.Conn]*connection{}}, metrics: m, journal: &journal{log: o.Log, kept: map[string]*keptLines{}},
	}
}

const (
	maxJudged    = 64               // requests that are judged at once
	judgeTimeout = 10 * time.Second // where a request names none
)

// errBusy is a request that got no turn in its time.
var errBusy = errors.New("too many requests are being judged")

// errNotReady is why a server does not judge.
var errNotReady = errors.New("the policies are not read yet")

// Ready tells why requests should go elsewhere; nil if they are welcome.
func (s *Server) Ready() error {
	switch {
	case s.draining.Load():
		return errors.New("the server is ending")
	case s.current.Load() == nil:
		return errNotReady
	}
	return s.options.Ready()
}

// Handler answers at the paths of the routes, at those of the probe and of policies that are
// written, at /healthz and at /readyz.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/validate/", s.admission(registration.Validate, s.validate))
	mux.HandleFunc("/mutate/", s.admission(registration.Mutate, s.mutate))
	mux.HandleFunc(registration.ProbePath, s.recovers(s.probe))
	mux.HandleFunc(registration.PoliciesPath, s.recovers(s.policies))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}

// What bounds a connection. Reading and writing may take as long as the API server waits at
// most.
const (
	// maxStreams is how many requests a connection of HTTP/2 has at once. The bytes of all that
	// wait to be read fit its window: none keeps the bytes of another one from coming.
	maxStreams    = 60
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// drain is how long a server goes on after it says that it is not ready.
const drain = 5 * time.Second

// LongestEnd is how long a server takes to end at most.
const LongestEnd = drain + bodyTimeout

// Serve serves until the context ends, and then to the end what it has begun: it
// says that it is not ready, waits until that is known, takes no more, and
// finishes. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: 2 * bodyTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: s.errorLog(),
		TLSConfig: s.tlsConfig(), ConnState: s.connections.follow, ConnContext: s.connections.add,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: smallBody, MaxReceiveBufferPerConnection: maxStreams * smallBody},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(l, "", "") }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true)
	time.Sleep(s.options.Drain)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), bodyTimeout)
	defer cancel()
	err := server.Shutdown(last)
	if served := <-ended; err == nil && !errors.Is(served, http.ErrServerClosed) {
		err = served
	}
	return err
}

// tlsConfig asks for a certificate of whoever asks, where one is wanted. Who has none is
// answered about the health of the server, and about nothing else.
func (s *Server) tlsConfig() *tls.Config {
	out := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.options.Certificate}
	if s.options.ClientCAs != nil {
		out.ClientCAs, out.ClientAuth = s.options.ClientCAs, tls.VerifyClientCertIfGiven
	}
	return out
}

// isAPIServer tells that a request comes from whom the certificates let ask.
func (s *Server) isAPIServer(r *http.Request) bool {
	if s.options.ClientCAs == nil {
		return true
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	leaf := r.TLS.VerifiedChains[0][0]
	return len(s.options.ClientNames) == 0 || slices.ContainsFunc(append([]string{leaf.Subject.CommonName}, leaf.DNSNames...), func(name string) bool {
		return slices.Contains(s.options.ClientNames, name)
	})
}
