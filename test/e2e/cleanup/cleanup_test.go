//go:build e2e

package cleanup

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/cleanup"
	"github.com/kvap/kvap/controller/webhook/world"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A cluster is a control plane on which one who is called cleaner deletes, by a clock
// that runs ahead.
type cluster struct {
	client.Client
	ahead *atomic.Int64
}

// cleanerMay is what the cleaner may do: Secrets it may list and not delete.
func cleanerMay() []rbacv1.PolicyRule {
	rule := func(group string, resources, verbs string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs)}
	}
	return []rbacv1.PolicyRule{
		rule("kyverno.io", "clustercleanuppolicies cleanuppolicies", "list"), rule("", "namespaces", "get list"),
		rule("policies.kyverno.io", "deletingpolicies namespaceddeletingpolicies policyexceptions", "list"),
		rule("kvap.dev", "policytranslations", "list create patch delete"), rule("kvap.dev", "policytranslations/status", "patch"),
		rule("events.k8s.io", "events", "create patch"),
		rule("", "configmaps serviceaccounts", "get list watch delete"), rule("", "secrets", "get list watch"),
	}
}

func start(t *testing.T) cluster {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	plane, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	crds, err := controlplane.ReadCRDs("../../../deploy/crds")
	if err != nil {
		t.Fatal(err)
	}
	real, err := controlplane.ReadCRDs("../../../../shared/crds")
	if err != nil || len(real) == 0 {
		for _, k := range cleanup.Kinds() {
			real = append(real, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...))
		}
	}
	crds = append(crds, real...)
	if err := plane.InstallCRDs(t.Context(), crds...); err != nil {
		t.Fatal(err)
	}
	scheme := clientscheme.Scheme
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(plane.Config(controlplane.Admin), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster{admin, &atomic.Int64{}}
	name := metav1.ObjectMeta{Name: "cleaner"}
	c.create(t, &rbacv1.ClusterRole{ObjectMeta: name, Rules: cleanerMay()})
	c.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cleaner"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "cleaner"}},
	})
	config := rest.CopyConfig(plane.Config(controlplane.Admin))
	config.Impersonate = rest.ImpersonationConfig{UserName: "cleaner", Groups: []string{"system:authenticated"}}
	c.clean(t, config)
	return c
}

// clean runs what is tested.
func (c cluster) clean(t *testing.T, config *rest.Config) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- cleanup.Run(ctx, config, cleanup.Options{
			Mode: v1alpha1.ModeEnforce, TTL: true, ExcludeNamespaces: []string{"kube-system"}, ExceptionNamespaces: []string{"ops"}, Every: 500 * time.Millisecond,
			Now:   func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) },
			World: func(context.Context) (interp.World, error) { return world.New(config, world.Options{Live: true}) },
		}, logr.Discard())
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (c cluster) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (c cluster) make(t *testing.T, text string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	c.create(t, o)
}

// configMap makes a ConfigMap, with labels given as a YAML map, and data.
func (c cluster) configMap(t *testing.T, namespace, name, labels string) {
	t.Helper()
	c.make(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: "+namespace+", name: "+name+", labels: "+labels+"}, data: {state: "+name+"}}")
}

