package incluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/background"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/certs"
	"github.com/kvap/kvap/controller/webhook/endpoint"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/controller/webhook/shadow"
	"github.com/kvap/kvap/controller/webhook/world"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A fallback is the embedded webhook as the controller sees it.
type fallback struct {
	options   Webhook
	namespace string
	self      string // whom the program is to the API server
	log       logr.Logger
	world     *world.World
	certs     endpoint.CertificateSource
	server    *webhook.Server
	work      *backgroundWork
	book      *shadow.Book
	health    *ruleHealth
	replicas  *replicas
	changed   chan struct{}

	events   *ruleEvents
	natively *nativeRules // nil where nobody is told what passes natively

	mu       sync.Mutex
	sources  map[*policy.Policy]v1alpha1.PolicyReference
	policies map[string]*policy.Policy // what remains of policies, by its text
	known    map[*policy.Policy]registration.Conditions
	told     map[string]bool // problems that were logged
}

// startWebhook serves until the context ends; wait returns when all is done.
func startWebhook(ctx context.Context, config *rest.Config, f Webhook, c controller.Options, events *ruleEvents, log logr.Logger) (_ *fallback, wait func() error, err error) {
	c.Namespace = cmp.Or(c.Namespace, "default")
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("--webhook-address: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	f.Endpoint = f.At(l)
	out := &fallback{options: f, namespace: c.Namespace, log: log.WithName("webhook"), events: events, changed: make(chan struct{}, 1), told: map[string]bool{}}
	if err = out.build(ctx, config, c); err != nil {
		return nil, nil, err
	}
	if events.options.AuditLog != "" && events.options.Verdicts == TellAll {
		out.natively = newNativeRules(out)
	}
	out.health = newRuleHealth(out.world, out.tellChanged)
	if err := out.keepBook(ctx, config); err != nil {
		return nil, nil, err
	}
	out.log.Info("serving", "address", l.Addr().String())
	ended := make(chan error, 1)
	go func() { ended <- out.server.Serve(ctx, l) }()
	go out.forward(ctx)
	return out, func() error { return <-ended }, nil
}

// build makes the parts of the webhook, of which the server is the last.
func (o *fallback) build(ctx context.Context, config *rest.Config, c controller.Options) (err error) {
	asked, err := imageMetrics()
	if err != nil {
		return err
	}
	called, err := callMetrics()
	if err != nil {
		return err
	}
	if o.world, err = o.options.world(ctx, config, world.Options{RegistrySecrets: o.namespace, Asked: asked, Called: called}, o.log); err != nil {
		return err
	}
	if err = o.world.Run(ctx); err != nil {
		return err
	}
	if o.certs, err = o.certificates(ctx, config); err != nil {
		return err
	}
	if err := expiryMetric(o.certs); err != nil {
		return err
	}
	if o.self, err = ownName(ctx, config); err != nil {
		return err
	}
	policies, err := o.policyReview(config, c)
	if err != nil {
		return err
	}
	if o.work, err = newBackgroundWork(config, o, o.self); err != nil {
		return err
	}
	var callers *x509.CertPool // nil where nobody needs a certificate
	if file := o.options.ClientCA; file != "" {
		if callers, err = certutil.NewPool(file); err != nil {
			return fmt.Errorf("--webhook-client-ca %s: %w", file, err)
		}
	}
	o.server = webhook.New(webhook.Options{
		ClientCAs: callers, ClientNames: o.options.ClientNames,
		World: o.world, WorldOf: o.worldOf, DryRun: world.DryRun, Start: o.start, User: o.self, Policies: policies,
		ExcludeGroups: o.options.ExcludeGroups, Certificate: o.certs.Certificate, Record: o.record, Metrics: metrics.Registry, Log: o.log,
		Roles: func(_ context.Context, u webhook.User, namespace string) ([]string, []string, error) {
			roles, clusterRoles := o.world.Roles(u.Name, u.Groups, namespace)
			return roles, clusterRoles, nil
		},
		Ready: func() error { return errors.Join(o.world.Ready(), o.certs.Ready()) },
	})
	return nil
}

// worldOf is what the rules of a policy look things up in: what it is about as it is now. That is
// worked out again when other kinds are served.
func (o *fallback) worldOf(p *policy.Policy) interp.World {
	type about struct {
		of        *registration.Table
		resources func(group, resource string) bool
	}
	var last atomic.Pointer[about]
	return o.world.About(func(group, resource string) bool {
		kinds := o.world.Served().Table()
		known := last.Load()
		if known == nil || known.of != kinds {
			known = &about{kinds, registration.About(p, *kinds)}
			last.Store(known)
		}
		return known.resources(group, resource)
	})
}

// certificates are those of the folder, or of an authority of kvap's own.
func (o *fallback) certificates(ctx context.Context, config *rest.Config) (endpoint.CertificateSource, error) {
	if o.options.Certificates != "" {
		files, err := certs.NewFiles(o.options.Certificates)
		if err != nil {
			return nil, err
		}
		go func() {
			if err := files.Run(ctx); err != nil && ctx.Err() == nil {
				o.log.Error(err, "the files of certificates are not followed")
			}
		}()
		return files, nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authority := certs.NewAuthority(certs.Options{
		Stored: watchSecret(ctx, client.CoreV1().RESTClient(), o.namespace), Store: &secretStore{client.CoreV1().Secrets(o.namespace)}, Names: o.options.Names(o.namespace), Validity: o.options.Validity,
		Known: func(ctx context.Context, authority *x509.Certificate) (bool, error) {
			return areTold(ctx, client.AdmissionregistrationV1(), authority)
		},
	})
	go authority.Run(ctx, func(err error) { o.log.Error(err, "no certificate") })
	return authority, nil
}

// forward tells the controller when the configurations would be others.
func (o *fallback) forward(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.certs.Changed():
		case <-o.world.Served().Changed():
		case <-o.work.changed:
		}
		o.tellChanged()
	}
}

