//go:build e2e

package record

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A cluster is the control plane that all tests share.
type cluster struct{ *testcluster.Cluster }

// shared is made by TestMain.
var shared *cluster

func TestMain(m *testing.M) {
	os.Exit(testcluster.Run(m, testcluster.Options{Definitions: []controlplane.CRD{
		controlplane.StandIn(apischema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"}, "clusterpolicies", false),
		controlplane.StandIn(apischema.GroupVersionKind{Group: "wgpolicyk8s.io", Version: "v1alpha2", Kind: "PolicyReport"}, "policyreports", true),
	}}, func(c *testcluster.Cluster) (func(), error) {
		shared = &cluster{c}
		return nil, nil
	}))
}

// A process is kvap at work.
type process struct {
	*exec.Cmd
	out, errs testcluster.Buffer
}

// start runs kvap until it ends, or the test does.
func (c *cluster) start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(c.Kvap, append(args, "--kubeconfig", c.Plane.Kubeconfig(controlplane.Admin))...)}
	p.Stdout, p.Stderr = &p.out, &p.errs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
		if t.Failed() {
			t.Logf("kvap %s:\n%s%s", strings.Join(args, " "), p.out.String(), p.errs.String())
		}
	})
	return p
}

// code waits for the end.
func (p *process) code(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

const teams = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: teams}
spec:
  validationFailureAction: Enforce
  background: true
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap, Secret], operations: [CREATE, UPDATE]}}]}
    exclude: {any: [{resources: {namespaces: [kube-system, kube-public, kube-node-lease]}}, {resources: {names: [kube-root-ca.crt]}}]}
    validate:
      message: it names its team
      pattern: {metadata: {labels: {team: "?*"}}}
`
