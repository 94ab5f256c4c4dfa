package recording

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/kvap/kvap/cmd/kvap/internal/migrate/record"
	"github.com/kvap/kvap/controller/webhook/certs"
	"github.com/kvap/kvap/controller/webhook/endpoint"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/controller/webhook/world"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/policy"
)

// Options say where the webhook is, and which requests it is sent.
type Options struct {
	endpoint.Endpoint
	Certificates      string        // a folder of them, in place of some made for the run
	For               time.Duration // 0 for until the context ends
	Timeout           time.Duration // how long the API server waits for an answer
	ExcludeNamespaces []string
	ExcludeGroups     []string
	Errs              io.Writer
	Progress          func(format string, args ...any)
}

// A Recording is a webhook, and its configuration.
type Recording struct {
	options Options
	*cluster.Connection
	recorder   *record.Recorder
	rules      []admissionregistrationv1.RuleWithOperations
	namespaces atomic.Pointer[map[string]map[string]any] // as they were when they were read last
	certs      endpoint.CertificateSource
}

// New is one in a cluster.
func New(c *cluster.Connection, o Options) *Recording {
	return &Recording{options: o, Connection: c}
}

// About has the requests recorded that policies are about, and answers which policies are
// about none.
func (r *Recording) About(policies []*policy.Policy) (idle []*policy.Policy, err error) {
	for _, p := range policies {
		p.FailurePolicy = policy.Ignore // what could lock the cluster up cannot here
		p.Admission = true
	}
	client, err := discovery.NewDiscoveryClientForConfig(r.Config)
	if err != nil {
		return nil, err
	}
	kinds, err := world.Discover(client)
	if err != nil {
		return nil, err
	}
	for _, p := range policies {
		objects, _ := registration.Configure([]*policy.Policy{p}, kinds, registration.Options{URL: "https://localhost"})
		if objects.Validating == nil {
			idle = append(idle, p)
		}
	}
	objects, _ := registration.Configure(policies, kinds, registration.Options{URL: "https://localhost"})
	if objects.Validating == nil {
		return idle, exit.Usage(errors.New("the policies have no rule that validates a kind which the cluster serves, so there is nothing to record"))
	}
	for _, w := range objects.Validating.Webhooks {
		r.rules = append(r.rules, w.Rules...)
	}
	return idle, nil
}

// Run serves, has the API server send requests, and ends both when it is time.
func (r *Recording) Run(ctx context.Context, to *record.Recorder) error {
	r.recorder = to
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.options.Address)
	if err != nil {
		return exit.Usage(fmt.Errorf("--webhook-address: %w", err))
	}
	r.options.Endpoint = r.options.At(l)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if err := r.prepare(background); err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{
		Handler: r.recorder, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: r.certs.Certificate},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(l, "", "") }()
	err = r.register(ctx)
	if err == nil {
		err = r.watch(ctx, ended)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTime)
	defer cancel()
	_, removed := r.remove(last)
	err = errors.Join(err, removed)
	select { // an API server that has not heard yet still asks
	case <-last.Done():
	case <-time.After(time.Second):
	}
	if stopped := server.Shutdown(last); stopped != nil {
		err = errors.Join(err, exit.Runtime(stopped))
	}
	return err
}

// removalTime is how long taking the configuration away may take once the time is over.
const removalTime = 20 * time.Second

// prepare makes certificates, and learns the namespaces.
func (r *Recording) prepare(ctx context.Context) error {
	if dir := r.options.Certificates; dir != "" {
		files, err := certs.NewFiles(dir)
		if err != nil {
			return exit.Usage(fmt.Errorf("--webhook-certs: %w", err))
		}
		go func() { _ = files.Run(ctx) }() // what it has stays in use
		r.certs = files
	} else {
		authority := certs.NewAuthority(certs.Options{Store: &certs.Memory{}, Names: r.options.Names(r.Namespace)})
		if err := authority.Renew(ctx); err != nil {
			return exit.Runtime(err)
		}
		go authority.Run(ctx, func(err error) { fmt.Fprintf(r.options.Errs, "error: certificates: %v\n", err) })
		r.certs = authority
	}
	if err := r.readNamespaces(ctx); err != nil {
		return exit.Runtime(err)
	}
	go r.followNamespaces(ctx)
	return nil
}

