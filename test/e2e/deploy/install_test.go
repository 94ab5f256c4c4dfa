//go:build e2e

package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/tools/snippets"
)

// A terminal is a folder as the README has it, and an environment with helm, kubectl and kvap
// for a cluster that has nothing of kvap.
type terminal struct {
	*cluster
	dir string
	env []string
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	config := plane.Config(controlplane.Admin)
	made, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := controlplane.Kubectl(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{cluster: &cluster{Cluster: &testcluster.Cluster{Client: made, Plane: plane, Config: config, Programs: shared.Programs}}, dir: t.TempDir()}
	bin := filepath.Join(x.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	helm := fmt.Sprintf("#!/bin/sh\nexec go tool -modfile=%q helm \"$@\"\n", filepath.Join(root, "tools", "helm.mod"))
	if err := os.WriteFile(filepath.Join(bin, "helm"), []byte(helm), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{filepath.Join(bin, "kubectl"): kubectl, filepath.Join(bin, "kvap"): x.Kvap} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	// go tool wants to be in the module, so the commands run there, and what they read is in another folder.
	x.env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+plane.Kubeconfig(controlplane.Admin),
		"HELM_CACHE_HOME="+x.dir, "HELM_CONFIG_HOME="+x.dir, "HELM_DATA_HOME="+x.dir)
	return x
}

// run is what a command says, in the repository.
func (x *terminal) run(t *testing.T, command string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", command)
	cmd.Dir, cmd.Env = "../../..", x.env
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func (x *terminal) must(t *testing.T, command string) string {
	t.Helper()
	text, err := x.run(t, command)
	if err != nil {
		t.Fatalf("$ %s\n%s%v", command, text, err)
	}
	return text
}

// readme are the commands that the README has for a cluster, line by line, for a policy in a folder.
func readme(t *testing.T, dir string) (install string, rest []string) {
	t.Helper()
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(dir, "owners.yaml")
	if err := os.WriteFile(policy, []byte(snippets.Under(string(page), "1. Convert files", "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(snippets.Under(string(page), "2. Enforce in a cluster", "sh"), " owners.yaml ", " "+policy+" ")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if !strings.HasPrefix(lines[0], "helm install ") || len(lines) < 4 {
		t.Fatalf("the README has other commands:\n%s", text)
	}
	return lines[0], lines[1:]
}

// What the README says to copy installs kvap by Helm, enforces a policy and ends in a denial. No Pod
// runs here, so the controller runs beside, as the Deployment has it.
func TestReadmeCluster(t *testing.T) {
	x := newTerminal(t)
	install, commands := readme(t, x.dir)
	x.must(t, install)
	objects, err := readAll([]byte(x.must(t, "helm get manifest kvap --namespace kvap-system")))
	if err != nil {
		t.Fatal(err)
	}
	x.installed = objects
	x.runAsAccount(t)
	last := len(commands) - 1
	for _, command := range commands[:last] {
		text := x.must(t, command)
		if (strings.HasPrefix(command, "kvap status") || strings.HasPrefix(command, "kubectl get")) && !strings.Contains(text, "owners") {
			t.Errorf("$ %s\n%s", command, text)
		}
	}
	if text, err := x.run(t, commands[last]); err == nil || !strings.Contains(text, "'kvap-deployments-deny'") || !strings.Contains(text, "[owners/owner] A Deployment names its owner.") {
		t.Errorf("$ %s\n%s%v", commands[last], text, err)
	}
	x.upgradeAndUninstall(t)
}

// upgradeAndUninstall upgrades the definitions with the chart, and leaves them and what is enforced
// when it goes.
func (x *terminal) upgradeAndUninstall(t *testing.T) {
	const shortNames = "kubectl get crd policytranslations.kvap.dev -o jsonpath='{.spec.names.shortNames}'"
	want := x.must(t, shortNames)
	x.must(t, `kubectl patch crd policytranslations.kvap.dev --type merge -p '{"spec": {"names": {"shortNames": ["old"]}}}'`)
	x.must(t, "helm upgrade kvap deploy/chart --namespace kvap-system")
	if got := x.must(t, shortNames); got != want {
		t.Errorf("after an upgrade the definition has the short names %s; want %s", got, want)
	}
	if text := x.must(t, "kvap uninstall"); !strings.Contains(text, "kvap-deployments-deny") || !strings.Contains(text, "Deny") {
		t.Errorf("kvap uninstall says\n%s", text)
	}
	x.must(t, "helm uninstall kvap --namespace kvap-system")
	for _, there := range []string{"crd policytranslations.kvap.dev", "clusterpolicies.kvap.dev owners", "validatingadmissionpolicy kvap-deployments-deny"} {
		x.must(t, "kubectl get "+there)
	}
}

// What else the chart's README says installs the same: a template that is piped, and kustomize, also
// with the overlay and with all options of the chart that need no other definitions.
func TestInstalls(t *testing.T) {
	x := newTerminal(t)
	page, err := os.ReadFile("../../../deploy/chart/README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(strings.TrimSpace(snippets.Under(string(page), "The chart kvap", "sh")), "\n")
	if len(commands) != 4 {
		t.Fatalf("the chart's README has other commands: %q", commands)
	}
	x.must(t, commands[1])
	for _, c := range []struct{ command, mode, memory string }{
		{commands[2], "--mode=shadow", "512Mi"},
		{commands[3], "--mode=shadow", "512Mi"},
		{"kubectl apply --server-side -k deploy/kustomize/example", "--mode=enforce", "1Gi"},
		{"helm template kvap deploy/chart --namespace kvap-system --kube-version 1.30 --set webhook.enabled=true,reports.enabled=true,metrics.dashboard.enabled=true,networkPolicy.enabled=true | kubectl apply --server-side --force-conflicts -f -", "--mode=shadow", "512Mi"},
	} {
		x.must(t, c.command)
		d := x.deployment(t)
		container := d.Spec.Template.Spec.Containers[0]
		if memory := container.Resources.Limits[corev1.ResourceMemory]; !strings.Contains(strings.Join(container.Args, " "), c.mode) || memory.String() != c.memory {
			t.Errorf("after %s the arguments are %q, and it may have %s", c.command, container.Args, memory.String())
		}
	}
	if text := x.must(t, "kubectl get configmap kvap-dashboard --namespace kvap-system -o jsonpath='{.data.kvap\\.json}'"); !strings.HasPrefix(text, "{") {
		t.Errorf("the dashboard is %q", text)
	}
}

func (x *terminal) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("apps/v1")
	o.SetKind("Deployment")
	if err := x.Get(t.Context(), client.ObjectKey{Namespace: "kvap-system", Name: "kvap"}, o); err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
		t.Fatal(err)
	}
	return d
}
