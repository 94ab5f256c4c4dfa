package incluster

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/webhook/world"
)

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
	var before prometheus.AlreadyRegisteredError
	switch err := metrics.Registry.Register(out.reads); {
	case errors.As(err, &before):
		out.reads = before.ExistingCollector.(*prometheus.CounterVec)
	case err != nil:
		return out, err
	}
	switch err := metrics.Registry.Register(out.expires); {
	case errors.As(err, &before):
		out.expires = before.ExistingCollector.(prometheus.Gauge)
	case err != nil:
		return out, err
	}
	return out, nil
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
