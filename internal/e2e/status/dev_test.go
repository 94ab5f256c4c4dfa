//go:build e2e

package status

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kvap/kvap/internal/e2e/testcluster"
)

const tried = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: tried}
spec:
  validationFailureAction: Enforce
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: There is an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
`

// `kvap dev` puts policies into force, says how to reach the API server, and leaves nothing
// behind when it is interrupted.
func TestDev(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(tried), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs testcluster.Buffer
	cmd := exec.Command(kvap, "dev", file)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
			t.Logf("%s\n%s", out.String(), errs.String())
		}
	})
	var kubeconfig string
	testcluster.Soon(t, "it says where the cluster is", func() bool {
		found := regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(out.String())
		if found != nil {
			kubeconfig = found[1]
		}
		return found != nil
	})
	if !strings.Contains(errs.String(), "applied ClusterPolicy tried") {
		t.Errorf("it does not say what it applied: %s", errs.String())
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "the policy is in force", func() bool {
		text, err := exec.Command(kvap, "status", "--kubeconfig", kubeconfig).Output()
		return err == nil && regexp.MustCompile(`tried +ClusterPolicy +True +enforce`).Match(text)
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended = true
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v\n%s", err, errs.String())
	}
	if _, err := os.Stat(filepath.Dir(kubeconfig)); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", filepath.Dir(kubeconfig), err)
	}
	if answers(t, config) {
		t.Error("the API server still answers")
	}
}

// answers tells that somebody is at the API server's address.
func answers(t *testing.T, config *rest.Config) bool {
	t.Helper()
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", to.Host)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}