func (o *fallback) tellChanged() {
	select {
	case o.changed <- struct{}{}:
	default: // somebody will ask anyway
	}
}

// Changed implements controller.Fallback.
func (o *fallback) Changed() <-chan struct{} { return o.changed }

// Serve implements controller.Fallback. The policies are set before anything is
// said of configurations, which need a server that can answer.
func (o *fallback) Serve(ctx context.Context, remaining controller.Remaining) (controller.Serving, error) {
	out, list, err := o.set(remaining)
	if err != nil {
		return out, err
	}
	broken := o.server.Broken(ctx) // which compiles, and so is not under the lock
	o.health.look(ctx, false)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range list {
		if err := broken[p]; err != nil {
			out.Problems = append(out.Problems, controller.FallbackProblem{Source: o.sources[p], Message: err.Error(), Broken: true})
		}
	}
	out.Problems = append(out.Problems, o.work.problems()...)
	out.Problems = append(out.Problems, o.health.problems()...)
	o.tell(out.Problems)
	if err := o.server.Ready(); err != nil && len(list) > 0 {
		return out, fmt.Errorf("the webhook is not ready: %w", err)
	}
	return out, nil
}

// set has the server, and the work beside it, take what remains: the policies that are
// listed. What it answers is what a configuration says of them.
func (o *fallback) set(remaining controller.Remaining) (out controller.Serving, list []*policy.Policy, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	set := webhook.PolicySet{Exceptions: remaining.Exceptions}
	work := background.PolicySet{Exceptions: remaining.Exceptions, ExcludeNamespaces: remaining.ExcludeNamespaces}
	known := map[*policy.Policy]registration.Conditions{}
	kept, sources := map[string]*policy.Policy{}, map[*policy.Policy]v1alpha1.PolicyReference{}
	subjects, served := map[*policy.Policy]shadow.ShadowedPolicy{}, map[*policy.Policy]controller.RemainingPolicy{}
	for _, one := range remaining.Policies {
		p, err := o.remainder(one, kept)
		if err != nil {
			out.Problems = append(out.Problems, controller.FallbackProblem{Source: one.Source, Message: err.Error(), LeftOut: true})
		}
		if p == nil {
			continue
		}
		list, sources[p], served[p] = append(list, p), one.Source, one
		set.Policies = append(set.Policies, webhook.Policy{Policy: p, Shadow: one.Shadow})
		if one.Shadow {
			subjects[p] = shadow.ShadowedPolicy{Source: one.Source, Generation: one.Generation}
			continue
		}
		if p.StartsWork() {
			work.Policies = append(work.Policies, background.Policy{Policy: p, Of: one.Source})
		}
	}
	if o.natively != nil {
		o.setNative(remaining, kept, sources)
	}
	options := registration.Options{
		URL: o.options.Base(), Service: o.options.Reference(o.namespace), Bundle: o.certs.Bundle(),
		ExcludeNamespaces: remaining.ExcludeNamespaces, ExcludeGroups: o.options.ExcludeGroups, Taken: remaining.Taken,
		ConditionsOf: func(p *policy.Policy) registration.Conditions {
			found, ok := o.known[p]
			if !ok {
				found = registration.ConditionsOf(p)
			}
			known[p] = found
			return found
		},
	}
	objects, problems, err := registration.Shards(list, o.world.Served().All(), options)
	if err != nil {
		return out, nil, err
	}
	for _, one := range objects {
		if err := registration.Check(one); err != nil {
			return out, nil, err
		}
		out.Configurations = append(out.Configurations, controller.Configurations(one))
	}
	for _, p := range problems {
		if p.Missing {
			o.world.Served().Expect()
		}
		out.Problems = append(out.Problems, controller.FallbackProblem{Source: sources[p.Policy], Message: p.Message, LeftOut: p.Refused})
	}
	if kyverno, some := o.options.Policies.of(remaining.Taken); some && !slices.Contains(remaining.Taken, registration.PoliciesName) {
		out.Policies = registration.Policies(options, o.self, kyverno)
	}
	o.policies, o.sources, o.known = kept, sources, known
	o.health.set(served)
	o.book.Follow(subjects)
	o.server.Set(set)
	o.work.set(work)
	out.Probe = func(name string) controller.Configurations {
		return controller.Configurations(registration.Probe(options, name))
	}
	return out, list, nil
}

