package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/controller/internal/notice"
	"github.com/kvap/kvap/controller/scan"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

// newReconciler puts a reconciler together. The debouncer asks for passes.
func newReconciler(m manager.Manager, config *rest.Config, options Options, debouncer *debouncer, outages *outages) (*reconciler, error) {
	kube, err := kubernetes.NewForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	if options.Release == 0 {
		if options.Release, err = ReleaseOf(kube.Discovery()); err != nil {
			return nil, err
		}
	}
	builtin, err := schema.Builtin(options.Release.String())
	if err != nil {
		return nil, err
	}
	counts, err := newMetrics(ctrlmetrics.Registry, options.Version)
	if err != nil {
		return nil, err
	}
	served, err := servesMutations(context.Background(), kube.Discovery(), m.GetAPIReader())
	if err != nil {
		return nil, err
	}
	native, err := mutationsOf(options.Mutations, served, options.Release)
	if err != nil {
		return nil, err
	}
	c := m.GetClient()
	w := &writer{client: c, direct: m.GetAPIReader(), tell: counts.wrote, instance: options.Namespace}
	edited := newEditMarker(c, counts.wrote)
	statuses := &statusWriter{writer: w, direct: m.GetAPIReader(), events: eventsOf(m), now: metav1.Now, gone: options.Gone, edited: edited}
	p := &reconciler{
		options: options, config: config, kube: kube, writer: w, mutations: served, metrics: counts, statuses: statuses, now: time.Now,
		watcher:   newWatcher(m.GetCache(), c, kube.Discovery(), debouncer.trigger, edited, outages),
		policies:  &policyLister{client: c, direct: m.GetAPIReader(), mode: options.Mode, trusted: options.ExceptionNamespaces, remembered: statuses.remembered},
		types:     &clusterTypes{builtin: builtin, direct: m.GetAPIReader()},
		compiler:  &compiler{options: options, mutations: native, merging: apiserver.NewMerging()},
		debouncer: debouncer,
		outages:   outages,
	}
	p.claim.leases, p.claim.instance, p.claim.now = kube.CoordinationV1().Leases(claimNamespace), options.Namespace, time.Now
	p.claim.tell = standingBy(m.GetEventRecorder(Manager), options.Namespace)
	if err := ctrlmetrics.Registry.Register(p.claim.metric()); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return nil, err
	}
	if options.Reports != "" {
		p.scanner, err = scan.New(config, scan.Options{
			Report: report.ObjectOptions{Group: options.Reports, List: options.ReportResults, Max: maxResults}, Every: scanEvery, Settle: scanSettle,
			Changed: debouncer.trigger, Register: ctrlmetrics.Registry, Tell: p.found,
		}, m.GetLogger().WithName("scan"))
		if err != nil {
			return nil, err
		}
	}
	p.forget()
	return p, nil
}

// forget has the reconciler know nothing of what is in force, as in a process that has just
// begun: when it leads next, another replica may have led before.
func (r *reconciler) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.writer
	if r.params != nil {
		r.params.watch(nil)
	}
	r.canary = &canary{writer: w, options: r.options, config: r.config, now: r.now, patience: canaryPatience}
	r.corrections = &corrections{count: r.metrics.drift.Inc, now: r.now}
	r.handover = &handover{client: w.client, writer: w, canary: r.canary, mutations: r.mutations, step: r.options.Step, corrections: r.corrections}
	r.params = newParamSync(r.kube, w, r.debouncer.trigger)
	r.webhooks = &webhooks{
		fallback: r.options.Fallback, client: w.client, writer: w, answering: r.answering,
		owner: r.options.WebhookOwner, reached: r.canary.reached, corrections: r.corrections,
	}
	r.scanned, r.logged, r.delayedSince = nil, nil, time.Time{}
	r.metrics.forget()
}

// ReleaseOf is the release of the API server, or the nearest that kvap knows.
func ReleaseOf(d discovery.DiscoveryInterface) (cel.Release, error) {
	version, err := d.ServerVersion()
	if err != nil {
		return 0, err
	}
	release, err := cel.ParseRelease(version.Major + "." + strings.TrimRight(version.Minor, "+"))
	if err != nil {
		return 0, fmt.Errorf("the API server's version: %w", err)
	}
	if release.IsSupported() {
		return release, nil
	}
	supported := cel.Supported()
	if oldest := supported[0]; release.Compare(oldest) < 0 {
		return release, fmt.Errorf("the API server is of Kubernetes %s; kvap needs %s or newer", release, oldest)
	}
	return supported[len(supported)-1], nil
}

// eventsOf makes events about policies.
func eventsOf(m manager.Manager) func(v1alpha1.PolicyReference, bool, string, string) {
	recorder := notice.By(m.GetEventRecorder(Manager))
	return func(ref v1alpha1.PolicyReference, warning bool, reason, note string) {
		recorder.Tell(notice.OfPolicy(ref, ""), corev1.ObjectReference{}, warning, reason, "Translate", note)
	}
}

// listen has changes of what is always there lead to a pass.
func (r *reconciler) listen(ctx context.Context) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionsList().GroupVersionKind().GroupVersion().WithKind("CustomResourceDefinition"))
	kinds := []client.Object{
		definition, &nativePolicy{}, &nativeBinding{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{},
	}
	if r.mutations {
		kinds = append(kinds, &mutatingPolicy{}, &mutatingBinding{})
	}
	for _, o := range kinds {
		if _, err := r.watcher.inform(ctx, o); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.options.Fallback.Changed():
			r.debouncer.trigger()
		}
	}
}

// answering notes whether the webhook answers, or why it does not.
func (r *reconciler) answering(err error) {
	if err != nil {
		r.webhookErr.Store(&err)
		return
	}
	r.webhookErr.Store(nil)
	r.begun.Store(true)
}

// ready tells whether the policies were read, and what remains of them is served. A webhook
// that may not read what it needs answers nobody, so nobody should be sent to it; one that
// has answered goes on with what it has.
func (r *reconciler) ready(*http.Request) error {
	if why := r.claim.standing.Load(); why != nil {
		return *why
	}
	switch why := r.webhookErr.Load(); {
	case r.begun.Load():
		return nil
	case why != nil:
		return *why
	}
	return errors.New("the policies are not read yet")
}
