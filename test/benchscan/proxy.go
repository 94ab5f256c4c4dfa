package main

import (
	"io"
	"net"
	"sync"
)

// A proxy hands on what the controller and the API server say to each other.
type proxy struct {
	net.Listener
	to string

	mu   sync.Mutex
	open map[net.Conn]bool
}

func newProxy(to string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{Listener: l, to: to, open: map[net.Conn]bool{}}
	go p.serve()
	return p, nil
}

func (p *proxy) serve() {
	for {
		from, err := p.Accept()
		if err != nil {
			return // it is closed
		}
		go p.hand(from)
	}
}

func (p *proxy) hand(from net.Conn) {
	defer from.Close() //nolint:errcheck // whoever is cut off sees it
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer to.Close() //nolint:errcheck // as above
	p.mu.Lock()
	p.open[from] = true
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(to, from) // until one of them ends
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
	p.mu.Lock()
	delete(p.open, from)
	p.mu.Unlock()
}

// cut ends all connections, and with them all watches.
func (p *proxy) cut() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
	return len(p.open)
}