// remainder is a policy with only the rules that remain. It is the same one as
// before where the text is.
func (o *fallback) remainder(one controller.RemainingPolicy, kept map[string]*policy.Policy) (*policy.Policy, error) {
	doc := one.Policy.Source
	if !one.Policy.InCEL() {
		doc = one.Policy.Only(func(r *policy.Rule) bool {
			_, more := r.VerifiesMore() // than the webhook, or the work beside it, carries out
			return !more && slices.ContainsFunc(one.Rules, func(left *policy.Rule) bool { return left.Index == r.Index })
		})
	}
	if doc == nil {
		return nil, nil
	}
	text := policy.Marshal(doc)
	if one.Shadow {
		text = withoutEffect(text)
	}
	key := string(text)
	if p := o.policies[key]; p != nil {
		kept[key] = p
		return p, nil
	}
	f, ds := policy.Parse(one.Policy.FullName(), bytes.Clone(text))
	if len(f.Policies) != 1 {
		return nil, fmt.Errorf("what remains of the policy %s cannot be read: %v", one.Policy.FullName(), ds)
	}
	kept[key] = f.Policies[0]
	return f.Policies[0], nil
}

// tell logs problems that are new.
func (o *fallback) tell(problems []controller.FallbackProblem) {
	now := map[string]bool{}
	for _, p := range problems {
		key := p.Source.Kind + " " + p.Source.Namespace + "/" + p.Source.Name + ": " + p.Message
		if now[key] = true; !o.told[key] {
			o.log.Info("the webhook leaves something out", "kind", p.Source.Kind, "namespace", p.Source.Namespace, "policy", p.Source.Name,
				"reason", p.Message, "leftOut", p.LeftOut)
		}
	}
	o.told = now
}

// record logs what is blocked. What was not judged the server logs.
func (o *fallback) record(r webhook.Record) {
	o.book.Note(r)
	o.health.note(r)
	if of, ok := o.sourceOf(r.Of); ok {
		o.events.judged(r, of)
	}
	if r.Blocked {
		o.log.V(1).Info("blocked", "resource", r.Request.Resource, "operation", r.Request.Operation, "policy", r.Policy, "rule", r.Rule)
	}
}

