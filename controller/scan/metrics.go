package scan

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what is counted.
type metrics struct {
	rounds  prometheus.Counter
	took    prometheus.Histogram
	judged  prometheus.Counter
	errors  *prometheus.CounterVec // by what failed
	reports prometheus.Gauge
}

func newMetrics(register prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		rounds: prometheus.NewCounter(prometheus.CounterOpts{Name: "kvap_scans_total", Help: "Scans of all objects of the cluster for reports."}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kvap_scan_duration_seconds", Help: "How long a scan of all objects took.", Buckets: prometheus.ExponentialBuckets(0.1, 2, 16),
		}),
		judged: prometheus.NewCounter(prometheus.CounterOpts{Name: "kvap_scan_objects_judged_total", Help: "Objects that were judged for reports: in scans of all objects, and when they changed."}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kvap_scan_errors_total", Help: "What failed of scans, and is tried again: to begin one, to read a page of a resource, or to judge or report an object.",
		}, []string{"what"}),
		reports: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kvap_scan_reports", Help: "Reports about objects that are there."}),
	}
	if register == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.rounds, m.took, m.judged, m.errors, m.reports} {
		if err := register.Register(c); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) scanned(d time.Duration) {
	m.rounds.Inc()
	m.took.Observe(d.Seconds())
}

func (m *metrics) failed(what string) { m.errors.WithLabelValues(what).Inc() }