// left are the ConfigMaps and Secrets that there are.
func (c cluster) left(t *testing.T, namespaces ...string) string {
	t.Helper()
	var out []string
	for _, namespace := range namespaces {
		var maps corev1.ConfigMapList
		var secrets corev1.SecretList
		for _, l := range []client.ObjectList{&maps, &secrets} {
			if err := c.List(t.Context(), l, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
		}
		for _, o := range maps.Items {
			if o.Name != "kube-root-ca.crt" {
				out = append(out, namespace+"/"+o.Name)
			}
		}
		for _, o := range secrets.Items {
			out = append(out, namespace+"/"+o.Name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// status is what is said of a policy; nil where nothing is.
func (c cluster) status(t *testing.T, name string) *v1alpha1.PolicyTranslationStatus {
	t.Helper()
	var p v1alpha1.PolicyTranslation
	err := c.Get(t.Context(), client.ObjectKey{Name: name}, &p)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil || len(p.Status.Conditions) == 0 {
		return nil
	}
	return &p.Status
}

// ran waits for a run of a policy, whose status has a reason.
func (c cluster) ran(t *testing.T, name, reason string) *v1alpha1.PolicyTranslationStatus {
	t.Helper()
	var s *v1alpha1.PolicyTranslationStatus
	testcluster.Soon(t, name+" has run and is "+reason, func() bool {
		s = c.status(t, name)
		return s != nil && s.Cleanup.LastExecutionTime != nil && meta.FindStatusCondition(s.Conditions, "Ready").Reason == reason
	})
	return s
}

func policy(kind, namespace, name, mode, spec string) string {
	meta := "name: " + name + ", annotations: {kvap.dev/mode: '" + mode + "'}"
	if namespace != "" {
		meta += ", namespace: " + namespace
	}
	return "apiVersion: kyverno.io/v2\nkind: " + kind + "\nmetadata: {" + meta + "}\nspec:\n  schedule: '0 0 1 1 *'\n" + spec
}

// What policies say goes, and nothing else.
func TestPolicies(t *testing.T) {
	c := start(t)
	for _, name := range []string{"team", "other"} {
		c.make(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+", labels: {kind: "+name+"}}}")
		c.configMap(t, name, "done", "{temporary: 'yes'}")
		c.configMap(t, name, "busy", "{temporary: 'yes'}")
		c.configMap(t, name, "draft", "{draft: 'yes'}")
		c.configMap(t, name, "keep", "{}")
		c.make(t, "{apiVersion: v1, kind: Secret, metadata: {namespace: "+name+", name: sealed, labels: {temporary: 'yes'}}}")
	}
	c.configMap(t, "kube-system", "done", "{temporary: 'yes'}")
	c.make(t, policy("ClusterCleanupPolicy", "", "finished", "enforce", `
  match: {any: [{resources: {kinds: [ConfigMap, Unicorn], selector: {matchLabels: {temporary: "yes"}}}}]}
  conditions: {all: [{key: "{{ target.data.state }}", operator: Equals, value: done}]}
`))
	c.make(t, policy("CleanupPolicy", "team", "drafts", "enforce", `
  match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {draft: "yes"}}}}]}
  deletionPropagationPolicy: Foreground
`))
	c.make(t, policy("ClusterCleanupPolicy", "", "sealed", "enforce", `
  match: {any: [{resources: {kinds: [Secret, ServiceAccount], namespaceSelector: {matchLabels: {kind: other}}}}]}
`))
	c.make(t, policy("ClusterCleanupPolicy", "", "watched", "shadow", "\n  match: {any: [{resources: {kinds: [ConfigMap], namespaces: [team, other]}}]}\n"))
	c.make(t, policy("ClusterCleanupPolicy", "", "idle", "off", "\n  match: {any: [{resources: {kinds: [ConfigMap]}}]}\n"))
	testcluster.Soon(t, "all policies are read", func() bool { return c.status(t, "idle.clustercleanuppolicies.kyverno.io") != nil })
	before := c.left(t, "team", "other", "kube-system")

	c.ahead.Store(int64(2 * 366 * 24 * time.Hour)) // new year has passed, more than once
	s := c.ran(t, "finished.clustercleanuppolicies.kyverno.io", "Scheduled")
	if s.Cleanup.Deleted != 2 || !strings.Contains(s.Conditions[0].Message, "Unicorn") {
		t.Errorf("got %+v, %s", s.Cleanup, s.Conditions[0].Message)
	}
	if s := c.ran(t, "drafts.team.cleanuppolicies.kyverno.io", "Scheduled"); s.Cleanup.Deleted != 1 {
		t.Errorf("got %+v, %s", s.Cleanup, s.Conditions[0].Message)
	}
	if s := c.ran(t, "sealed.clustercleanuppolicies.kyverno.io", "Forbidden"); s.Cleanup.Failed != 1 {
		t.Errorf("got %+v, %s", s.Cleanup, s.Conditions[0].Message)
	}
	if s := c.ran(t, "watched.clustercleanuppolicies.kyverno.io", "Shadow"); s.Cleanup.Deleted == 0 {
		t.Errorf("got %+v, %s", s.Cleanup, s.Conditions[0].Message)
	}
	want := before
	for _, gone := range []string{"team/done ", "other/done ", "team/draft "} {
		want = strings.Replace(want, gone, "", 1)
	}
	// A deletion in the foreground is done by the garbage collector, in its own time.
	testcluster.Soon(t, "what is to go is gone, and nothing else; left is to be "+want, func() bool { return c.left(t, "team", "other", "kube-system") == want })
	testcluster.Soon(t, "there are events about the policies", func() bool {
		var list eventsv1.EventList
		if err := c.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		about := map[string]string{}
		for _, e := range list.Items {
			about[e.Regarding.Name] = e.Type + " " + e.Reason
		}
		return about["finished"] == "Normal Scheduled" && about["sealed"] == "Warning Forbidden" && about["idle"] == ""
	})
}

// What DeletingPolicies say goes, but for what is excepted, and nothing else.
func TestDeletingPolicies(t *testing.T) {
	c := start(t)
	for _, name := range []string{"team", "other", "ops"} {
		c.make(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+", labels: {kind: "+name+"}}}")
		for _, one := range []string{"done", "busy", "excepted"} {
			c.configMap(t, name, one, "{temporary: 'yes'}")
		}
		c.make(t, "{apiVersion: v1, kind: Secret, metadata: {namespace: "+name+", name: sealed}}")
	}
	c.configMap(t, "kube-system", "done", "{temporary: 'yes'}")
	deleting := func(kind, namespace, name, mode, spec string) string {
		text := strings.Replace(policy(kind, namespace, name, mode, spec), "kyverno.io/v2", "policies.kyverno.io/v1", 1)
		return strings.Replace(text, "0 0 1 1 *", "0 0 L 1 * *", 1)
	}
	const maps = "\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]"
	c.make(t, deleting("DeletingPolicy", "", "done", "enforce", maps+`, namespaceSelector: {matchExpressions: [{key: kind, operator: In, values: [team, other]}]}}
  variables: [{name: state, expression: object.data.state}]
  conditions: [{name: done, expression: "variables.state in ['done', 'excepted'] && namespaceObject.metadata.labels.kind != 'x'"}]
`))
	c.make(t, deleting("NamespacedDeletingPolicy", "ops", "busy", "enforce", maps+"}\n  conditions: [{name: busy, expression: \"object.data.state == 'busy'\"}]\n"))
	c.make(t, deleting("DeletingPolicy", "", "sealed", "enforce", strings.Replace(maps, "configmaps", "secrets", 1)+"}\n"))
	c.make(t, deleting("DeletingPolicy", "", "broken", "enforce", maps+"}\n  conditions: [{name: a, expression: nothing}]\n"))
	for _, namespace := range []string{"ops", "team"} { // those of one namespace count
		c.make(t, "{apiVersion: policies.kyverno.io/v1, kind: PolicyException, metadata: {name: e, namespace: "+namespace+"}, spec: {policyRefs: [{name: done, kind: DeletingPolicy}], "+
			"matchConditions: [{name: a, expression: \"object.metadata.namespace == '"+map[string]string{"ops": "team", "team": "other"}[namespace]+"' && object.metadata.name == 'excepted'\"}]}}")
	}
	testcluster.Soon(t, "all policies are read", func() bool { return c.status(t, "broken.deletingpolicies.policies.kyverno.io") != nil })
	before := c.left(t, "team", "other", "ops", "kube-system")

	c.ahead.Store(int64(2 * 366 * 24 * time.Hour))
	if s := c.ran(t, "done.deletingpolicies.policies.kyverno.io", "Scheduled"); s.Cleanup.Deleted != 3 {
		t.Errorf("got %+v, %s", s.Cleanup, s.Conditions[0].Message)
	}
	if s := c.ran(t, "busy.ops.namespaceddeletingpolicies.policies.kyverno.io", "Scheduled"); s.Cleanup.Deleted != 1 {
		t.Errorf("got %+v, %s", s.Cleanup, s.Conditions[0].Message)
	}
	if s := c.ran(t, "sealed.deletingpolicies.policies.kyverno.io", "Forbidden"); s.Cleanup.Deleted != 0 {
		t.Errorf("got %+v, %s", s.Cleanup, s.Conditions[0].Message)
	}
	want := before
	for _, gone := range []string{"team/done ", "other/done ", "other/excepted ", "ops/busy "} {
		want = strings.Replace(want, gone, "", 1)
	}
	testcluster.Soon(t, "what is to go is gone, and nothing else; left is to be "+want, func() bool { return c.left(t, "team", "other", "ops", "kube-system") == want })
	if s := c.status(t, "broken.deletingpolicies.policies.kyverno.io"); s.Conditions[0].Reason != "Invalid" || !strings.Contains(s.Conditions[0].Message, "undeclared") {
		t.Errorf("got %+v", s.Conditions[0])
	}
}

// Objects go when their label says so, as far as they may be deleted.
func TestLabel(t *testing.T) {
	c := start(t)
	c.configMap(t, "default", "hour", "{cleanup.kyverno.io/ttl: 1h}")
	c.configMap(t, "default", "three-hours", "{cleanup.kyverno.io/ttl: 3h}")
	c.configMap(t, "default", "past", "{cleanup.kyverno.io/ttl: '2020-01-31'}")
	c.configMap(t, "default", "words", "{cleanup.kyverno.io/ttl: soon}")
	c.configMap(t, "default", "keep", "{}")
	c.make(t, "{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: sealed, labels: {cleanup.kyverno.io/ttl: 1h}}}")
	testcluster.Soon(t, "what has ended is gone", func() bool {
		return c.left(t, "default") == "default/hour default/keep default/sealed default/three-hours default/words"
	})
	c.ahead.Store(int64(2 * time.Hour))
	testcluster.Soon(t, "what ends is gone", func() bool {
		return c.left(t, "default") == "default/keep default/sealed default/three-hours default/words"
	})
	c.configMap(t, "default", "again", "{cleanup.kyverno.io/ttl: 1h}") // two hours ago, by the clock that runs ahead
	testcluster.Soon(t, "what comes later is gone too", func() bool { return !strings.Contains(c.left(t, "default"), "again") })
	if got := c.left(t, "default"); got != "default/keep default/sealed default/three-hours default/words" {
		t.Errorf("left are %s", got)
	}
}
