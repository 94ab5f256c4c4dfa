//go:build e2e

package migrate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A permission is one thing that a role allows.
type permission struct{ verb, resource, group string }

// String is how an API server says that it is missing.
func (p permission) String() string {
	return fmt.Sprintf("cannot %s resource %q in API group %q", p.verb, p.resource, p.group)
}

// permissions are what the role of the guide allows, but for what record needs.
func permissions(t *testing.T) (*rbacv1.ClusterRole, []permission) {
	t.Helper()
	data, err := os.ReadFile("../../../docs/migration-role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(data, role); err != nil {
		t.Fatal(err)
	}
	var out []permission
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if resource != "validatingwebhookconfigurations" || verb == "list" {
						out = append(out, permission{verb, resource, group})
					}
				}
			}
		}
	}
	return role, out
}

// without is a role that does not allow some things.
func without(role *rbacv1.ClusterRole, lost []permission) (out []rbacv1.PolicyRule) {
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				verbs := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return slices.Contains(lost, permission{verb, resource, group}) })
				if len(verbs) > 0 {
					out = append(out, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
				}
			}
		}
	}
	return out
}

// A migrator is a user who has the role, but for some permissions.
type migrator struct {
	*cluster
	role       *rbacv1.ClusterRole
	all        []permission
	kubeconfig string
	asking     client.Client
}

func (c *cluster) migrator(t *testing.T) *migrator {
	t.Helper()
	m := &migrator{cluster: c, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	m.role, m.all = permissions(t)
	subject := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "migrator"}}
	reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "services", "resourcequotas"}, Verbs: []string{"list"}},
	}}
	objects := []client.Object{m.role.DeepCopy(), reader}
	for _, role := range []string{m.role.Name, reader.Name} {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "migrator-" + role}, Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		})
	}
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.LoadFromFile(c.Plane.Kubeconfig(controlplane.Admin))
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "migrator"
	}
	if err := clientcmd.WriteToFile(*config, m.kubeconfig); err != nil {
		t.Fatal(err)
	}
	as := rest.CopyConfig(c.Plane.Config(controlplane.Admin))
	as.Impersonate.UserName = "migrator"
	if m.asking, err = client.New(as, client.Options{}); err != nil {
		t.Fatal(err)
	}
	return m
}

// lose takes permissions from him, and gives him all others.
func (m *migrator) lose(t *testing.T, lost ...permission) {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := m.Get(t.Context(), client.ObjectKeyFromObject(m.role), role); err != nil {
		t.Fatal(err)
	}
	role.Rules = without(m.role, lost)
	if err := m.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	for _, one := range m.all {
		testcluster.Soon(t, one.String(), func() bool {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: one.verb, Group: one.group, Resource: one.resource},
			}}
			return m.asking.Create(t.Context(), review) == nil && review.Status.Allowed != slices.Contains(lost, one)
		})
	}
}

// reads tells that nothing changes by it.
func (p permission) reads() bool { return p.verb == "list" || p.verb == "get" }

// alike tells of permissions for the same about policies of different kinds, which are
// none of each other's business.
func (p permission) alike(o permission) bool {
	ofPolicies := strings.HasSuffix(p.resource, "policies") && strings.HasSuffix(o.resource, "policies")
	return p.verb == o.verb && ofPolicies && (p.group == v1alpha1.Group) == (o.group == v1alpha1.Group)
}

// seldom tells of what is needed where a run was ended in between, where a policy was
// deleted, by adopt or plan alone, and of what these policies have none of.
func (p permission) seldom() bool {
	return p.group == "kvap.dev" && p.verb == "update" && p.resource != "migrations" || p.resource == "validatingpolicies" && (p.verb == "create" || p.verb == "delete") ||
		p.resource == "namespacedvalidatingpolicies" && p.verb != "list" || strings.HasSuffix(p.resource, "mutatingpolicies") && p.verb != "list" || strings.HasSuffix(p.resource, "generatingpolicies") && p.verb != "list" ||
		strings.HasSuffix(p.resource, "imagevalidatingpolicies") && p.verb != "list" || p.resource == "configmaps" || p.resource == "deployments" || p.group == "openreports.io" || p.resource == "clusterpolicyreports"
}

