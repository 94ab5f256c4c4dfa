package incluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/cleanup"
	"github.com/kvap/kvap/controller/webhook/certs"
	"github.com/kvap/kvap/controller/webhook/endpoint"
	"github.com/kvap/kvap/controller/webhook/world"
	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/schema"
)

// Options say what runs beside the controller.
type Options struct {
	Controller   controller.Options
	Webhook      Webhook
	Events       Events
	Cleanup      Cleaning
	CleanupLimit int // how many objects one run of a cleanup policy deletes at most; 0 for no limit
}

// A Webhook is the options of the embedded webhook, and of what rules look up with it or without.
type Webhook struct {
	endpoint.Endpoint
	Certificates    string        // a folder of them, in place of an authority of kvap's own
	Validity        time.Duration // of that authority
	Owner           string        // a ClusterRole with which the configurations go
	ClientCA        string        // a file with who signs the certificates of those who may ask
	ClientNames     []string      // those that such a certificate may have
	ExcludeGroups   []string      // whose requests are not judged
	Services        []string      // URLs below which rules may ask
	Registries      []string      // that rules may ask for images
	LocalRegistries bool          // also those of this machine
	TrustFile       string        // whom keyless signatures are trusted by; "" for the public Sigstore
	TrustDigests    []string      // the hashes, one of which the file must have; none for any file
	TUFMirror       string        // a TUF repository that says it in place of a file
	TUFRoot         string        // a file with the root.json that the repository is held to
	TUFCache        string        // a folder for what it answered
	BindRepository  bool          // signatures count only if they name the repository of the image
	Policies        PolicyChecks  // which policies are looked at when they are written
}

// Check tells what is wrong with the options, by the flags that say so.
func (o Webhook) Check() error {
	switch {
	case !o.Enabled():
		return nil
	case len(o.ClientNames) > 0 && o.ClientCA == "":
		return errors.New("--webhook-client-names needs --webhook-client-ca")
	}
	if err := o.checkTrust(); err != nil {
		return err
	}
	if err := o.Endpoint.Check(); err != nil {
		return err
	}
	if o.Validity != 0 && o.Validity < certs.MinValidity {
		return fmt.Errorf("--webhook-certs-validity %v: want %v at least", o.Validity, certs.MinValidity)
	}
	return nil
}

// apiCallToken is the file with the token that services are asked with.
const apiCallToken = "/var/run/secrets/kvap/apicall/token"

// world is what rules look up, with what the flags say of it.
func (o Webhook) world(ctx context.Context, config *rest.Config, options world.Options, log logr.Logger) (w *world.World, err error) {
	if options.Formats, err = builtinFormats(); err != nil {
		return nil, err
	}
	if options.SigstoreTrust, err = o.trust(ctx, log); err != nil {
		return nil, err
	}
	options.Services, options.TokenFile = o.Services, apiCallToken
	options.Registries, options.LocalRegistries, options.BindRepository = o.Registries, o.LocalRegistries, o.BindRepository
	return world.New(config, options)
}

// Run runs the controller, with the webhook beside it if one is wanted. Both end
// when one does.
func Run(ctx context.Context, config *rest.Config, o Options, log logr.Logger) error {
	c := o.Controller
	events, err := newRuleEvents(ctx, config, o.Events)
	if err != nil {
		return err
	}
	c.Found = events.found
	if !o.Webhook.Enabled() {
		if c.Reports != "" {
			live, err := o.Webhook.world(ctx, config, world.Options{RegistrySecrets: c.Namespace, Live: true}, log)
			if err != nil {
				return err
			}
			c.World = live
		}
		if err := followAuditLog(ctx, config, events, nil, log); err != nil {
			return err
		}
		c.Leading = o.cleaning(ctx, config, nil, log)
		return controller.Run(ctx, config, c, log)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served, wait, err := startWebhook(ctx, config, o.Webhook, c, events, log)
	if err != nil {
		return err
	}
	if err := followAuditLog(ctx, config, events, served.natively, log); err != nil {
		return err
	}
	c.WebhookOwner, c.World, c.Fallback = o.Webhook.Owner, served.world, served
	c.Leading = append(o.cleaning(ctx, config, served.world, log), served.work.run, served.health.run, served.replicas.run)
	c.Gone = served.replicas.gone
	c.Ready = served.certs.Trusted
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- wait()
	}()
	err = controller.Run(ctx, config, c, log)
	cancel()
	return errors.Join(err, <-ended)
}

// A Cleaning is what kvap-controller deletes.
type Cleaning string

// What may be deleted.
const (
	CleanAuto     Cleaning = "auto" // the label too where policies are enforced
	CleanAll      Cleaning = "all"
	CleanPolicies Cleaning = "policies"
	CleanNothing  Cleaning = "none"
)

// Cleanings are all of them.
func Cleanings() []Cleaning { return []Cleaning{CleanAuto, CleanAll, CleanPolicies, CleanNothing} }

