//go:build e2e && kyverno

package kyverno

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/test/kyverno"
)

// controllerUser is whom kvap's controller is to the API server: what it does itself
// triggers no rule.
const controllerUser = "kvap"

// A cluster is a control plane with Kyverno on it, and kvap's controller.
type cluster struct {
	*testcluster.Cluster
	kyverno *kyverno.Kyverno

	balancer net.Listener // where kvap's webhook is, as a Service is
	log      testcluster.Buffer
	replicas [2]replica
	flags    []string // of the replicas, besides
	// asking is held by who asks something, and taken while a replica is killed: what it
	// was asked at that moment, nobody answers.
	asking sync.RWMutex

	count counts
}

// counts are what the run is about.
type counts struct {
	good, bad                        atomic.Int64 // requests
	admitted, refused, changed       atomic.Int64 // wrongly: bad ones, good ones, objects without their change
	generated, deleted, absent, late atomic.Int64 // objects that were generated; wrongly
	killed, controllers              atomic.Int64

	mu    sync.Mutex
	first []string // of what went wrong
}

func (n *counts) wrong(of *atomic.Int64, format string, args ...any) {
	of.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.first) < 20 {
		n.first = append(n.first, time.Now().Format(time.StampMilli)+": "+fmt.Sprintf(format, args...))
	}
}

// check fails where something has gone wrong so far.
func (c *cluster) check(t *testing.T, when string) {
	t.Helper()
	n := &c.count
	t.Logf("%s: %d good and %d bad requests; %d bad admitted, %d good refused, %d not changed; of %d generated %d deleted, %d absent; %d late; %d kills of the command line, %d of the controller",
		when, n.good.Load(), n.bad.Load(), n.admitted.Load(), n.refused.Load(), n.changed.Load(), n.generated.Load(), n.deleted.Load(), n.absent.Load(), n.late.Load(),
		n.killed.Load(), n.controllers.Load())
	if n.admitted.Load()+n.refused.Load()+n.changed.Load()+n.deleted.Load()+n.absent.Load()+n.late.Load() > 0 {
		n.mu.Lock()
		defer n.mu.Unlock()
		t.Fatalf("%s:\n%s", when, strings.Join(n.first, "\n"))
	}
}

// migrate runs `kvap migrate` to its end, and fails where that is not the code, unless that is any (-1).
func (c *cluster) migrate(t *testing.T, code int, args ...string) string {
	t.Helper()
	return c.run(t, code, append([]string{"migrate"}, args...)...)
}

func (c *cluster) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	begun := time.Now()
	command := exec.Command(c.Kvap, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig(controlplane.Admin))
	out, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	t.Logf("kvap %s: %s\n%s", strings.Join(args, " "), time.Since(begun).Round(time.Millisecond), out)
	if got := command.ProcessState.ExitCode(); code >= 0 && got != code {
		t.Fatalf("exit code %d, want %d", got, code)
	}
	return string(out)
}

// kill runs `kvap migrate` and kills it after a while.
func (c *cluster) kill(t *testing.T, after time.Duration, args ...string) {
	t.Helper()
	command := exec.Command(c.Kvap, append([]string{"migrate"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig(controlplane.Admin))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() {
		if command.Process.Kill() == nil {
			c.count.killed.Add(1)
		}
	})
	_ = command.Wait()
	timer.Stop()
}

// A replica is a process of `kvap-controller`, and where its webhook listens.
type replica struct {
	address string
	process *exec.Cmd
}

// control runs two replicas of `kvap-controller` until the test ends, with their webhooks
// behind one address.
func (c *cluster) control(t *testing.T, flags ...string) {
	t.Helper()
	c.flags = flags
	var err error
	if c.balancer, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	for i := range c.replicas {
		if c.replicas[i].address, err = testcluster.FreeAddress(); err != nil {
			t.Fatal(err)
		}
		c.startController(t, i)
	}
	go c.balance()
	t.Cleanup(func() {
		_ = c.balancer.Close()
		for _, r := range c.replicas {
			_ = r.process.Process.Kill()
			_ = r.process.Wait()
		}
		if t.Failed() {
			t.Logf("kvap-controller:\n%s", c.log.String())
		}
	})
}

// balance leads each connection to a replica that takes it, until the listener is closed.
func (c *cluster) balance() {
	for {
		from, err := c.balancer.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			for _, r := range c.replicas {
				to, err := net.Dial("tcp", r.address)
				if err != nil {
					continue
				}
				go func() {
					_, _ = io.Copy(to, from)
					_ = to.Close()
				}()
				_, _ = io.Copy(from, to) // until the replica ends it, or is gone
				return
			}
		}()
	}
}