// Each permission of the guide's role is needed, and where it is missing, a verb says
// which it is, and leaves a policy that somebody judges by, and a record from which the
// way goes on once it is there.
func TestWithoutOnePermission(t *testing.T) {
	c := shared
	c.startKyverno(t)
	c.apply(t, permissionPolicies)
	s := c.streamOf(t, "labelled", "foreground", "asks", "a quota")
	c.control(t)
	m := c.migrator(t)
	var writes [][]permission
	for _, p := range m.all {
		if p.seldom() {
			continue
		}
		if p.reads() {
			m.lackToRead(t, s, p)
			continue
		}
		i := slices.IndexFunc(writes, func(lost []permission) bool { return lost[0].alike(p) })
		if i < 0 {
			i, writes = len(writes), append(writes, nil)
		}
		writes[i] = append(writes[i], p)
	}
	records := &v1alpha1.MigrationList{}
	if err := c.List(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records.Items {
		if r.Status.Stage != v1alpha1.StageNone && r.Status.Stage != "" || r.Status.Doing != nil {
			t.Errorf("who only looks has moved %s: %+v", r.Name, r.Status)
		}
	}
	for _, lost := range writes {
		m.lackToWrite(t, s, lost)
	}
}

// lackToRead runs the verbs that change nothing, without a permission to read.
func (m *migrator) lackToRead(t *testing.T, s *stream, p permission) {
	t.Helper()
	m.lose(t, p)
	m.missed(t, s, []permission{p}, [][]string{
		{"compare", "-A", "--verify", "5", "--exception-namespaces", "*"}, {"finish"},
		{"enforce", "--all", "--accept", "a test", "--dry-run=client"}, {"rollback", "--all", "--dry-run=client"},
	})
}

// lackToWrite goes there and back without permissions to write, and then back with all.
func (m *migrator) lackToWrite(t *testing.T, s *stream, lost []permission) {
	t.Helper()
	record := &unstructured.Unstructured{}
	record.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("Migration"))
	if err := m.DeleteAllOf(t.Context(), record); err != nil { // they are to be made anew
		t.Fatal(err)
	}
	m.lose(t, lost...)
	m.missed(t, s, lost, [][]string{
		{"enforce", "--all", "--accept", "a test", "--yes", "--settle", "0s", "--wait", "20s"},
		{"rollback", "--all", "--yes", "--settle", "0s", "--wait", "20s"},
	})
	if out, code := m.try(t, "rollback", "--all", "--yes", "--settle", "0s"); code != 0 {
		t.Fatalf("there is no way back after: %s\n%s", lost, out)
	}
	s.check(t, "rollback")
}

// missed runs verbs, of which one must say of each permission that it is missing, and none
// that says so may end well.
func (m *migrator) missed(t *testing.T, s *stream, lost []permission, verbs [][]string) {
	t.Helper()
	told := map[permission]bool{}
	for _, args := range verbs {
		out, code := m.tryAs(t, m.kubeconfig, args...)
		for _, p := range lost {
			told[p] = told[p] || strings.Contains(out, p.String()) || args[0] == "finish" && slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
				return strings.Contains(line, p.resource+"."+p.group) && strings.Contains(line, "you may not list")
			})
		}
		if code == 0 && strings.Contains(out, "cannot ") {
			t.Errorf("without it: %s; and %s ends well:\n%s", lost, args[0], out)
		}
		s.check(t, args[0])
	}
	for _, p := range lost {
		if !told[p] {
			t.Errorf("nobody misses it: %s", p)
		}
	}
}

// permissionPolicies are of each kind, and for each way.
const permissionPolicies = labelledPolicy + "---" + foregroundPolicy + "---" + `
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: asks, namespace: shop}
spec:
  background: false
  validationFailureAction: Enforce
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [Secret]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: quotas}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [resourcequotas]}]
  validations: [{expression: "has(object.metadata.labels) && 'team' in object.metadata.labels", message: no team}]
`
