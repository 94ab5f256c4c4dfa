//go:build e2e

package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// childVariable makes the test binary a process that starts a control plane, says
// so, and waits to be killed.
const childVariable = "KVAP_TEST_CONTROLPLANE_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childVariable); mode != "" {
		child(mode)
	}
	os.Exit(m.Run())
}

func begin(t *testing.T, o Options) *ControlPlane {
	t.Helper()
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.logTail(controllerManager))
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *ControlPlane) as(t *testing.T, user string) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config(user))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var (
	configMaps = apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = apischema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces = apischema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	policies   = admission("validatingadmissionpolicies")
	bindings   = admission("validatingadmissionpolicybindings")
)

func admission(resource string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// soon asks until the answer is yes.
func soon(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ask(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

const noOdd = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-odd}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  validations:
  - {expression: "object.metadata.name != 'odd'", message: no odd ones}
  - {expression: "object.nonsense != 'odd'"}
`

const noOddBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-odd}
spec: {policyName: no-odd, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {odd: forbidden}}}}
`

// A policy denies, its status says what the type checker found, and users may do
// what RBAC says.
func TestControlPlane(t *testing.T) {
	c := begin(t, Options{Users: []User{{Name: "bob"}}})
	admin := c.as(t, Admin)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

	t.Run("deny", func(t *testing.T) {
		ns := object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: odd, labels: {odd: forbidden}}}")
		if _, err := admin.Resource(namespaces).Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for resource, text := range map[apischema.GroupVersionResource]string{policies: noOdd, bindings: noOddBinding} {
			if _, err := admin.Resource(resource).Create(t.Context(), object(t, text), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		odd := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: odd}}")
		soon(t, "the policy denies", func() bool {
			_, err := admin.Resource(configMaps).Namespace("odd").Create(t.Context(), odd, dry)
			return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "no odd ones")
		})
	})

	t.Run("type check", func(t *testing.T) {
		soon(t, "status.typeChecking names the unknown field", func() bool {
			p, err := admin.Resource(policies).Get(t.Context(), "no-odd", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			warnings, _, _ := unstructured.NestedSlice(p.Object, "status", "typeChecking", "expressionWarnings")
			return len(warnings) == 1 && strings.Contains(fmt.Sprint(warnings), "nonsense")
		})
	})

	t.Run("RBAC", func(t *testing.T) {
		for _, user := range []string{Plain, "bob"} {
			_, err := c.as(t, user).Resource(secrets).Namespace("default").List(t.Context(), metav1.ListOptions{})
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s lists secrets: %v, want 403", user, err)
			}
		}
		config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig(Plain))
		if err != nil {
			t.Fatal(err)
		}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resource(secrets).Namespace("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s lists secrets by the kubeconfig file: %v, want 403", Plain, err)
		}
		stranger := c.Config(Plain)
		stranger.BearerToken = "guess"
		if client, err = dynamic.NewForConfig(stranger); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resource(secrets).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("a stranger lists secrets: %v, want 401", err)
		}
		if c.Config("nobody") != nil || c.Kubeconfig("nobody") != "" {
			t.Error("there is a configuration for a user who does not exist")
		}
	})

	t.Run("namespace controller", func(t *testing.T) {
		if err := admin.Resource(namespaces).Delete(t.Context(), "odd", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		soon(t, "the namespace is gone", func() bool {
			_, err := admin.Resource(namespaces).Get(t.Context(), "odd", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})

	t.Run("audit log", func(t *testing.T) {
		log, err := os.ReadFile(c.AuditLog())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(log, []byte(`"name":"no-odd"`)) || !bytes.Contains(log, []byte(`"username":"bob"`)) {
			t.Error("the audit log lacks what was asked for")
		}
		for line := range bytes.Lines(log) {
			if !json.Valid(line) {
				t.Errorf("no JSON: %s", line)
			}
		}
	})
}

// The definitions are served when InstallCRDs returns; two control planes run
// side by side, and their data goes with them.
func TestCRDsAndTwoAtOnce(t *testing.T) {
	widgets := apischema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "widgets"}
	crd := StandIn(widgets.GroupVersion().WithKind("Widget"), widgets.Resource, true)
	one, two := begin(t, Options{}), begin(t, Options{})
	if err := one.InstallCRDs(t.Context(), crd, crd); err != nil {
		t.Fatal(err)
	}
	widget := object(t, "{apiVersion: x.io/v1, kind: Widget, metadata: {name: w}, spec: {any: thing}}")
	made, err := one.as(t, Admin).Resource(widgets).Namespace("default").Create(t.Context(), widget, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(made.Object, "spec", "any"); got != "thing" {
		t.Errorf("a stand-in prunes: %v", made.Object)
	}
	if _, err := two.as(t, Admin).Resource(widgets).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other control plane has widgets: %v", err)
	}
	if err := one.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(one.Dir()); !os.IsNotExist(err) {
		t.Errorf("the data stays: %v", err)
	}
}

// The definitions of Kyverno install, where they are at hand.
func TestKyvernoCRDs(t *testing.T) {
	crds, err := ReadCRDs(filepath.Join("..", "..", "..", "shared", "crds"))
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) == 0 {
		t.Skip("the definitions are not at hand")
	}
	c := begin(t, Options{})
	if err := c.InstallCRDs(t.Context(), crds...); err != nil {
		t.Fatal(err)
	}
}

// Whatever ends the process that started it, a control plane ends too.
func TestNothingStaysBehind(t *testing.T) {
	for name, end := range map[string]struct {
		mode string
		kill bool
	}{
		"killed":                   {"", true},
		"killed, watchdog alone":   {"no-signal", true},
		"killed, without watchdog": {"no-watchdog", true},
		"panic":                    {"panic", false},
	} {
		t.Run(name, func(t *testing.T) {
			if end.mode == "no-watchdog" && runtime.GOOS != "linux" {
				t.Skip("the kernel has no signal for the death of a parent")
			}
			c := startChild(t, cmp.Or(end.mode, "wait"))
			if end.kill {
				for _, pid := range c.pids {
					if !alive(pid) {
						t.Fatalf("process %d has not started", pid)
					}
				}
				if err := c.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			_ = c.cmd.Wait() // it did not end well; that is the point
			for _, pid := range c.pids {
				soon(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !alive(pid) })
			}
			if end.mode == "no-watchdog" {
				_ = os.RemoveAll(c.dir) // nobody is left to do it
			}
			soon(t, "the data is gone", func() bool {
				_, err := os.Stat(c.dir)
				return os.IsNotExist(err)
			})
		})
	}
}

// A started child, with the servers that it started.
type startedChild struct {
	cmd  *exec.Cmd
	dir  string
	pids []int
}

func startChild(t *testing.T, mode string) startedChild {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+mode)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c := startedChild{cmd: cmd}
	buffer := make([]byte, 4096)
	n, err := out.Read(buffer)
	if err != nil {
		t.Fatalf("the child says nothing: %v", err)
	}
	words := strings.Fields(string(buffer[:n]))
	c.dir = words[0]
	for _, w := range words[1:] {
		pid, err := strconv.Atoi(w)
		if err != nil {
			t.Fatal(err)
		}
		c.pids = append(c.pids, pid)
	}
	if len(c.pids) != 3 {
		t.Fatalf("%d servers, want 3", len(c.pids))
	}
	return c
}

func child(mode string) {
	c, err := Start(context.Background(), Options{withoutDeathSignal: mode == "no-signal"})
	if err != nil {
		panic(err)
	}
	if mode == "no-watchdog" {
		_ = c.servers.watchdog.Process.Kill()
	}
	words := []string{c.dir}
	for _, s := range c.servers.running {
		words = append(words, strconv.Itoa(s.pid))
	}
	fmt.Println(strings.Join(words, " "))
	if mode == "panic" {
		panic("as a test does")
	}
	select {}
}

// alive tells whether a process runs; one that waits to be reaped does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err) && runtime.GOOS != "linux" // no such file system, or no such process
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