func (c *cluster) startController(t *testing.T, i int) {
	t.Helper()
	command := exec.Command(c.Controller, append([]string{
		"--kubeconfig", c.Plane.Kubeconfig(controllerUser), "--mode", "off", "--namespace", "default", "--leader-elect", "--reports", "wgpolicyk8s",
		"--exception-namespaces", "*", "--webhook-address", c.replicas[i].address, "--webhook-url", "https://" + c.balancer.Addr().String(),
	}, c.flags...)...)
	command.Stderr = &c.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	c.replicas[i].process = command
}

// killController kills a replica and starts it again. The other one answers meanwhile; with
// one replica, requests that the webhook is asked about would be refused for seconds.
func (c *cluster) killController(t *testing.T) {
	t.Helper()
	i := int(c.count.controllers.Load()) % len(c.replicas)
	c.asking.Lock()
	_ = c.replicas[i].process.Process.Kill()
	_ = c.replicas[i].process.Wait()
	c.asking.Unlock()
	c.count.controllers.Add(1)
	time.Sleep(3 * time.Second) // alone
	c.startController(t, i)
	testcluster.Soon(t, "the replica listens again", func() bool {
		conn, err := net.Dial("tcp", c.replicas[i].address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	time.Sleep(2 * time.Second) // it reads what there is
}

func object(t *testing.T, text string, good bool) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	if good {
		o.SetLabels(map[string]string{"team": "blue"})
	}
	return o
}

// judged makes an object, dry, and gives what the answer is.
func (c *cluster) judged(ctx context.Context, o *unstructured.Unstructured) error {
	return c.Create(ctx, o.DeepCopy(), client.DryRunAll)
}

// stamped tells whether an object gets its change.
func (c *cluster) stamped(ctx context.Context, t *testing.T) error {
	o := object(t, "{apiVersion: v1, kind: LimitRange, metadata: {name: probe, namespace: shop}, spec: {limits: [{type: Pod}]}}", false)
	if err := c.Create(ctx, o, client.DryRunAll); err != nil {
		return err
	}
	if got := o.GetLabels()["stamped"] + " " + o.GetLabels()["team"]; got != "yes none" {
		return fmt.Errorf("its labels are %q", got)
	}
	return nil
}

// turn is taken by who asks something; the function that is returned ends it.
func (c *cluster) turn() (end func()) {
	c.asking.RLock()
	return func() {
		c.asking.RUnlock()
		time.Sleep(10 * time.Millisecond)
	}
}

// stream sends good and bad requests about every policy all the time.
func (c *cluster) stream(t *testing.T) (stop func()) {
	t.Helper()
	n := &c.count
	var each []func(context.Context)
	for _, p := range probes() {
		good, bad := object(t, p.text, true), object(t, p.text, false)
		each = append(each, func(ctx context.Context) {
			defer c.turn()()
			if err := c.judged(ctx, bad); err == nil {
				n.wrong(&n.admitted, "%s: a bad request was admitted", p.policy)
			}
			n.bad.Add(1)
			if err := c.judged(ctx, good); err != nil && ctx.Err() == nil {
				n.wrong(&n.refused, "%s: a good request was refused: %v", p.policy, err)
			}
			n.good.Add(1)
		})
	}
	spared := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe-spared, namespace: shop}}", false)
	each = append(each, func(ctx context.Context) {
		defer c.turn()()
		if err := c.judged(ctx, spared); err != nil && ctx.Err() == nil {
			n.wrong(&n.refused, "labelled: a request that is excepted was refused: %v", err)
		}
		n.good.Add(1)
	}, func(ctx context.Context) {
		defer c.turn()()
		if err := c.stamped(ctx, t); err != nil && ctx.Err() == nil {
			n.wrong(&n.changed, "stamped: %v", err)
		}
		n.good.Add(1)
	})
	return testcluster.Repeat(t, each...)
}

// watchQuotas counts what was generated, and what of that is deleted.
func (c *cluster) watchQuotas(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	quotas := kubernetes.NewForConfigOrDie(c.Config).CoreV1().ResourceQuotas("")
	list, err := quotas.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := quotas.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, o := range list.Items {
		uids[o.Namespace] = o.UID
	}
	c.count.generated.Store(int64(len(uids)))
	var watching sync.WaitGroup
	watching.Go(func() {
		for event := range w.ResultChan() {
			o, ok := event.Object.(*corev1.ResourceQuota)
			switch {
			case !ok && ctx.Err() != nil:
				return
			case !ok:
				t.Errorf("the watch ended: %v", event.Object)
				return
			case event.Type == "DELETED":
				c.count.wrong(&c.count.deleted, "what was generated in %s was deleted", o.Namespace)
			case uids[o.Namespace] == "":
				uids[o.Namespace] = o.UID
				c.count.generated.Add(1)
			case uids[o.Namespace] != o.UID:
				c.count.wrong(&c.count.absent, "what was generated in %s was made anew", o.Namespace)
			}
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		watching.Wait()
	})
	t.Cleanup(stop)
	return stop
}
