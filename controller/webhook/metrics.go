package webhook

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/interp"
)

// metrics are what the server counts.
type metrics struct {
	requests    *prometheus.CounterVec   // by verb and answer
	duration    *prometheus.HistogramVec // by verb
	inFlight    prometheus.Gauge
	refusals    *prometheus.CounterVec   // by reason
	verdicts    *prometheus.CounterVec   // by status and mode
	waits       *prometheus.HistogramVec // by what is waited for
	connections prometheus.Gauge
	closed      prometheus.Counter // connections, to make room
	panics      prometheus.Counter
	errors      prometheus.Counter // of connections
}

// What a review waits to be.
const (
	waitMemory = "read"
	waitJudge  = "decode"
	waitTurn   = "judge"
)

func newMetrics(register prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "kvap_webhook_" + name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvap_webhook_" + name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "kvap_webhook_" + name, Help: help})
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kvap_webhook_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}, labels)
	}
	m := &metrics{
		requests:    counters("requests_total", "Reviews, by verb and answer: allowed, denied, changed, failed (where the failure policy decides), or refused.", "verb", "answer"),
		duration:    histogram("request_duration_seconds", "How long reviews took, from their headers to the answer.", "verb"),
		inFlight:    gauge("requests_in_flight", "Reviews that are read or judged."),
		refusals:    counters("refusals_total", "Requests that were not judged, by reason.", "reason"),
		verdicts:    counters("verdicts_total", "What rules said of requests, by status and mode: live or shadow.", "status", "mode"),
		waits:       histogram("wait_seconds", "How long reviews waited: for memory to be read into, for memory to be decoded in, or for a turn to be judged.", "to"),
		connections: gauge("connections", "Connections that are open."),
		closed:      counter("connections_closed_total", "Connections that were closed to make room for others."),
		panics:      counter("panics_total", "Requests that crashed."),
		errors:      counter("connection_errors_total", "Connections that failed, as where TLS could not be agreed on."),
	}
	if register == nil {
		return m
	}
	m.requests = registered(register, m.requests)
	m.duration = registered(register, m.duration)
	m.inFlight = registered(register, m.inFlight)
	m.refusals = registered(register, m.refusals)
	m.verdicts = registered(register, m.verdicts)
	m.waits = registered(register, m.waits)
	m.connections = registered(register, m.connections)
	m.closed = registered(register, m.closed)
	m.panics = registered(register, m.panics)
	m.errors = registered(register, m.errors)
	m.begin()
	return m
}

// begin has each series there from the beginning, so that its first increase is one.
func (m *metrics) begin() {
	for _, verb := range []registration.Verb{registration.Validate, registration.Mutate} {
		m.duration.WithLabelValues(string(verb))
		for _, answer := range []string{"allowed", "denied", "changed", "failed", "refused"} {
			m.requests.WithLabelValues(string(verb), answer)
		}
	}
	for _, status := range []int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestTimeout,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusInternalServerError, http.StatusServiceUnavailable,
	} {
		m.refusals.WithLabelValues(reasonOf(status))
	}
	for _, status := range []interp.Status{interp.Pass, interp.Fail, interp.Skip, interp.Error} {
		for _, mode := range []string{"live", "shadow"} {
			m.verdicts.WithLabelValues(string(status), mode)
		}
	}
	for _, what := range []string{waitMemory, waitJudge, waitTurn} {
		m.waits.WithLabelValues(what)
	}
}

// registered is a collector, or the one that was registered before.
func registered[C prometheus.Collector](register prometheus.Registerer, c C) C {
	var before prometheus.AlreadyRegisteredError
	if err := register.Register(c); errors.As(err, &before) {
		if known, ok := before.ExistingCollector.(C); ok {
			return known
		}
	}
	return c
}

// count counts what a rule says. A rule that is not about a request says nothing.
func (s *Server) count(p *servedPolicy, status interp.Status) {
	mode := "live"
	if p.Shadow {
		mode = "shadow"
	}
	if status != interp.None {
		s.metrics.verdicts.WithLabelValues(string(status), mode).Inc()
	}
}

// answerOf is what the metrics call an answer.
func answerOf(response *admissionv1.AdmissionResponse) string {
	switch {
	case !response.Allowed:
		return "denied"
	case len(response.Patch) > 0:
		return "changed"
	}
	return "allowed"
}

// reasonOf is what the metrics call the reason of a refusal.
func reasonOf(status int) string {
	return strings.ToLower(strings.ReplaceAll(http.StatusText(status), " ", "_"))
}

// A journal writes lines of what goes wrong; of each sort one at most in a while, which tells
// how many it leaves out.
type journal struct {
	log logr.Logger

	mu   sync.Mutex
	kept map[string]*keptLines
}

// every is how often there is a line of a sort.
const every = 10 * time.Second

type keptLines struct {
	rate.Sometimes
	leftOut int
}

func (j *journal) write(sort string, err error, values ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.kept[sort] == nil {
		j.kept[sort] = &keptLines{Sometimes: rate.Sometimes{Interval: every}}
	}
	kept := j.kept[sort]
	kept.leftOut++
	kept.Do(func() {
		if kept.leftOut > 1 {
			values = append(values, "leftOut", kept.leftOut-1)
		}
		kept.leftOut = 0
		j.log.Error(err, sort, values...)
	})
}

// refuse answers a request that is not judged.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, message string, values ...any) {
	s.metrics.refusals.WithLabelValues(reasonOf(status)).Inc()
	s.journal.write("a request was refused: "+reasonOf(status), errors.New(message),
		append(values, "from", r.RemoteAddr, "path", shorten(r.URL.Path, maxLine), "status", status)...)
	http.Error(w, message, status)
}

// maxLine is how long a text of somebody else is in the log.
const maxLine = 200

// errorLog is where the HTTP server tells of connections that fail.
func (s *Server) errorLog() *log.Logger {
	return log.New(connectionErrors{s}, "", 0)
}

type connectionErrors struct{ *Server }

// Write implements io.Writer. A line is an error.
func (c connectionErrors) Write(line []byte) (int, error) {
	c.metrics.errors.Inc()
	c.journal.write("a connection failed", errors.New(shorten(strings.TrimSpace(string(line)), maxLine)))
	return len(line), nil
}

// recovers answers a request that crashes, and counts it.
func (s *Server) recovers(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				s.metrics.panics.Inc()
				s.journal.write("a request crashed", fmt.Errorf("panic: %v", p), "path", shorten(r.URL.Path, maxLine), "stack", string(debug.Stack()))
				http.Error(w, "the request crashed", http.StatusInternalServerError)
			}
		}()
		handler(w, r)
	}
}
