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
	"sync"
	"syscall"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/test/standin"
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

// startDev runs `kvap-dev` on the policy until the test interrupts it, or ends.
func startDev(t *testing.T, args ...string) (kubeconfig string, errs *testcluster.Buffer, interrupt func() error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(tried), 0o600); err != nil {
		t.Fatal(err)
	}
	var out testcluster.Buffer
	errs = &testcluster.Buffer{}
	cmd := exec.Command(dev, append([]string{file}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	interrupt = sync.OnceValue(func() error {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			return err
		}
		return cmd.Wait()
	})
	t.Cleanup(func() {
		_ = interrupt()
		if t.Failed() {
			t.Logf("%s\n%s", out.String(), errs.String())
		}
	})
	testcluster.Soon(t, "it says where the cluster is", func() bool {
		found := regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(out.String())
		if found != nil {
			kubeconfig = found[1]
		}
		return found != nil
	})
	return kubeconfig, errs, interrupt
}

// `kvap-dev` puts policies into force, says how to reach the API server, and leaves nothing
// behind when it is interrupted.
func TestDev(t *testing.T) {
	kubeconfig, errs, interrupt := startDev(t)
	if !strings.Contains(errs.String(), "applied ClusterPolicy tried") {
		t.Errorf("it does not say what it applied: %s", errs.String())
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default"}}
	if err := c.Create(t.Context(), bad, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "There is an owner.") {
		t.Errorf("the first request is not judged: %v", err)
	}
	testcluster.Soon(t, "the policy is in force", func() bool {
		text, err := exec.Command(kvap, "status", "--kubeconfig", kubeconfig).Output()
		return err == nil && regexp.MustCompile(`tried +ClusterPolicy +True +enforce`).Match(text)
	})
	if err := interrupt(); err != nil {
		t.Errorf("interrupted: %v\n%s", err, errs.String())
	}
	if _, err := os.Stat(filepath.Dir(kubeconfig)); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", filepath.Dir(kubeconfig), err)
	}
	if answers(t, config) {
		t.Error("the API server still answers")
	}
}

// `kvap-dev --kyverno` has something that policies can be moved away from, and back to.
func TestDevKyverno(t *testing.T) {
	kubeconfig, _, _ := startDev(t, "--kyverno")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	deniedBy := func(who string) {
		t.Helper()
		testcluster.Soon(t, "what violates is denied by "+who, func() bool {
			err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "nobody-", Namespace: "default"}}, client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), who)
		})
	}
	deniedBy(`"validate.kyverno.svc-fail" denied the request`)
	for _, step := range []struct{ args, by string }{
		{"shadow tried", "validate.kyverno.svc"},
		{"enforce tried --yes --accept tried", "ValidatingAdmissionPolicy"},
		{"rollback tried --yes", "validate.kyverno.svc"},
		{"enforce tried --yes --accept tried --way remove", "ValidatingAdmissionPolicy"},
		{"adopt tried --yes", "ValidatingAdmissionPolicy"},
		{"finish", "ValidatingAdmissionPolicy"},
		{"rollback --all --yes", "validate.kyverno.svc"},
	} {
		args := append([]string{"migrate", "--kubeconfig", kubeconfig}, strings.Fields(step.args)...)
		if out, err := exec.Command(kvap, args...).CombinedOutput(); err != nil {
			t.Fatalf("kvap migrate %s: %v\n%s", step.args, err, out)
		}
		deniedBy(step.by)
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

// `kvap-dev --kyverno=1.20` is a cluster that was upgraded with its policies in it; the
// commands of docs/upgrade-1.20.md lead from there to kvap.dev.
func TestDevClosed(t *testing.T) {
	kubeconfig, _, _ := startDev(t, "--kyverno=1.20")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	denied := func() error {
		return c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "nobody-", Namespace: "default"}}, client.DryRunAll)
	}
	if err := denied(); err != nil {
		t.Errorf("somebody enforces the policy: %v", err)
	}
	for _, step := range []struct {
		args, says string
		code       int
	}{
		{"plan", "Kyverno is 1.20.0", 0},
		{"shadow --all", "note in the record that it is done: shadow", 0},
		{"compare -q", "next: kvap migrate enforce tried", 0},
		{"enforce --all --yes --accept tried", "delete Kyverno's policy, which is in the record", 0},
		{"adopt --all --yes", "adopted", 0},
		{"rollback tried --yes", "kubectl annotate --overwrite clusterpolicies.kvap.dev tried kvap.dev/mode=shadow", 1},
		{"finish", "kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations", 0},
	} {
		command := exec.Command(kvap, append([]string{"migrate", "--kubeconfig", kubeconfig}, strings.Fields(step.args)...)...)
		out, _ := command.CombinedOutput()
		if got := command.ProcessState.ExitCode(); got != step.code || !strings.Contains(string(out), step.says) {
			t.Errorf("kvap migrate %s: exit code %d, want %d and %q\n%s", step.args, got, step.code, step.says, out)
		}
	}
	if err := denied(); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Errorf("kvap does not enforce the policy: %v", err)
	}
	// The last lines of finish: Kyverno is scaled down, and what it had registered goes for good.
	down := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 0}}`))
	if err := c.Patch(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: standin.Namespace, Name: "kyverno-admission-controller"}}, down); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "Kyverno's webhook configurations are gone", func() bool {
		var list admissionregistrationv1.ValidatingWebhookConfigurationList
		if err := c.List(t.Context(), &list, client.HasLabels{"webhook.kyverno.io/managed-by"}); err != nil {
			t.Fatal(err)
		}
		return len(list.Items) == 0
	})
	if err := denied(); err == nil {
		t.Error("kvap enforces nothing without Kyverno")
	}
}

// Kyverno answers nobody for a while: enforce says so, nothing is enforced by nobody, and the
// same command goes on when it answers again.
func TestDevHangs(t *testing.T) {
	kubeconfig, _, _ := startDev(t, "--kyverno")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hang := func(value string) {
		t.Helper()
		annotate := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"`+standin.HangsKey+`": "`+value+`"}}}`))
		if err := c.Patch(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: standin.Namespace, Name: "kyverno-admission-controller"}}, annotate); err != nil {
			t.Fatal(err)
		}
	}
	denied := func() error {
		return c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "nobody-", Namespace: "default"}}, client.DryRunAll)
	}
	testcluster.Soon(t, "Kyverno denies", func() bool { err := denied(); return err != nil && strings.Contains(err.Error(), "kyverno") })
	enforce := func() (string, int) {
		command := exec.Command(kvap, "migrate", "--kubeconfig", kubeconfig, "enforce", "tried", "--yes", "--accept", "a test")
		out, _ := command.CombinedOutput()
		return string(out), command.ProcessState.ExitCode()
	}
	hang("true")
	testcluster.Soon(t, "Kyverno does not answer", func() bool {
		err := denied()
		return err != nil && strings.Contains(err.Error(), "failed calling webhook")
	})
	if out, code := enforce(); code == 0 || !strings.Contains(out, "failed calling webhook") && !strings.Contains(out, "cannot be tried") {
		t.Errorf("exit code %d while Kyverno does not answer:\n%s", code, out)
	}
	if err := denied(); err == nil {
		t.Error("nobody enforces the policy")
	}
	hang("false")
	testcluster.Soon(t, "Kyverno answers again", func() bool {
		err := denied()
		return err != nil && !strings.Contains(err.Error(), "failed calling webhook")
	})
	if out, code := enforce(); code != 0 {
		t.Errorf("exit code %d when it answers again:\n%s", code, out)
	}
	if err := denied(); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Errorf("kvap does not enforce the policy: %v", err)
	}
}
