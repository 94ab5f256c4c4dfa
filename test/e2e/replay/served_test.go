//go:build e2e

package replay

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// program is the user that kvap is. What it does itself triggers no rule, so those
// who make triggers are others.
const program = "kvap"

// A served is a control plane with `kvap-controller`.
type served struct {
	*server
	process *exec.Cmd
	log     testcluster.Buffer
}

// newServed starts one; controllers are those of Kubernetes that it has besides, and more
// are flags of kvap's.
func newServed(t *testing.T, controllers []string, more ...string) *served {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	programs, err := testcluster.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	flag, err := auditedRequests(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{APIServerFlags: []string{flag}, Users: []controlplane.User{
		{Name: program, Groups: []string{"system:masters"}}, {Name: tester, Groups: []string{"system:masters"}},
	}, Controllers: controllers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	var definitions []controlplane.CRD
	for _, folder := range []string{"../../../deploy/crds", filepath.Join(*corpus, "..", "crds")} {
		read, err := controlplane.ReadCRDs(folder)
		if err != nil {
			t.Fatal(err)
		}
		definitions = append(definitions, read...)
	}
	if err := plane.InstallCRDs(t.Context(), definitions...); err != nil {
		t.Fatal(err)
	}
	config := plane.Config(controlplane.Admin)
	config.WarningHandler = rest.NoWarnings{}
	admin, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{server: &server{plane: plane, judged: admin, unjudged: admin}}
	s.start(t, programs.Controller, more...)
	return s
}

// start runs `kvap-controller` with its webhook until the test ends.
func (s *served) start(t *testing.T, controller string, more ...string) {
	t.Helper()
	if err := s.judged.Create(t.Context(), object("v1", "Namespace", "", "kvap-system")); err != nil {
		t.Fatal(err)
	}
	address, err := testcluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s.process = exec.Command(controller, append([]string{"--kubeconfig", s.plane.Kubeconfig(program), "--namespace", "kvap-system",
		"--webhook-address", address, "--webhook-url", "https://" + address, "--audit-log", s.plane.AuditLog()}, more...)...)
	s.process.Stderr = &s.log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		if t.Failed() {
			t.Logf("kvap-controller:\n%s", s.log.String())
		}
	})
}
