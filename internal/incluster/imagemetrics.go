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

// trustMetrics count how often the trusted root of images was read, because it had changed.
func trustMetrics() (func(error), error) {
	read := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kvap_image_trusted_root_reads_total", Help: "How often the trusted root of images had changed, by what came of it: taken, or refused, where the one before stays in force.",
	}, []string{"result"})
	if err := metrics.Registry.Register(read); err != nil {
		var before prometheus.AlreadyRegisteredError
		if !errors.As(err, &before) {
			return nil, err
		}
		read = before.ExistingCollector.(*prometheus.CounterVec)
	}
	return func(err error) {
		result := "taken"
		if err != nil {
			result = "refused"
		}
		read.WithLabelValues(result).Inc()
	}, nil
}
