package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/convert"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/migrate/compare"
	"github.com/kvap/kvap/migrate/record"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/webhook/certs"
	"github.com/kvap/kvap/webhook/endpoint"
	"github.com/kvap/kvap/webhook/registration"
	"github.com/kvap/kvap/webhook/world"
)

// A recording is a run of record: a webhook, and its configuration.
type recording struct {
	flags recordFlags
	*cluster.Connection
	errs     io.Writer
	progress *progress
	recorder *record.Recorder
	rules    []admissionregistrationv1.RuleWithOperations
	labels   namespaceLabels
	certs    endpoint.CertificateSource
}

// rulesOf are the requests that the policies are about.
func (r *recording) rulesOf(ctx context.Context, names []string, stdin io.Reader) ([]admissionregistrationv1.RuleWithOperations, error) {
	flags := convert.DefaultFlags()
	flags.Pack = string(translate.PackMatch)
	choices, err := flags.Choices()
	if err != nil {
		return nil, err
	}
	reading := &comparison{flags: compareFlags{files: r.flags.files, kustomize: r.flags.kustomize}, choices: choices, stdin: stdin}
	o := compare.Options{
		Translate: choices.Translate, Files: reading.files, Counts: func(string) bool { return false },
		Selection: compare.Selection{Names: names, Labels: labels.Everything(), Namespace: r.Namespace, Every: r.flags.fromFiles() || r.flags.allNamespaces},
	}
	if !r.flags.fromFiles() {
		o.Cluster = r.Connection
	}
	policies, elsewhere, err := compare.Policies(ctx, o)
	if err != nil {
		return nil, exit.Runtime(err)
	}
	r.leftOut(elsewhere, "of other namespaces, and -A takes them")
	for _, p := range policies {
		p.FailurePolicy = policy.Ignore // what could lock the cluster up cannot here
		p.Admission = true
	}
	client, err := discovery.NewDiscoveryClientForConfig(r.Config)
	if err != nil {
		return nil, exit.Runtime(err)
	}
	served, err := world.Discover(client)
	if err != nil {
		return nil, exit.Runtime(err)
	}
	var kinds registration.Table
	for _, one := range served {
		kinds = append(kinds, registration.Resource(one))
	}
	var idle []*policy.Policy
	for _, p := range policies {
		if objects, _ := registration.Configure([]*policy.Policy{p}, kinds, registration.Options{URL: "https://localhost"}); objects.Validating == nil {
			idle = append(idle, p)
		}
	}
	r.leftOut(idle, "no rule of them validates a kind that the cluster serves")
	objects, _ := registration.Configure(policies, kinds, registration.Options{URL: "https://localhost"})
	if objects.Validating == nil {
		return nil, exit.Usage(errors.New("the policies have no rule that validates a kind which the cluster serves, so there is nothing to record"))
	}
	var out []admissionregistrationv1.RuleWithOperations
	for _, w := range objects.Validating.Webhooks {
		out = append(out, w.Rules...)
	}
	return out, nil
}

// leftOut says of which policies no request is recorded.
func (r *recording) leftOut(policies []*policy.Policy, why string) {
	var names []string
	for _, p := range policies {
		names = append(names, p.FullName())
	}
	if len(names) > 0 && !r.flags.quiet {
		slices.Sort(names)
		fmt.Fprintf(r.errs, "left out: %s: %s\n", diag.Inert(strings.Join(names, ", ")), why)
	}
}

// run serves, has the API server send requests, and ends both when it is time.
func (r *recording) run(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.flags.endpoint.Address)
	if err != nil {
		return exit.Usage(fmt.Errorf("--webhook-address: %w", err))
	}
	r.flags.endpoint = r.flags.endpoint.At(l)
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
	last, cancel := afterwards(ctx)
	defer cancel()
	_, removed := r.remove(last)
	err = errors.Join(err, removed)
	settle(last) // an API server that has not heard yet still asks
	if stopped := server.Shutdown(last); stopped != nil {
		err = errors.Join(err, exit.Runtime(stopped))
	}
	return err
}

// settle waits until API servers know that the configuration is gone.
func settle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// prepare makes certificates, and learns the labels of namespaces.
func (r *recording) prepare(ctx context.Context) error {
	if dir := r.flags.certs; dir != "" {
		files, err := certs.NewFiles(dir)
		if err != nil {
			return exit.Usage(fmt.Errorf("--webhook-certs: %w", err))
		}
		go func() { _ = files.Run(ctx) }() // what it has stays in use
		r.certs = files
	} else {
		authority := certs.NewAuthority(certs.Options{Store: &certs.Memory{}, Names: r.flags.endpoint.Names(r.Namespace)})
		if err := authority.Renew(ctx); err != nil {
			return exit.Runtime(err)
		}
		go authority.Run(ctx, func(err error) { fmt.Fprintf(r.errs, "error: certificates: %v\n", err) })
		r.certs = authority
	}
	if err := r.labels.read(ctx, r.Connection); err != nil {
		return exit.Runtime(err)
	}
	go r.labels.follow(ctx, r.Connection)
	return nil
}

// watch goes on until the time is over, the context ends or the server fails.
func (r *recording) watch(ctx context.Context, ended <-chan error) error {
	end := make(<-chan time.Time)
	if r.flags.wait > 0 {
		end = time.After(r.flags.wait)
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
			r.progress.show("%d recorded, %d lost, for %s; Ctrl-C ends it", n.Recorded, n.Lost(), time.Since(begun).Round(time.Second))
		}
	}
}

// register writes the configuration.
func (r *recording) register(ctx context.Context) error {
	sending := record.Sending{
		Rules: r.rules, Seconds: int32(r.flags.hold / time.Second), //nolint:gosec // it was checked
		ExcludeNamespaces: none(r.flags.exclude), ExcludeGroups: none(r.flags.groups),
		Client: admissionregistrationv1.WebhookClientConfig{CABundle: r.certs.Bundle()},
	}
	path := "/record"
	if service := r.flags.endpoint.Reference(r.Namespace); service != nil {
		service.Path, sending.Client.Service = &path, service
	} else {
		url := r.flags.endpoint.Base() + path
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

// takeAway takes away what an earlier run left behind, and tells whether there was any.
func (r *recording) takeAway(ctx context.Context) error {
	there, err := r.remove(ctx)
	switch {
	case err != nil:
		return err
	case there:
		fmt.Fprintf(r.errs, "the configuration %s was taken away\n", record.Name)
	default:
		fmt.Fprintf(r.errs, "there is no configuration %s\n", record.Name)
	}
	return nil
}

// remove takes the configuration away, and tells whether it was there.
func (r *recording) remove(ctx context.Context) (there bool, err error) {
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

// namespaceLabels are the labels of Namespaces as they were when they were read last.
type namespaceLabels struct {
	mu  sync.RWMutex
	all map[string]map[string]string
}

func (n *namespaceLabels) of(name string) map[string]string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.all[name]
}

func (n *namespaceLabels) read(ctx context.Context, c *cluster.Connection) error {
	resource, ok := c.Serves("", "Namespace", "v1")
	if !ok {
		return errors.New("the cluster serves no Namespaces")
	}
	items, _, err := c.List(ctx, resource)
	if err != nil {
		return err
	}
	all := map[string]map[string]string{}
	for _, u := range items {
		all[u.GetName()] = u.GetLabels()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = all
	return nil
}

// follow reads them again and again. A request into a namespace that is newer has no
// labels in its line; whoever judges it looks them up.
func (n *namespaceLabels) follow(ctx context.Context, c *cluster.Connection) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
			_ = n.read(ctx, c) // what was known is known still
		}
	}
}
