package controller

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kvap/kvap/api/v1alpha1"
)

// metrics are what is counted, beside what controller-runtime counts itself.
type metrics struct {
	policies  *prometheus.GaugeVec   // by kind, mode and readiness
	rules     *prometheus.GaugeVec   // by target and mode
	warnings  *prometheus.GaugeVec   // by known
	missing   prometheus.Gauge       // params
	compile   prometheus.Histogram   // reading and compiling
	pass      prometheus.Histogram   // a pass
	writes    *prometheus.CounterVec // by verb
	drift     prometheus.Counter     // objects that somebody had changed
	contested prometheus.Gauge       // objects that somebody changes again and again
	servers   prometheus.Gauge       // seen to judge
	build     *prometheus.GaugeVec   // one, with the version
	failed    prometheus.Gauge       // objects that could not be written
	unheard   prometheus.Gauge       // kinds that cannot be watched
	orphaned  prometheus.Gauge       // policies whose kind was uninstalled
}

func newMetrics(register prometheus.Registerer, version string) (*metrics, error) {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kvap_" + name, Help: help}, labels)
	}
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kvap_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.005, 2, 14),
		})
	}
	m := &metrics{
		policies: gauge("policies", "Policies, by kind, mode and readiness.", "kind", "mode", "ready"),
		rules:    gauge("rules", "Rules, by where they are judged and the mode of their policy.", "target", "mode"),
		warnings: gauge("type_warnings", "Warnings of the API server's type checker, by whether they are known false alarms.", "known"),
		missing:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "kvap_unresolved_params", Help: "ConfigMaps that rules read and that do not exist."}),
		compile:  histogram("compile_duration_seconds", "How long reading and compiling all policies took."),
		pass:     histogram("sync_duration_seconds", "How long a pass took, until the API servers were seen to judge by its objects."),
		writes:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvap_writes_total", Help: "Requests that write, by verb."}, []string{"verb"}),
		drift:    prometheus.NewCounter(prometheus.CounterOpts{Name: "kvap_drift_corrections_total", Help: "Objects that were written because somebody had changed them."}),
		contested: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kvap_contested_objects", Help: "Objects that another writer changes again and again, so that their correction waits.",
		}),
		servers: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kvap_api_servers", Help: "API servers that were seen to judge by the native policies."}),
		build:   gauge("build_info", "One, with the version.", "version"),
		failed:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "kvap_failed_objects", Help: "Native policies that could not be written."}),
		unheard: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kvap_unheard_kinds", Help: "Kinds whose changes are not heard, because an API server refuses to list or watch them."}),
		orphaned: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kvap_uninstalled_policies", Help: "Policies that went with the definition of their kind, and stay in force.",
		}),
	}
	m.build.WithLabelValues(version).Set(1)
	for _, c := range []prometheus.Collector{
		m.policies, m.rules, m.warnings, m.missing, m.compile, m.pass, m.writes, m.drift, m.contested, m.servers, m.build, m.failed, m.unheard, m.orphaned,
	} {
		if err := register.Register(c); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) wrote(verb string) { m.writes.WithLabelValues(verb).Inc() }

// forget has no gauge tell of what this replica has seen while it led: the next leader tells.
func (m *metrics) forget() {
	for _, g := range []*prometheus.GaugeVec{m.policies, m.rules, m.warnings} {
		g.Reset()
	}
	for _, g := range []prometheus.Gauge{m.missing, m.contested, m.servers, m.failed, m.unheard, m.orphaned} {
		g.Set(0)
	}
}

// passed counts what a pass has found.
func (m *metrics) passed(d time.Duration, in policyList, out *passResult, statuses []v1alpha1.PolicyTranslationStatus) {
	m.pass.Observe(d.Seconds())
	m.policies.Reset()
	m.rules.Reset()
	m.warnings.Reset()
	orphaned := 0
	for i, s := range in.sources {
		status := statuses[i]
		if s.uninstalled {
			orphaned++
		}
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		m.policies.WithLabelValues(s.ref.Kind, s.mode, string(ready.Status)).Inc()
		for target, n := range map[string]int32{"native": status.Native, "webhook": status.Webhook, "unsupported": status.Unsupported} {
			m.rules.WithLabelValues(target, s.mode).Add(float64(n))
		}
	}
	for _, checks := range out.warnings {
		for _, ws := range checks.byRule {
			for _, w := range ws {
				m.warnings.WithLabelValues(strconv.FormatBool(w.Known)).Inc()
			}
		}
	}
	m.missing.Set(float64(len(out.missing)))
	m.servers.Set(float64(out.servers))
	m.failed.Set(float64(len(out.failed)))
	m.orphaned.Set(float64(orphaned))
}
