package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
)

// What comes of requests is counted and logged, and of each sort of line there is one in a while.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	var mu sync.Mutex
	var lines []string
	c := start(t, Options{MaxBytes: 100 << 10, Metrics: registry, Log: funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})})
	c.post(t, "/validate/fail", creation(t, plain)) // not ready
	c.Set(set(policies(t, enforced(ownerRequired))))
	c.ask(t, "/validate/fail", plain)
	c.ask(t, "/validate/fail", strings.Replace(plain, "ConfigMap", "Secret", 1))
	for range 3 {
		c.post(t, "/validate/fail", large(t, 200<<10))
	}
	c.post(t, "/mutate/fail", "{")
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), &tls.Config{MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true}); err == nil { //nolint:gosec // it is refused
		conn.Close()
		t.Error("TLS 1.2 is taken")
	}
	r := c.recovers(func(http.ResponseWriter, *http.Request) { panic("a crash") })
	crashed := &statusOnly{header: http.Header{}}
	request, _ := http.NewRequest(http.MethodPost, "/validate/fail", nil)
	if r(crashed, request); crashed.status != http.StatusInternalServerError {
		t.Errorf("a crash answers %d", crashed.status)
	}
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	got := samples(t, registry)
	for name, want := range map[string]float64{
		"kvap_webhook_requests_total answer=refused verb=validate":    4,
		"kvap_webhook_requests_total answer=refused verb=mutate":      1,
		"kvap_webhook_requests_total answer=denied verb=validate":     1,
		"kvap_webhook_requests_total answer=allowed verb=validate":    1,
		"kvap_webhook_refusals_total reason=service_unavailable":      1,
		"kvap_webhook_refusals_total reason=request_entity_too_large": 3,
		"kvap_webhook_refusals_total reason=bad_request":              1,
		"kvap_webhook_verdicts_total mode=live status=fail":           1,
		"kvap_webhook_request_duration_seconds verb=validate":         6,
		"kvap_webhook_requests_in_flight":                             0,
		"kvap_webhook_connections":                                    0,
		"kvap_webhook_panics_total":                                   1,
		"kvap_webhook_connection_errors_total":                        1,
		"kvap_webhook_wait_seconds to=judge":                          2,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	text := strings.Join(lines, "\n")
	for _, want := range []string{"service_unavailable", "request_entity_too_large", "bad_request", "a connection failed", "unsupported versions", "a crash"} {
		if strings.Count(text, want) == 0 {
			t.Errorf("no line has %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "the review is larger"); n != 1 {
		t.Errorf("%d lines of what is too large, want one", n)
	}
}

// statusOnly is an answer of which the status counts.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// samples are the values of counters and gauges, and the counts of histograms, by name and labels.
func samples(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += fmt.Sprintf(" %s=%s", l.GetName(), l.GetValue())
			}
			out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// Where there are too many connections, one goes that brought no review, of whoever has most.
func TestConnectionsMakeRoom(t *testing.T) {
	c := &connections{metrics: newMetrics(nil), open: map[net.Conn]*connection{}}
	open := func(host string) *heldConnection {
		conn := &heldConnection{host: host}
		conn.context = c.add(t.Context(), conn)
		c.follow(conn, http.StateActive)
		return conn
	}
	first := open("10.0.0.1")
	brought(first.context)
	c.follow(first, http.StateIdle)
	var flood []*heldConnection
	for range 2 * maxConnections {
		flood = append(flood, open("10.0.0.2"))
	}
	closed := 0
	for _, conn := range flood {
		if conn.closed {
			closed++
		}
	}
	if first.closed || closed != maxConnections+1 || len(c.open) != maxConnections || flood[len(flood)-1].closed || !flood[0].closed {
		t.Errorf("the first is closed: %v; %d of the others are; open are %d", first.closed, closed, len(c.open))
	}
}

// A heldConnection is one of which only the address counts.
type heldConnection struct {
	net.Conn
	host    string
	context context.Context //nolint:containedctx // that of its requests
	closed  bool
}

func (h *heldConnection) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(h.host)} }

func (h *heldConnection) Close() error {
	h.closed = true
	return nil
}
