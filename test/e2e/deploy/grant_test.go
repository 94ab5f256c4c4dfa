//go:build e2e

package deploy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// A grant is a verb on a resource, in a namespace where one is named.
type grant struct{ namespace, group, resource, verb string }

func (g grant) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s", g.verb, g.resource, g.group, g.namespace))
}

// excused are grants that no test can see used.
func excused() map[grant]string {
	return map[grant]string{
		{group: "kvap.dev", resource: "params", verb: "get"}:                                                   "the API server asks by itself whether who makes a policy may get its params",
		{group: "events.k8s.io", resource: "events", verb: "patch"}:                                            "an event that happens again within minutes",
		{group: "admissionregistration.k8s.io", resource: "validatingadmissionpolicybindings", verb: "update"}: "what others have added to a binding, where server-side apply leaves it",
		{group: "", resource: "events", verb: "create"}:                                                        "the events of a lease are sent when there is time",
		{group: "coordination.k8s.io", resource: "leases", verb: "get"}:                                        "a lease that another replica has made",
	}
}

// checkGrants compares what the roles grant to the service account with what the
// audit log says that it did. Those that others were seen to use need not be used.
func checkGrants(t *testing.T, c *cluster, others map[grant]bool) {
	t.Helper()
	used, granted := c.used(t), c.granted(t)
	for _, g := range slices.SortedFunc(maps.Keys(granted), func(a, b grant) int { return strings.Compare(a.String(), b.String()) }) {
		uses := func(u grant) bool {
			// An API server that does not stream lists is asked for one first.
			verb := u.verb == g.verb || g.verb == "list" && u.verb == "watch"
			return verb && u.group == g.group && u.resource == g.resource && (g.namespace == "" || g.namespace == u.namespace)
		}
		anywhere := g
		anywhere.namespace = ""
		if !slices.ContainsFunc(slices.Collect(maps.Keys(used)), uses) && excused()[anywhere] == "" && !others[anywhere] {
			t.Errorf("nobody uses %s", g)
		}
	}
	for g := range used {
		anywhere := g
		anywhere.namespace = ""
		everybodys := g.group == "authorization.k8s.io" || g.group == "authentication.k8s.io" // by system:basic-user
		if !granted[g] && !granted[anywhere] && !everybodys {
			t.Errorf("no role grants %s", g)
		}
	}
}

// used is what the service account did, and all that it was refused is an error.
func (c *cluster) used(t *testing.T) map[grant]bool {
	t.Helper()
	account := c.of(t, "ServiceAccount")
	user := "system:serviceaccount:" + account.GetNamespace() + ":" + account.GetName()
	file, err := os.Open(c.Plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := map[grant]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.User.Username != user || e.ObjectRef == nil {
			continue
		}
		if e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
		g := grant{e.ObjectRef.Namespace, e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.Verb}
		if e.ObjectRef.Subresource != "" {
			g.resource += "/" + e.ObjectRef.Subresource
		}
		out[g] = true
		if e.Verb == "patch" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusCreated { // by server-side apply
			g.verb = "create"
			out[g] = true
		}
	}
	if len(out) == 0 {
		t.Fatalf("the audit log knows nothing of %s", user)
	}
	return out
}

// granted is what the roles that are bound to the service account grant.
func (c *cluster) granted(t *testing.T) map[grant]bool {
	t.Helper()
	account := c.of(t, "ServiceAccount")
	rules := map[string][]rbacv1.PolicyRule{}
	for _, o := range c.installed {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		rules[o.GetKind()+"/"+o.GetName()] = role.Rules
	}
	out := map[grant]bool{}
	for _, o := range c.installed {
		kind, name, bound := boundRole(o, account.GetName())
		if !bound {
			continue
		}
		for _, r := range rules[kind+"/"+name] {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, verb := range r.Verbs {
						out[grant{o.GetNamespace(), group, resource, verb}] = true
					}
				}
			}
		}
	}
	return out
}

// boundRole is the role that a binding gives to a service account.
func boundRole(o *unstructured.Unstructured, account string) (kind, name string, bound bool) {
	if o.GetKind() != "ClusterRoleBinding" && o.GetKind() != "RoleBinding" {
		return "", "", false
	}
	subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
	for _, s := range subjects {
		bound = bound || s.(map[string]any)["name"] == account
	}
	kind, _, _ = unstructured.NestedString(o.Object, "roleRef", "kind")
	name, _, _ = unstructured.NestedString(o.Object, "roleRef", "name")
	return kind, name, bound
}
