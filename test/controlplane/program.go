package controlplane

import (
	"context"
	"fmt"
	"net"
)

// A Program is one more process that ends with a control plane.
type Program struct {
	Name, Path string
	Flags      []string
	// Environment is what its environment has besides that of this process.
	Environment []string
}

// Run starts a program, and returns when it is ready; its output is beside that of the
// servers, and the end of it in the error.
func (c *ControlPlane) Run(ctx context.Context, p Program, ready func() error) error {
	if err := c.servers.start(p.Name, c.logFile(p.Name), p.Path, p.Environment, p.Flags...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return c.await(ctx, p.Name, ready)
}

// Kill ends at once a program that Run has started, and returns when it is gone.
func (c *ControlPlane) Kill(name string) error { return c.servers.kill(name) }

// FreeAddress is one on loopback where nobody listens.
func FreeAddress() (string, error) {
	ports, err := freePorts(1)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[0])), nil
}
