//go:build e2e

package webhook

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A cluster is the control plane that all tests share.
type cluster struct{ *testcluster.Cluster }

// programUser is who kvap is where a test is about who asks; otherwise it is the administrator.
const programUser = "kvap"

// shared is made by TestMain.
var shared *cluster

func TestMain(m *testing.M) {
	os.Exit(testcluster.Run(m, testcluster.Options{Users: []controlplane.User{{Name: programUser, Groups: []string{"system:masters"}}}}, func(c *testcluster.Cluster) (func(), error) {
		shared = &cluster{c}
		return nil, nil
	}))
}

// A process is `kvap-controller`.
type process struct {
	command *exec.Cmd
	address string
	log     testcluster.Buffer
}

// start runs `kvap-controller` with its webhook at an address, a free one where it is
// empty, until the test ends.
func (c *cluster) start(t *testing.T, address string, flags ...string) *process {
	t.Helper()
	if address == "" {
		var err error
		if address, err = testcluster.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	p := &process{address: address}
	p.command = exec.Command(c.Controller, append([]string{
		"--kubeconfig", c.Plane.Kubeconfig(controlplane.Admin), "--mode", "enforce", "--namespace", "default",
		"--webhook-address", address, "--webhook-url", "https://" + address,
	}, flags...)...)
	p.command.Stderr = &p.log
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("kvap-controller:\n%s", p.log.String())
		}
	})
	return p
}

// kill ends the process at once, as SIGKILL does.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// try makes an object, dry, and gives what comes of it.
func (c *cluster) try(ctx context.Context, t *testing.T, text string) (*unstructured.Unstructured, error) {
	t.Helper()
	o := testcluster.Read(t, text)[0]
	err := c.Create(ctx, o, client.DryRunAll)
	return o, err
}

// denied waits until an object is refused, and gives the reason.
func (c *cluster) denied(t *testing.T, text string) string {
	t.Helper()
	var message string
	testcluster.Soon(t, "a denial", func() bool {
		_, err := c.try(t.Context(), t, text)
		if err != nil && (strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request:")) {
			message = err.Error()
			return true
		}
		return false
	})
	return message
}

// admitted waits until an object is taken, and gives what became of it.
func (c *cluster) admitted(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var out *unstructured.Unstructured
	var err error
	testcluster.Soon(t, "an admission", func() bool {
		out, err = c.try(t.Context(), t, text)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	return out
}