// label tells whether the label that gives objects an end counts. It has no mode of
// its own, so it has that of policies that name none.
func (c Cleaning) label(mode string) bool {
	return c == CleanAll || c == CleanAuto && mode == v1alpha1.ModeEnforce
}

// podNamespace is where a Pod reads the namespace that it is in.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// withOwn are namespaces, and the one of the Pod that this runs in, if it does: what
// deletes does not delete itself.
func withOwn(namespaces []string) []string {
	own, err := os.ReadFile(podNamespace)
	if err != nil {
		return namespaces
	}
	return append(slices.Clone(namespaces), strings.TrimSpace(string(own)))
}

// cleaning is what is to run where the controller leads. What policies look up is the
// webhook's world, if there is one, and else what the API server says each time.
func (o Options) cleaning(ctx context.Context, config *rest.Config, served interp.World, log logr.Logger) []func(context.Context) error {
	if o.Cleanup == CleanNothing {
		return nil
	}
	ask := sync.OnceValues(func() (interp.World, error) {
		if served != nil {
			return served, nil
		}
		return Webhook{Services: o.Webhook.Services}.world(ctx, config, world.Options{Live: true}, log)
	})
	c := o.Controller
	options := cleanup.Options{
		Mode: c.Mode, TTL: o.Cleanup.label(c.Mode), ExcludeNamespaces: withOwn(c.ExcludeNamespaces), ExceptionNamespaces: c.ExceptionNamespaces, Limit: o.CleanupLimit,
		World: func(context.Context) (interp.World, error) { return ask() },
	}
	return []func(context.Context) error{
		func(ctx context.Context) error { return cleanup.Run(ctx, config, options, log.WithName("cleanup")) },
	}
}

// imageMetrics count what registries are asked about who signed images.
func imageMetrics() (func(world.Asked), error) {
	asked := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kvap_image_questions_total", Help: "Questions about images, by what is asked (digest, signature, attestation) and the answer.",
	}, []string{"what", "answer"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kvap_image_question_duration_seconds", Help: "How long a registry took to answer, with the wait for a turn.", Buckets: prometheus.ExponentialBuckets(0.005, 2, 13),
	}, []string{"what"})
	for _, c := range []prometheus.Collector{asked, took} {
		if err := metrics.Registry.Register(c); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
			return nil, err
		}
	}
	return func(a world.Asked) {
		asked.WithLabelValues(a.What, string(a.Answer)).Inc()
		if a.Answer != world.Known {
			took.WithLabelValues(a.What).Observe(a.Took.Seconds())
		}
	}, nil
}

// callMetrics count API calls of rules that read, by what answers them.
func callMetrics() (func(by string), error) {
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kvap_webhook_api_calls_total", Help: "API calls of rules that read, by what answered them: memory, the server, or the server's answer to another call.",
	}, []string{"by"})
	if err := register(&calls); err != nil {
		return nil, err
	}
	for _, by := range []string{world.ByMemory, world.ByServer, world.ByAnother} {
		calls.WithLabelValues(by)
	}
	return func(by string) { calls.WithLabelValues(by).Inc() }, nil
}

// A trustCounter counts how often the trusted root of images was read, because it had changed,
// and tells when what a TUF repository says of it ends.
type trustCounter struct {
	reads   *prometheus.CounterVec
	expires prometheus.Gauge
}

func trustMetrics() (trustCounter, error) {
	out := trustCounter{
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kvap_image_trusted_root_reads_total", Help: "How often the trusted root of images had changed, by what came of it: taken, or refused, where the one before stays in force; and how often its TUF repository was unreachable.",
		}, []string{"result"}),
		expires: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kvap_image_trusted_root_expires_timestamp_seconds", Help: "When the metadata of the TUF repository ends that the trusted root of images is from; 0 where there is none.",
		}),
	}
	if err := register(&out.reads); err != nil {
		return out, err
	}
	return out, register(&out.expires)
}

// register registers a collector, or takes the one that was before.
func register[C prometheus.Collector](c *C) error {
	err := metrics.Registry.Register(*c)
	var before prometheus.AlreadyRegisteredError
	if errors.As(err, &before) {
		*c = before.ExistingCollector.(C)
		return nil
	}
	return err
}

// replace registers a collector that reads what this server knows, in the place of that of one
// before it.
func replace(c prometheus.Collector) error {
	metrics.Registry.Unregister(c)
	return metrics.Registry.Register(c)
}

func (c trustCounter) count(err error) {
	result := "taken"
	switch {
	case errors.Is(err, images.ErrUnreachable):
		result = "unreachable"
	case err != nil:
		result = "refused"
	}
	c.reads.WithLabelValues(result).Inc()
}

// builtinFormats are the formats of the fields of built-in kinds and of those that projects publish, for rules that are judged
// in a cluster: two quantities of a request are equal there by their values, as natively.
func builtinFormats() (func(group, version, kind string, field []string) interp.Format, error) {
	builtin, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		return nil, err
	}
	return judge.Formats(builtin.WithPublished()), nil
}