// watch goes on until the time is over, the context ends or the server fails.
func (r *Recording) watch(ctx context.Context, ended <-chan error) error {
	end := make(<-chan time.Time)
	if r.options.For > 0 {
		end = time.After(r.options.For)
	}
	begun := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-end:
			return nil
		case err := <-ended:
			return exit.Runtime(err)
		case <-r.certs.Changed():
			if err := r.register(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case <-tick.C:
			n := r.recorder.Counts()
			r.options.Progress("%d recorded, %d lost, for %s; Ctrl-C ends it", n.Recorded, n.Lost(), time.Since(begun).Round(time.Second))
		}
	}
}

// register writes the configuration.
func (r *Recording) register(ctx context.Context) error {
	sending := record.Sending{
		Rules: r.rules, Seconds: int32(r.options.Timeout / time.Second), //nolint:gosec // it was checked
		ExcludeNamespaces: r.options.ExcludeNamespaces, ExcludeGroups: r.options.ExcludeGroups,
		Client: admissionregistrationv1.WebhookClientConfig{CABundle: r.certs.Bundle()},
	}
	path := "/record"
	if service := r.options.Reference(r.Namespace); service != nil {
		service.Path, sending.Client.Service = &path, service
	} else {
		url := r.options.Base() + path
		sending.Client.URL = &url
	}
	wanted, err := record.Configuration(sending)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(r.Config)
	if err != nil {
		return exit.Runtime(err)
	}
	configurations := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	there, err := configurations.Get(ctx, record.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = configurations.Create(ctx, wanted, metav1.CreateOptions{FieldManager: "kvap-cli"})
	case err == nil:
		wanted.ResourceVersion = there.ResourceVersion
		_, err = configurations.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: "kvap-cli"})
	}
	if err != nil {
		return exit.Runtime(fmt.Errorf("the configuration %s: %w", record.Name, err))
	}
	return nil
}

// TakeAway takes away what an earlier run left behind, and says whether there was any.
func (r *Recording) TakeAway(ctx context.Context) error {
	there, err := r.remove(ctx)
	switch {
	case err != nil:
		return err
	case there:
		fmt.Fprintf(r.options.Errs, "the configuration %s was taken away\n", record.Name)
	default:
		fmt.Fprintf(r.options.Errs, "there is no configuration %s\n", record.Name)
	}
	return nil
}

// remove takes the configuration away, and tells whether it was there.
func (r *Recording) remove(ctx context.Context) (there bool, err error) {
	client, err := kubernetes.NewForConfig(r.Config)
	if err != nil {
		return false, exit.Runtime(err)
	}
	err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, record.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, exit.Runtime(fmt.Errorf("the configuration %s is left behind; kvap migrate record --remove takes it away: %w", record.Name, err))
	}
	return err == nil, nil
}

// NamespaceOf is a Namespace as an object, where it is known.
func (r *Recording) NamespaceOf(name string) map[string]any {
	if all := r.namespaces.Load(); all != nil {
		return (*all)[name]
	}
	return nil
}

func (r *Recording) readNamespaces(ctx context.Context) error {
	resource, ok := r.Serves("", "Namespace", "v1")
	if !ok {
		return errors.New("the cluster serves no Namespaces")
	}
	items, _, err := r.List(ctx, resource)
	if err != nil {
		return err
	}
	all := map[string]map[string]any{}
	for _, u := range items {
		all[u.GetName()] = u.Object
	}
	r.namespaces.Store(&all)
	return nil
}

// followNamespaces reads them again and again. A request into a namespace that is newer has none in
// its line; whoever judges it looks it up.
func (r *Recording) followNamespaces(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
			_ = r.readNamespaces(ctx) // what was known is known still
		}
	}
}
