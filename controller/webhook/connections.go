package webhook

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// maxConnections is how many connections there are at once.
const maxConnections = 1024

// connections are those that are open. Where there are too many, the address that has most of
// them loses one: one that never brought a review, else one that is idle, and the oldest of such.
// So whoever opens many does not keep an API server out.
type connections struct {
	metrics *metrics

	mu   sync.Mutex
	open map[net.Conn]*connection
}

type connection struct {
	host     string
	busy     bool
	since    time.Time   // that it is busy or not
	reviewed atomic.Bool // it has brought a review
}

type connectionKey struct{}

// brought notes that a review came over the connection of a request.
func brought(ctx context.Context) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.reviewed.Store(true)
	}
}

// add implements http.Server.ConnContext, which comes before any state.
func (c *connections) add(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	host := hostIn(conn.RemoteAddr().String())
	if len(c.open) >= maxConnections {
		c.closeOne()
	}
	one := &connection{host: host, since: time.Now()}
	c.open[conn] = one
	c.metrics.connections.Inc()
	return context.WithValue(ctx, connectionKey{}, one)
}

// follow implements http.Server.ConnState.
func (c *connections) follow(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateActive, http.StateIdle:
		if one := c.open[conn]; one != nil {
			one.busy, one.since = state == http.StateActive, time.Now()
		}
	case http.StateClosed, http.StateHijacked:
		c.metrics.connections.Dec()
		delete(c.open, conn)
	}
}

func (c *connections) closeOne() {
	of := map[string]int{}
	most := 0
	for _, one := range c.open {
		of[one.host]++
		most = max(most, of[one.host])
	}
	var last net.Conn
	for conn, one := range c.open {
		if of[one.host] == most && (last == nil || one.compare(c.open[last]) < 0) {
			last = conn
		}
	}
	delete(c.open, last) // its state is told once more, when it is closed
	c.metrics.closed.Inc()
	if over, ok := last.(interface{ NetConn() net.Conn }); ok { // of TLS, which would say good-bye first
		last = over.NetConn()
	}
	_ = last.Close() // it goes in any case
}

// compare orders connections by who has to go.
func (c *connection) compare(o *connection) int {
	return cmp.Or(falseFirst(c.reviewed.Load(), o.reviewed.Load()), falseFirst(c.busy, o.busy), c.since.Compare(o.since))
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// hostOf is the address that a request comes from.
func hostOf(r *http.Request) string { return hostIn(r.RemoteAddr) }

func hostIn(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}
