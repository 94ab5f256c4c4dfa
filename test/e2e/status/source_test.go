//go:build e2e

package status

import (
	"slices"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/test/controlplane"
)

const owned = `apiVersion: kyverno.io/v1
kind: Policy
metadata:
  name: owned
  namespace: default
  labels: {team: b}
spec:
  validationFailureAction: Enforce
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        message: A Pod names its owner.
        pattern: {metadata: {labels: {owner: "?*"}}}
    - name: team
      match: {any: [{resources: {kinds: [Service]}}]}
      validate:
        message: A Service names its team.
        pattern: {metadata: {labels: {team: "?*"}}}
    - name: mark
      match: {any: [{resources: {kinds: [Pod]}}]}
      mutate:
        patchStrategicMerge: {metadata: {labels: {marked: "true"}}}
`

// A source that is in the cluster is shown with what its rules would become, then
// with what enforces them, and with what is missing of that.
func TestSource(t *testing.T) {
	var crds []controlplane.CRD
	for kind, resource := range map[string]string{"ClusterPolicy": "clusterpolicies", "Policy": "policies"} {
		gvk := apischema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: kind}
		crds = append(crds, controlplane.StandIn(gvk, resource, kind == "Policy"))
	}
	if err := plane.InstallCRDs(t.Context(), crds...); err != nil {
		t.Fatal(err)
	}
	apply(t, owned)
	s := await(t, "the policy is listed", ready("owned", "Unknown"))
	p := policyNamed(t, s, "owned")
	if p.Mode != "off" || p.Group != "kyverno.io" || p.Kind != "Policy" || p.Namespace != "default" {
		t.Errorf("got %+v", p)
	}
	targets := map[string]report.Target{}
	for _, r := range p.Rules {
		targets[r.Name] = r.Target
	}
	if targets["owner"] != report.Native || targets["mark"] != report.Webhook {
		t.Errorf("the targets are %v", targets)
	}
	apply(t, convert(t, "owned.yaml", owned, "--action", "Audit"))
	s = await(t, "the objects are enforced", func(s report.Status) bool {
		return slices.ContainsFunc(s.Policies, func(p report.PolicyStatus) bool { return p.Condition("Enforced") == "True" })
	}, "-l", "team=b")
	p = policyNamed(t, s, "owned")
	if len(s.Policies) != 1 || p.Mode != "shadow" || p.Condition("Synced") != "True" || p.Condition("FallbackActive") != "Unknown" || len(p.Rules) != 3 {
		t.Errorf("got %+v", s.Policies)
	}
	if s, _ := status(t, "-n", "kube-system"); len(s.Policies) > 0 {
		t.Errorf("-n kube-system shows %+v", s.Policies)
	}
	remove(t, "default.owned-owner")
	s = await(t, "an object is missed", ready("owned", "False"))
	if c := policyNamed(t, s, "owned").Condition("Synced"); c != "False" {
		t.Errorf("Synced is %s", c)
	}
}

// An exception counts where it is said that its namespace does, as with a controller:
// here it keeps a rule from being native.
func TestExceptionNamespaces(t *testing.T) {
	gvk := func(version, kind string) apischema.GroupVersionKind {
		return apischema.GroupVersionKind{Group: "kyverno.io", Version: version, Kind: kind}
	}
	if err := plane.InstallCRDs(t.Context(), controlplane.StandIn(gvk("v1", "ClusterPolicy"), "clusterpolicies", false),
		controlplane.StandIn(gvk("v2", "PolicyException"), "policyexceptions", true)); err != nil {
		t.Fatal(err)
	}
	apply(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: excepted}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [Secret]}}]}
      validate: {message: A Secret names its owner., pattern: {metadata: {labels: {owner: "?*"}}}}
`)
	apply(t, `apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: free, namespace: default}
spec:
  exceptions: [{policyName: excepted, ruleNames: [owner]}]
  match: {any: [{resources: {kinds: [Secret]}, clusterRoles: [admin]}]}
`)
	for given, want := range map[string]report.Target{"none": report.Native, "other": report.Native, "default": report.Webhook, "*": report.Webhook} {
		await(t, given+": the target", func(s report.Status) bool {
			p := policyNamed(t, s, "excepted")
			return len(p.Rules) == 1 && p.Rules[0].Target == want
		}, "-A", "--exception-namespaces", given)
	}
}
