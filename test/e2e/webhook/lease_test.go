//go:build e2e

package webhook

import (
	"strings"
	"syscall"
	"testing"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A leader that loses its lease while the API server is away goes on when that is back,
// in the same process: nobody has to restart it. Meanwhile its webhook stays up.
func TestLeaseLost(t *testing.T) {
	p := shared.start(t, "", "--leader-elect")
	policy := func(name string) string {
		return strings.NewReplacer("in-team", name, "kinds: [Secret]", "kinds: [ServiceAccount]", "missing-teams", "teams-of-"+name).Replace(inTeam)
	}
	account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: team-a, namespace: default}"
	first := testcluster.Read(t, policy("before"))[0]
	if err := shared.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	refused := func(by string) func() bool {
		return func() bool {
			_, err := shared.try(t.Context(), t, account)
			return err != nil && strings.Contains(err.Error(), "teams-of-"+by)
		}
	}
	testcluster.Soon(t, "the policy is enforced", refused("before"))
	if err := shared.Plane.Interrupt(); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "the lease is lost", func() bool { return strings.Contains(p.log.String(), "the lease is lost") })
	if !p.reads(t) {
		t.Error("the webhook is down while nobody leads")
	}
	if err := shared.Plane.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := shared.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	shared.Apply(t, policy("after"))
	testcluster.Soon(t, "another policy is enforced", refused("after"))
	if err := p.command.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process: %v", err)
	}
}
