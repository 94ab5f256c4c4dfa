//go:build e2e && kyverno

package kyverno

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/test/kyverno"
)

var shared *cluster

func TestMain(m *testing.M) {
	definitions, err := kyverno.Definitions(context.Background(), os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	users := append(kyverno.Users(), controlplane.User{Name: controllerUser, Groups: []string{"system:masters"}})
	options := testcluster.Options{Users: users, Definitions: definitions, AuditPolicy: withPods}
	os.Exit(testcluster.Run(m, options, func(c *testcluster.Cluster) (func(), error) {
		shared = &cluster{Cluster: c}
		if err := c.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
			return nil, err
		}
		shared.kyverno, err = kyverno.Start(context.Background(), c.Plane, os.Stderr)
		return nil, err
	}))
}

// withPods has the audit log keep the Pods that are made, and what webhooks made of them.
const withPods = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, verbs: [create], resources: [{group: "", resources: [pods]}]}
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
`

var kills = flag.Bool("kills", false, "kill the command line and the controller at each step")

// The whole way of docs/migration.md, to the end where Kyverno is uninstalled.
func TestWay(t *testing.T) {
	var chance *rand.Rand
	if *kills {
		const seed = 1
		chance = rand.New(rand.NewPCG(seed, seed))
	}
	shared.way(t, chance)
}

// way goes it. Where there is chance, each verb is killed twice before it may end, and
// the controller once beside it.
func (c *cluster) way(t *testing.T, chance *rand.Rand) {
	c.begin(t)
	stops := []func(){c.watchQuotas(t), c.stream(t)}
	c.control(t)
	recorded := t.TempDir()
	step := func(args ...string) {
		t.Helper()
		if chance != nil {
			for range 2 {
				c.kill(t, time.Duration(100+chance.IntN(4000))*time.Millisecond, args...)
				c.check(t, args[0]+" was killed")
			}
			c.killController(t)
		}
		c.migrate(t, 0, args...)
		c.works(t, strings.Join(args[:min(2, len(args))], " "))
	}
	c.migrate(t, 0, "plan")
	step("shadow", "--all")
	c.migrate(t, 0, "record", "--output-dir", recorded, "--for", "10s")
	// 2 where rules have no evidence, 0 where all have some; 1 would be a disagreement
	if out := c.migrate(t, -1, append([]string{"compare", "--requests", recorded, "--audit-log", c.Plane.AuditLog(), "--exception-namespaces", "*"}, names()...)...); strings.Contains(out, "DISAGREE:") {
		t.Error("both sides judge the same, and compare says otherwise")
	}
	enforce := func(names ...string) {
		step(slices.Concat([]string{"enforce"}, names, []string{"--accept", "a test", "--yes"})...)
	}
	enforce("labelled", "expressed", "quota")
	enforce(names()...)
	step("rollback", "quota", "asks", "foreground", "stamped", "--yes")
	enforce(names()...)
	if out := c.migrate(t, 1, "finish"); !strings.Contains(out, "adopt") {
		t.Error("finish does not say what hangs by Kyverno's definitions")
	}
	step(append([]string{"adopt", "--yes"}, names()...)...)
	c.migrate(t, 0, "finish")
	c.reported(t)                                                                           // whose definitions are Kyverno's
	if err := c.kyverno.Uninstall(t.Context(), "policyexceptions.kyverno.io"); err != nil { // which finish says to keep
		t.Fatal(err)
	}
	time.Sleep(20 * time.Second)
	c.works(t, "Kyverno was uninstalled")
	if chance != nil {
		c.killController(t)
		c.works(t, "the controller was killed after that")
	}
	c.migrate(t, 0, "finish")
	c.run(t, 0, "status", "-A")
	for _, stop := range stops {
		stop()
	}
	c.check(t, "in the end")
}

// reported waits until kvap has reported of an object that is older than the policy that it
// violates, and that was Kyverno's.
func (c *cluster) reported(t *testing.T) {
	t.Helper()
	testcluster.Soon(t, "kvap reports by a policy that it has taken over", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("wgpolicyk8s.io/v1alpha2")
		list.SetKind("PolicyReportList")
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, report := range list.Items {
			results, _, _ := unstructured.NestedSlice(report.Object, "results")
			for _, one := range results {
				if result, ok := one.(map[string]any); ok && result["source"] == "kvap" && result["policy"] == "labelled" && result["result"] == "fail" {
					return true
				}
			}
		}
		return false
	})
}

// begin has Kyverno judge by all policies, and generate.
func (c *cluster) begin(t *testing.T) {
	t.Helper()
	before := testcluster.Read(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: probe-before, namespace: shop}}`)[0]
	testcluster.Soon(t, "an object is there before the policies", func() bool { return c.Create(t.Context(), before.DeepCopy()) == nil })
	for _, o := range testcluster.Read(t, policies+"\n---\n"+`{apiVersion: v1, kind: ConfigMap, metadata: {name: trigger, namespace: shop}, data: {n: "0"}}`+
		"\n---\n"+`{apiVersion: v1, kind: ConfigMap, metadata: {name: target, namespace: shop}}`) {
		testcluster.Soon(t, o.GetKind()+" "+o.GetName()+" is there", func() bool {
			err := c.Create(t.Context(), o.DeepCopy())
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
	}
	for _, p := range probes() {
		testcluster.Soon(t, "Kyverno enforces "+p.policy, func() bool {
			err := c.judged(t.Context(), object(t, p.text, false))
			return err != nil && strings.Contains(err.Error(), "kyverno.svc")
		})
	}
	testcluster.Soon(t, "Kyverno counts the exception", func() bool {
		return c.judged(t.Context(), object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe-spared, namespace: shop}}", false)) == nil
	})
	testcluster.Soon(t, "Kyverno changes objects", func() bool { return c.stamped(t.Context(), t) == nil })
	for range 10 {
		c.generates(t)
	}
}

// generates makes a namespace, and waits for what is generated in it.
func (c *cluster) generates(t *testing.T) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "generated-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "a quota is generated in "+ns.Name, func() bool {
		return c.Get(t.Context(), client.ObjectKey{Namespace: ns.Name, Name: "made"}, &corev1.ResourceQuota{}) == nil
	})
}

// works looks at what requests do not tell of: something new is generated, what was
// generated is kept in step, and an object that is there is changed.
func (c *cluster) works(t *testing.T, when string) {
	t.Helper()
	c.check(t, when)
	c.generates(t)
	n := fmt.Sprint(time.Now().UnixNano())
	trigger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "trigger"}}
	if err := c.Patch(t.Context(), trigger, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"n":%q}}`, n))); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "an object that is there is changed", func() bool {
		o := &corev1.ConfigMap{}
		return c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "target"}, o) == nil && o.Annotations["seen"] == n
	})
	var quotas corev1.ResourceQuotaList
	if err := c.List(t.Context(), &quotas); err != nil {
		t.Fatal(err)
	}
	if int64(len(quotas.Items)) < c.count.generated.Load() {
		c.count.wrong(&c.count.absent, "%d of %d generated objects are there", len(quotas.Items), c.count.generated.Load())
	}
}
