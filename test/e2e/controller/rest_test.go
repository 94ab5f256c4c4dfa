//go:build e2e

package controller

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// counting is a controller that tells of each pass that it ends with.
func counting() (options controller.Options, passes <-chan struct{}) {
	ended := make(chan struct{}, 1000)
	options = enforcing()
	options.Step = func(s controller.Step) {
		if s == controller.StepStatus {
			ended <- struct{}{}
		}
	}
	return options, ended
}

// awaitRest waits until the controller makes no pass and the API server writes nothing
// into native policies.
func awaitRest(passes <-chan struct{}) {
	for {
		select {
		case <-passes:
		case <-time.After(3 * time.Second):
			return
		}
	}
}

// nudged has the controller make so many passes with nothing to do.
func (c *cluster) nudged(t *testing.T, n int, passes <-chan struct{}) {
	t.Helper()
	for i := range n {
		c.nudge(t, i)
		select {
		case <-passes:
		case <-time.After(time.Minute):
			t.Fatalf("pass %d does not come", i)
		}
	}
}

// At rest the controller writes nothing, however often it looks.
func TestAtRest(t *testing.T) {
	options, passes := counting()
	shared.control(t, options)
	shared.apply(t, requires("resting", "owner", "Enforce"))
	shared.apply(t, requires("resting-too", "team", "Audit"))
	shared.apply(t, lookup) // of which the params are missing
	shared.awaitReady(t, "ClusterPolicy", "", "resting")
	shared.awaitReady(t, "ClusterPolicy", "", "resting-too")
	awaitRest(passes)
	before := shared.writes(t)
	shared.nudged(t, 100, passes)
	if after := shared.writes(t); len(after) > len(before) {
		t.Errorf("%d writes, such as %s", len(after)-len(before), after[len(after)-1])
	}
}

// A process that begins where all is as it should be writes nothing from its first
// moment on.
func TestNothingWrittenAtStart(t *testing.T) {
	stop := shared.control(t, enforcing())
	shared.apply(t, requires("settled", "owner", "Enforce"))
	shared.apply(t, requires("settled-too", "team", "Audit"))
	shared.awaitReady(t, "ClusterPolicy", "", "settled")
	shared.awaitReady(t, "ClusterPolicy", "", "settled-too")
	stop()
	before := shared.writes(t)
	options, passes := counting()
	shared.control(t, options)
	shared.nudged(t, 5, passes)
	if after := shared.writes(t); len(after) > len(before) {
		t.Errorf("%d writes, such as %s", len(after)-len(before), after[len(after)-1])
	}
}

// Of many policies the change of one writes its own objects, and no other: the pack
// that it is in, the canary, its status, which first says that it was edited.
func TestOneOfMany(t *testing.T) {
	const many = 200
	options, passes := counting()
	shared.control(t, options)
	made := map[string]string{}
	for i := range many {
		name := fmt.Sprintf("many-%03d", i)
		made[name] = strings.Replace(requires(name, name, []string{"Enforce", "Audit"}[i%2]), "[ConfigMap]", "["+[]string{"Secret", "Service", "ConfigMap"}[i%3]+"]", 1)
	}
	for _, text := range made {
		shared.apply(t, text)
	}
	testcluster.Soon(t, "all are ready", func() bool { return shared.ready(t) == many })
	awaitRest(passes)
	before := shared.writes(t)
	const name = "many-150"
	shared.apply(t, strings.Replace(made[name], `"?*"`, `"a*"`, 1))
	shared.awaitReady(t, "ClusterPolicy", "", name)
	awaitRest(passes)
	objects := shared.translation(t, name+".clusterpolicies.kyverno.io").Status.Rules[0].Objects
	for _, write := range shared.writes(t)[len(before):] {
		own := append(slices.Clone(objects), "kvap-canary", name+".clusterpolicies.kyverno.io", "events/"+name)
		if !slices.ContainsFunc(own, func(o string) bool { return strings.Contains(write, "/"+o) }) && !strings.Contains(write, "/events?") {
			t.Errorf("a change of %s, which has %v, writes %s", name, objects, write)
		}
	}
	if n := len(shared.writes(t)) - len(before); n > 9 {
		t.Errorf("a change of one policy makes %d writes: %v", n, shared.writes(t)[len(before):])
	}
}

// ready is how many policies are ready.
func (c *cluster) ready(t *testing.T) int {
	t.Helper()
	var list v1alpha1.PolicyTranslationList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, item := range list.Items {
		if meta.IsStatusConditionTrue(item.Status.Conditions, v1alpha1.ConditionReady) {
			n++
		}
	}
	return n
}

// nudge writes into an object what the controller leaves to others.
func (c *cluster) nudge(t *testing.T, i int) {
	t.Helper()
	o := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "kvap-configmaps-deny"}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/nudge":"`+strings.Repeat("x", i%2+1)+`"}}}`))
	if err := c.Patch(t.Context(), o, patch, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
}

// writes are the requests of the controller that change something.
func (c *cluster) writes(t *testing.T) []string {
	t.Helper()
	f, err := os.Open(c.plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Verb, UserAgent, RequestURI string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		lease := strings.Contains(e.RequestURI, "/leases/") // by which an instance says that it lives
		if e.UserAgent == controller.Manager && !lease && !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && !strings.Contains(e.RequestURI, "dryRun=") {
			out = append(out, e.Verb+" "+e.RequestURI)
		}
	}
	return out
}
