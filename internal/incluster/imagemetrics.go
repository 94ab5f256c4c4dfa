package incluster

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

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
