package cleanup

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
)

// Options are what Run is told. Zero fields have their defaults.
type Options struct {
	// Mode is that of policies that name none; shadow by default.
	Mode string
	// TTL has labelled objects deleted when they end.
	TTL bool
	// ExcludeNamespaces are those in which no policy deletes anything. The label
	// counts there too, as it does with Kyverno.
	ExcludeNamespaces []string
	// ExceptionNamespaces are those whose exceptions count; * means all.
	ExceptionNamespaces []string
	// Limit is how many objects one run of a policy deletes at most; 0 for no limit.
	Limit int
	// World is what policies look up. It is asked for when the first one runs.
	World func(context.Context) (interp.World, error)
	// Every is how often policies are looked at; 10 s.
	Every time.Duration
	Now   func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Mode == "" {
		o.Mode = v1alpha1.ModeShadow
	}
	if o.Every == 0 {
		o.Every = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Run does what cleanup policies and labels say until the context ends. No two
// processes may do so at once.
func Run(ctx context.Context, config *rest.Config, o Options, log logr.Logger) error {
	o = o.withDefaults()
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's own priorities and fairness see to it
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return err
	}
	l := &liveCluster{served: &served{client: kube.Discovery(), now: o.Now}}
	if l.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	if l.metadata, err = metadata.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	events, err := recorder(ctx, kube)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if o.TTL {
			w := &watcher{live: l, kube: kube, log: log, watched: map[schema.GroupVersionResource]*watched{}}
			w.run(ctx, &reaper{remove: l.remove, now: o.Now, log: log})
		}
	}()
	tick(ctx, &Runner{
		Cluster: l, Ledger: &translationStore{l.dynamic}, Events: events, World: o.World, Mode: o.Mode, ExcludeNamespaces: o.ExcludeNamespaces,
		ExceptionNamespaces: o.ExceptionNamespaces, Limit: o.Limit, Now: o.Now,
	}, o.Every, log)
	<-done
	return nil
}

// tick ticks until the context ends.
func tick(ctx context.Context, r *Runner, every time.Duration, log logr.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := r.Tick(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "cleanup policies")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
