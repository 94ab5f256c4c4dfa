//go:build e2e

package record

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// recorded are the names of the objects of all lines in a folder, with how often each
// is there, and all text.
func recorded(t *testing.T, dir string) (names map[string]int, all []byte) {
	t.Helper()
	names = map[string]int{}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	lines := bufio.NewScanner(bytes.NewReader(all))
	lines.Buffer(nil, 32<<20)
	for lines.Scan() {
		var line struct {
			Request struct {
				Name string `json:"name"`
			} `json:"request"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			continue // it is being written
		}
		names[line.Request.Name]++
	}
	return names, all
}

func (c *cluster) secret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"team": "a"}, Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"password":"` + value + `"}}`, "copied": "password is " + value,
		}},
		StringData: map[string]string{"password": value},
	}
}

// listening waits until the recorder gets requests.
func (c *cluster) listening(t *testing.T, dir string) {
	t.Helper()
	testcluster.Soon(t, "a request is recorded", func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: "default"}}
		if err := c.Create(t.Context(), probe, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		names, _ := recorded(t, dir)
		return names["probe"] > 0
	})
}

func (c *cluster) configured(t *testing.T) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Name: "kvap-record"}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// TestRecord: a stream of requests, some at once, is recorded, each of them, with no value
// of a Secret, and in the end there is nothing left.
func TestRecord(t *testing.T) {
	shared.Apply(t, teams)
	dir := t.TempDir()
	p := shared.start(t, "migrate", "record", "--output-dir", dir)
	shared.listening(t, dir)
	const requests, atOnce = 600, 8
	value := func(i int) string { return fmt.Sprintf("hunter2-%d-swordfish", i) }
	var done sync.WaitGroup
	var refused atomic.Int64
	turn := make(chan struct{}, atOnce)
	for i := range requests {
		turn <- struct{}{}
		done.Go(func() {
			defer func() { <-turn }()
			var o client.Object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sent-%d", i), Namespace: "default"}}
			if i%2 == 0 {
				o = shared.secret(fmt.Sprintf("sent-%d", i), value(i))
			}
			if err := shared.Create(t.Context(), o, client.DryRunAll); err != nil {
				refused.Add(1)
				t.Errorf("a request was refused: %v", err)
			}
		})
	}
	done.Wait()
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	names, all := recorded(t, dir)
	missing := 0
	for i := range requests {
		if names[fmt.Sprintf("sent-%d", i)] != 1 {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d requests are not in the files once", missing, requests)
	}
	for i := 0; i < requests; i += 2 {
		for _, form := range []string{value(i), base64.StdEncoding.EncodeToString([]byte(value(i)))} {
			if bytes.Contains(all, []byte(form)) {
				t.Fatalf("%s is in the files", form)
			}
		}
	}
	if bytes.Contains(all, []byte("managedFields")) || !bytes.Contains(all, []byte(`"namespaceObject":{"apiVersion"`)) {
		t.Error("managed fields are in the files, or namespaces are not")
	}
	if shared.configured(t) {
		t.Error("the configuration is left behind")
	}
	if out := p.out.String(); !strings.Contains(out, "recorded ") || !strings.Contains(out, "kvap migrate compare --requests") {
		t.Errorf("said: %s", out)
	}
}

// TestKilled: nobody is refused when the recorder is killed, and what it leaves behind
// can be taken away.
func TestKilled(t *testing.T) {
	shared.Apply(t, teams)
	dir := t.TempDir()
	p := shared.start(t, "migrate", "record", "--output-dir", dir)
	shared.listening(t, dir)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.code(t)
	for i := range 20 {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("killed-%d", i), Namespace: "default"}}
		if err := shared.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("a request was refused: %v", err)
		}
	}
	if !shared.configured(t) {
		t.Error("the configuration went although the process was killed")
	}
	if p := shared.start(t, "migrate", "record", "--remove"); p.code(t) != 0 || shared.configured(t) {
		t.Errorf("the configuration is not taken away: %s", p.errs.String())
	}
	if p := shared.start(t, "migrate", "record", "--remove"); p.code(t) != 0 {
		t.Error("taking away what is not there fails")
	}
}

// What is not recorded is told: policies of other namespaces unless -A asks for them, and
// those that validate nothing.
func TestRecordLeavesOut(t *testing.T) {
	if err := shared.Plane.InstallCRDs(t.Context(), controlplane.StandIn(apischema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "Policy"}, "policies", true)); err != nil {
		t.Fatal(err)
	}
	shared.Apply(t, teams+"---"+`
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: own, namespace: kube-public}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Service]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: marks}
spec:
  rules:
  - name: mark
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}
`)
	for _, one := range []struct {
		flags      []string
		want, lack string
	}{
		{nil, "left out: kube-public/own: of other namespaces, and -A takes them", ""},
		{[]string{"-A"}, "left out: marks: no rule of them validates", "kube-public/own"},
	} {
		p := shared.start(t, append([]string{"migrate", "record", "--output-dir", t.TempDir(), "--for", "1s"}, one.flags...)...)
		if code := p.code(t); code != 0 {
			t.Errorf("%v: exit code %d", one.flags, code)
		}
		said := p.errs.String()
		if !strings.Contains(said, one.want) || one.lack != "" && strings.Contains(said, one.lack) {
			t.Errorf("%v: it says\n%s", one.flags, said)
		}
	}
}
