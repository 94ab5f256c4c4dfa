package webhook

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
)

func imagePolicyNamed(name, actions, failure, validations string) string {
	return `
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: ` + name + `}
spec:
  failurePolicy: ` + failure + `
  validationActions: [` + actions + `]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
  matchImageReferences: [{glob: "reg.test/*"}]
  attestors: [{name: k, cosign: {key: {data: "-----BEGIN PUBLIC KEY-----\nb25l\n-----END PUBLIC KEY-----"}}}]
  validations: [{expression: "` + validations + `", message: images are signed}]
`
}

const allSigned = "images.containers.all(i, verifyImageSignatures(i, [attestors.k]) > 0)"

// An ImageValidatingPolicy pins images, and judges what is pinned.
func TestImageValidatingPolicy(t *testing.T) {
	registry := &signedImages{tags: map[string]string{"reg.test/app:v1": digestOf("a"), "reg.test/app:v2": digestOf("b")}, signed: []string{digestOf("a")}}
	c := start(t, Options{World: &interp.Offline{Proofs: registry}})
	c.Set(set(policies(t, imagePolicyNamed("a", "Deny", "Fail", allSigned))))
	for image, want := range map[string]struct{ pinned, denied string }{
		"reg.test/app:v1": {"reg.test/app:v1@" + digestOf("a"), ""},
		"reg.test/app:v2": {"reg.test/app:v2@" + digestOf("b"), "images are signed; image reg.test/app:v2@" + digestOf("b")},
		"ghcr.io/app:v1":  {"", ""},
	} {
		got := c.ask(t, "/mutate/fail", podWith(image))
		after := podWith(image)
		if got.Patch != nil {
			after = patched(t, after, got.Patch)
		}
		if !got.Allowed || (want.pinned != "") != (got.Patch != nil) || !strings.Contains(after, want.pinned) {
			t.Errorf("%s: %+v %s", image, got.Result, after)
		}
		verdict := c.ask(t, "/validate/fail", after)
		if verdict.Allowed != (want.denied == "") || !verdict.Allowed && !strings.Contains(verdict.Result.Message, want.denied) {
			t.Errorf("%s: got %+v", image, verdict.Result)
		}
	}
	if got := c.ask(t, "/validate/fail", podWith("reg.test/app:v1")); got.Allowed || !strings.Contains(got.Result.Message, "does not have a digest") {
		t.Errorf("a tag that nobody pinned: %+v", got)
	}
	if got := c.ask(t, "/mutate/fail", podWith("reg.test/app:v3")); got.Allowed || !strings.Contains(got.Result.Message, "failed to update digest") {
		t.Errorf("a tag that is not there: %+v", got)
	}
}

// What audits admits, and pins all the same.
func TestImageValidatingPolicyThatAudits(t *testing.T) {
	registry := &signedImages{tags: map[string]string{"reg.test/app:v1": digestOf("b")}}
	c := start(t, Options{World: &interp.Offline{Proofs: registry}})
	c.Set(set(policies(t, imagePolicyNamed("a", "Audit", "Fail", allSigned))))
	for _, image := range []string{"reg.test/app:v1", "reg.test/app:v3"} {
		if got := c.ask(t, "/mutate/fail", podWith(image)); !got.Allowed || (got.Patch == nil) != (image == "reg.test/app:v3") {
			t.Errorf("%s: %+v", image, got)
		}
	}
	if got := c.ask(t, "/validate/fail", podWith("reg.test/app:v1@"+digestOf("b"))); !got.Allowed || !strings.Contains(got.AuditAnnotations["violations"], "another key") {
		t.Errorf("audited: %+v", got)
	}
}

// A registry that is down denies, whatever the failure policy says, as with Kyverno.
func TestImageValidatingPolicyOfARegistryThatIsDown(t *testing.T) {
	c := start(t, Options{World: &interp.Offline{Proofs: &signedImages{down: true}}})
	for _, tt := range []struct {
		actions, failure, path string
		allowed                bool
	}{{"Deny", "Fail", "fail", false}, {"Deny", "Ignore", "ignore", false}, {"Audit", "Fail", "fail", true}, {"Audit", "Ignore", "ignore", true}} {
		c.Set(set(policies(t, imagePolicyNamed("a", tt.actions, tt.failure, allSigned))))
		if got := c.ask(t, "/validate/"+tt.path, podWith("reg.test/app@"+digestOf("a"))); got.Allowed != tt.allowed || !strings.Contains(got.AuditAnnotations["violations"], "it is down") {
			t.Errorf("%+v: %+v", tt, got)
		}
		if got := c.ask(t, "/mutate/"+tt.path, podWith("reg.test/app:v1")); got.Allowed != tt.allowed {
			t.Errorf("%+v: a tag: %+v", tt, got)
		}
	}
}

// What one policy verifies counts for another, but not what one in shadow does.
func TestImagesThatAnotherPolicyVerifies(t *testing.T) {
	c := start(t, Options{World: &interp.Offline{Proofs: &signedImages{signed: []string{digestOf("a")}}}})
	list := set(policies(t, imagePolicyNamed("a", "Deny", "Fail", "true")+"---\n"+imagePolicyNamed("b", "Audit", "Fail", allSigned)))
	for _, shadow := range []bool{false, true} {
		for i := range list.Policies {
			list.Policies[i].Shadow = shadow && list.Policies[i].Name == "b"
		}
		c.Set(list)
		if got := c.ask(t, "/validate/fail", podWith("reg.test/app@"+digestOf("a"))); got.Allowed == shadow {
			t.Errorf("in shadow %t: %+v", shadow, got)
		}
	}
}