// shadowTimeout is for how many seconds a request waits at most for a webhook whose
// answer changes nothing.
const shadowTimeout = 2

// withoutEffect is a policy, as text, for whose answer no API server waits for long, or
// refuses a request for want of it.
func withoutEffect(text []byte) []byte {
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return text // it is told of where it is parsed
	}
	spec, ok := doc["spec"].(map[string]any)
	if !ok {
		return text
	}
	delete(spec, "webhookTimeoutSeconds")
	if kind, _ := doc["kind"].(string); !strings.HasSuffix(kind, "GeneratingPolicy") { // which has none, and denies nothing
		spec["failurePolicy"] = "Ignore"
	}
	configuration, _ := spec["webhookConfiguration"].(map[string]any)
	if configuration == nil {
		configuration = map[string]any{}
	}
	configuration["timeoutSeconds"] = shadowTimeout
	delete(configuration, "failurePolicy")
	spec["webhookConfiguration"] = configuration
	out, err := yaml.Marshal(doc)
	if err != nil {
		return text // as above
	}
	return out
}

// tellEvery is how often it is looked for what this process has to say of policies.
const tellEvery = 10 * time.Second

// keepBook keeps a book of what is said in shadow, and writes it into the status of each
// PolicyTranslation until the context ends, with the rules that err. Each replica has entries of
// its own.
func (o *fallback) keepBook(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the book sees to it that there is little to write
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		o.log.Error(err, "this process has no name of its own")
	}
	pod := os.Getenv("POD_NAME") // on the network of a node the host is the node, which is no Pod's name
	by := cmp.Or(pod, host, "webhook")
	o.book = shadow.New(by, time.Now)
	if err := replace(o.book); err != nil {
		return err
	}
	pods, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	o.replicas = newReplicas(pod, func(ctx context.Context, name string) error {
		_, err := pods.CoreV1().Pods(o.namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}, o.tellChanged)
	translations := client.Resource(schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "policytranslations"})
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		o.tellNews(by, func(of v1alpha1.PolicyReference, manager string, status map[string]any) error {
			return tellEntries(ctx, translations, of, manager, status)
		})
	}, tellEvery)
	return nil
}

// tellNews writes what this process has to say of policies, and says again what cannot be written.
// The webhook may serve a policy before it has a PolicyTranslation: rules that err are said again
// until it has one.
func (o *fallback) tellNews(by string, write func(of v1alpha1.PolicyReference, manager string, status map[string]any) error) {
	for _, page := range o.book.News() {
		err := write(page.Source, "kvap-shadow-"+by, map[string]any{"shadow": []v1alpha1.ShadowStatus{page.Status}})
		if err != nil && !apierrors.IsNotFound(err) {
			o.log.V(1).Info("what was judged is not written", "policy", page.Source.Name, "reason", err.Error())
			o.book.Again(page.Source)
		}
	}
	for _, p := range o.health.news() {
		status := map[string]any{} // what is not there any more goes
		if len(p.rules) > 0 {
			status["erring"] = []v1alpha1.ErringRules{{By: by, Generation: p.Generation, Rules: p.rules}}
		}
		err := write(p.Source, "kvap-erring-"+by, status)
		if err != nil && (len(p.rules) > 0 || !apierrors.IsNotFound(err)) {
			o.log.V(1).Info("which rules err is not written", "policy", p.Source.Name, "reason", err.Error())
			o.health.again(p.Source)
		}
	}
}

// tellEntries writes the entries of this process, as a field manager, and leaves those of others.
func tellEntries(ctx context.Context, translations dynamic.ResourceInterface, of v1alpha1.PolicyReference, manager string, status map[string]any) error {
	name := controller.TranslationName(of)
	data, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": "PolicyTranslation", "metadata": map[string]any{"name": name},
		"status": status,
	})
	if err != nil {
		return err
	}
	force := true
	_, err = translations.Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: manager, Force: &force}, "status")
	return err
}
