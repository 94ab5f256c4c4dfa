package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Options say what to start. The zero value is a control plane in a temporary
// folder, with binaries that are built where they are missing.
type Options struct {
	// Binaries is the folder of the three binaries. Where it is empty they are
	// those of Build.
	Binaries string
	// Dir is the folder for data, logs and kubeconfig files, which is kept. Where
	// it is empty a temporary one is made, and removed in the end.
	Dir string
	// Progress hears what takes long; os.Stderr where nil.
	Progress io.Writer
	// Users exist besides the administrator and the plain user. RBAC grants them
	// nothing but what is given to their groups.
	Users []User
	// APIServerFlags are added to the command line of kube-apiserver, for instance
	// --emulated-version=1.34.
	APIServerFlags []string
	// Controllers of kube-controller-manager run besides those that always do, for
	// instance deployment-controller.
	Controllers []string

	// withoutDeathSignal leaves the ends of processes to the watchdog, as where
	// the kernel knows no such signal.
	withoutDeathSignal bool
}

// A ControlPlane is running until Stop.
type ControlPlane struct {
	dir      string
	keep     bool // the folder is the caller's
	binaries string
	etcd     string // where it listens
	url      string
	port     int      // of the API server
	flags    []string // of the API server, besides its own
	managers []string // controllers of kube-controller-manager, besides its own
	users    []User
	servers  *launcher
}

// startAttempts is how often Start tries: between finding a free port and a
// server's taking it, another process may take it.
const startAttempts = 3

// Start returns when the control plane answers and its admission plugins judge.
// The caller calls Stop. A context that ends stops the start, not what has started.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.Binaries == "" {
		binaries, err := Build(ctx, o.Progress)
		if err != nil {
			return nil, err
		}
		o.Binaries = binaries
	}
	var err error
	for range startAttempts {
		var c *ControlPlane
		if c, err = start(ctx, o); err == nil {
			return c, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, err
}

func start(ctx context.Context, o Options) (c *ControlPlane, err error) {
	c = &ControlPlane{keep: o.Dir != "", binaries: o.Binaries}
	if c.dir, err = dataFolder(o.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	remove := c.dir
	if c.keep {
		remove = ""
	}
	if c.servers, err = newLauncher(remove, !o.withoutDeathSignal); err != nil {
		return nil, err
	}
	c.users = withTokens(o.Users)
	c.flags, c.managers = o.APIServerFlags, o.Controllers
	return c, c.startServers(ctx)
}

// startServers starts each server when the one that it needs answers.
func (c *ControlPlane) startServers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	c.etcd = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	c.port, c.url = ports[2], fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	if err := c.writeFiles(); err != nil {
		return err
	}
	if err := c.launch("etcd", "etcd", etcdFlags(c.dir, c.etcd, fmt.Sprintf("http://127.0.0.1:%d", ports[1]))); err != nil {
		return err
	}
	if err := c.await(ctx, "etcd", func() error { return healthy(ctx, c.etcd+"/health") }); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx, apiServer, c.Config(Admin), c.port, c.flags); err != nil {
		return err
	}
	if err := c.empowerControllers(ctx); err != nil {
		return err
	}
	if err := c.await(ctx, apiServer, func() error { return c.controllersMay(ctx) }); err != nil {
		return err
	}
	return c.launch(controllerManager, controllerManager, controllerManagerFlags(c.dir, c.managers))
}

// apiServer is the name of the first kube-apiserver.
const apiServer = "kube-apiserver"

// controllerManager is the name of the server that runs the controllers.
const controllerManager = "kube-controller-manager"

// Interrupt ends the API server at once, as a crash does: told to end, it would wait a
// minute for whoever watches. Resume starts it again, at the same address, with the same
// certificate and data, and returns when it judges requests; nobody else is restarted.
func (c *ControlPlane) Interrupt() error { return c.servers.kill(apiServer) }

// Resume follows Interrupt.
func (c *ControlPlane) Resume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return c.startAPIServer(ctx, apiServer, c.Config(Admin), c.port, c.flags)
}

// Another starts one more kube-apiserver on the same data, with flags of its own,
// and returns its URL: whoever may talk to the first may talk to it.
func (c *ControlPlane) Another(ctx context.Context, flags ...string) (url string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ports, err := freePorts(1)
	if err != nil {
		return "", err
	}
	admin := c.Config(Admin)
	admin.Host = fmt.Sprintf("https://127.0.0.1:%d", ports[0])
	return admin.Host, c.startAPIServer(ctx, fmt.Sprintf("%s-%d", apiServer, ports[0]), admin, ports[0], flags)
}

// Retire ends an API server that Another has started.
func (c *ControlPlane) Retire(url string) error {
	return c.servers.kill(apiServer + "-" + url[strings.LastIndex(url, ":")+1:])
}

// startAPIServer returns when the server judges requests.
func (c *ControlPlane) startAPIServer(ctx context.Context, name string, admin *rest.Config, port int, flags []string) error {
	audit := filepath.Join(filepath.Dir(c.AuditLog()), strings.Replace(name, "kube-apiserver", "audit", 1)+".log")
	if err := c.launch(name, "kube-apiserver", append(apiServerFlags(c.dir, audit, port, c.etcd), flags...)); err != nil {
		return err
	}
	return c.await(ctx, name, func() error { return c.serving(ctx, admin) })
}

func (c *ControlPlane) launch(name, binary string, flags []string) error {
	return c.servers.start(name, c.logFile(name), filepath.Join(c.binaries, binary), nil, flags...)
}

// readyTimeout bounds a start; on an idle machine it takes some four seconds.
const readyTimeout = 5 * time.Minute

// errPortTaken is a server that found its port in use.
var errPortTaken = errors.New("a port was taken")

// await asks again and again until ready says nil or the server has ended.
func (c *ControlPlane) await(ctx context.Context, server string, ready func() error) error {
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-c.servers.ended(server):
			return c.ended(server)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", server, err, c.logTail(server))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ended is the error for a server that has ended by itself.
func (c *ControlPlane) ended(server string) error {
	tail := c.logTail(server)
	if strings.Contains(tail, "address already in use") {
		return fmt.Errorf("%s: %w", server, errPortTaken)
	}
	return fmt.Errorf("%s has ended:\n%s", server, tail)
}

// Stop ends all processes at once, for their data is thrown away, and removes the
// temporary folder. It may be called again.
func (c *ControlPlane) Stop() error {
	if c.servers != nil {
		c.servers.stop()
	}
	if c.keep {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// URL is where the API server listens.
func (c *ControlPlane) URL() string { return c.url }

// Dir is the folder of data, logs and kubeconfig files.
func (c *ControlPlane) Dir() string { return c.dir }

// AuditLog is the file with an event, as a line of JSON, for each request. It has
// all that was answered already.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.dir, "logs", "audit.log") }

func (c *ControlPlane) logFile(server string) string {
	return filepath.Join(c.dir, "logs", server+".log")
}

// logTail is the end of a server's log, for error messages.
func (c *ControlPlane) logTail(server string) string {
	data, err := os.ReadFile(c.logFile(server))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-2000):])
}

func dataFolder(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "kvap-controlplane-")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}
