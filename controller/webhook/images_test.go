package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// signedImages is a registry that has signatures of some digests, and a digest for each tag.
type signedImages struct {
	tags   map[string]string
	signed []string
	down   bool
}

func (s *signedImages) Pinned(_ context.Context, reference string, _ interp.Access) (string, error) {
	switch tag, ok := s.tags[reference]; {
	case strings.Contains(reference, "@"):
		return reference, nil
	case s.down:
		return "", fmt.Errorf("%w: it is down", interp.ErrUnreachable)
	case ok:
		return reference[:strings.LastIndexByte(reference, ':')] + "@" + tag, nil
	}
	return "", errors.New("there is no such tag")
}

func (s *signedImages) Signed(_ context.Context, image string, _ interp.Attestor, _ interp.Access) error {
	_, digest, _ := strings.Cut(image, "@")
	switch {
	case s.down:
		return fmt.Errorf("%w: it is down", interp.ErrUnreachable)
	case !slices.Contains(s.signed, digest):
		return errors.New("it is by another key")
	}
	return nil
}

func (s *signedImages) Attested(context.Context, string, string, interp.Attestor, interp.Access) ([]map[string]any, error) {
	return nil, errors.New("nothing is attested")
}

const imagePolicies = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: a-images}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["reg.test/*"]
      attestors: [{entries: [{keys: {publicKeys: "-----BEGIN PUBLIC KEY-----\nb25l\n-----END PUBLIC KEY-----"}}]}]
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: b-mirror}
spec:
  rules:
  - name: mirror
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate:
      foreach:
      - list: request.object.spec.containers
        patchStrategicMerge:
          spec: {containers: [{name: "{{ element.name }}", image: "{{ replace_all(element.image, 'old.test', 'reg.test') }}"}]}
`

func digestOf(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

func podWith(image string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"prod"},"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}`
}

// Images are pinned behind all that may change them, and judged where they are pinned.
func TestImages(t *testing.T) {
	registry := &signedImages{tags: map[string]string{"reg.test/app:v1": digestOf("a"), "reg.test/app:v2": digestOf("b")}, signed: []string{digestOf("a")}}
	c := start(t, Options{World: &interp.Offline{Proofs: registry}})
	c.Set(set(policies(t, imagePolicies)))
	for image, want := range map[string]struct {
		pinned string
		denied string
	}{
		"reg.test/app:v1":                   {"reg.test/app:v1@" + digestOf("a"), ""},
		"old.test/app:v1":                   {"reg.test/app:v1@" + digestOf("a"), ""},
		"reg.test/app:v2":                   {"reg.test/app:v2@" + digestOf("b"), "it is by another key"},
		"reg.test/app@" + digestOf("a"):     {"reg.test/app@" + digestOf("a"), ""},
		"ghcr.io/app:v1":                    {"ghcr.io/app:v1", ""},
		"REG.TEST/app:v1@" + digestOf("b"):  {"REG.TEST/app:v1@" + digestOf("b"), "it is by another key"},
		"reg.test/App:v1":                   {"reg.test/App:v1", "bad image"},
		"reg.test:443/app@" + digestOf("b"): {"reg.test:443/app@" + digestOf("b"), "it is by another key"},
	} {
		got := c.ask(t, "/mutate/fail", podWith(image))
		if !got.Allowed {
			t.Errorf("%s: %+v", image, got.Result)
			continue
		}
		after := patched(t, podWith(image), got.Patch)
		var pod struct {
			Spec struct{ Containers []struct{ Image string } }
		}
		if err := json.Unmarshal([]byte(after), &pod); err != nil {
			t.Fatal(err)
		}
		if found := pod.Spec.Containers[0].Image; found != want.pinned {
			t.Errorf("%s: want %s, got %s", image, want.pinned, found)
		}
		verdict := c.ask(t, "/validate/fail", after)
		if verdict.Allowed != (want.denied == "") || !verdict.Allowed && !strings.Contains(verdict.Result.Message, want.denied) {
			t.Errorf("%s: got %+v", image, verdict.Result)
		}
	}
	if got := c.ask(t, "/mutate/fail", podWith("reg.test/app:v3")); got.Allowed || !strings.Contains(got.Result.Message, "failed to update digest") {
		t.Errorf("a tag that is not there: %+v", got)
	}
}

// A registry that is down is an error, of which the failure policy decides.
func TestImagesOfARegistryThatIsDown(t *testing.T) {
	c := start(t, Options{World: &interp.Offline{Proofs: &signedImages{down: true}}})
	image := podWith("reg.test/app@" + digestOf("a"))
	for _, tt := range []struct {
		failure, path string
		allowed       bool
	}{{"Fail", "/validate/fail", false}, {"Ignore", "/validate/ignore", true}} {
		c.Set(set(policies(t, strings.Replace(imagePolicies, "  rules:", "  failurePolicy: "+tt.failure+"\n  rules:", 1))))
		got := c.ask(t, tt.path, image)
		if got.Allowed != tt.allowed || !strings.Contains(got.AuditAnnotations["violations"], "it is down") {
			t.Errorf("%s: %+v", tt.failure, got)
		}
	}
}

// What only audits, or is in shadow, changes no image.
func TestImagesThatAreOnlyAudited(t *testing.T) {
	registry := &signedImages{tags: map[string]string{"reg.test/app:v1": digestOf("b")}}
	c := start(t, Options{World: &interp.Offline{Proofs: registry}})
	audited := set(policies(t, imagePolicies)) // as an override makes it: a policy itself may not say both
	for i := range audited.Policies {
		audited.Policies[i].Action = policy.Audit
	}
	c.Set(audited)
	if got := c.ask(t, "/mutate/fail", podWith("reg.test/app:v1")); got.Patch != nil {
		t.Errorf("audited: %s", got.Patch)
	}
	if got := c.ask(t, "/validate/fail", podWith("reg.test/app:v1@"+digestOf("b"))); !got.Allowed || !strings.Contains(got.AuditAnnotations["violations"], "another key") {
		t.Errorf("audited: %+v", got)
	}
	list := set(policies(t, imagePolicies))
	for i := range list.Policies {
		list.Policies[i].Shadow = true
	}
	c.Set(list)
	if got := c.ask(t, "/mutate/fail", podWith("reg.test/app:v1")); got.Patch != nil {
		t.Errorf("in shadow: %s", got.Patch)
	}
}

// Who is admitted hears of an image that was left out, and of one whose tag may become another.
func TestWarningsOfImages(t *testing.T) {
	registry := &signedImages{tags: map[string]string{"reg.test/app:v1": digestOf("a")}, signed: []string{digestOf("a")}}
	c := start(t, Options{World: &interp.Offline{Proofs: registry}})
	text := strings.Replace(imagePolicies, `imageReferences: ["reg.test/*"]`, `imageReferences: ["reg.test/*"]
      skipImageReferences: ["reg.test/debug*"]
      mutateDigest: false
      verifyDigest: false`, 1)
	for _, shadow := range []bool{false, true} {
		list := set(policies(t, text))
		for i := range list.Policies {
			list.Policies[i].Shadow = shadow
		}
		c.Set(list)
		for image, want := range map[string]string{
			"reg.test/app:v1":               "policy a-images.signed: image reg.test/app:v1 has no digest",
			"reg.test/debug:v1":             "policy a-images.signed: skipping image reference image reg.test/debug:v1",
			"reg.test/app@" + digestOf("a"): "",
		} {
			got := c.ask(t, "/validate/fail", podWith(image))
			if said := strings.Join(got.Warnings, "; "); !got.Allowed || (said != "") != (want != "" && !shadow) || !shadow && !strings.Contains(said, want) {
				t.Errorf("%s (shadow: %t): %+v", image, shadow, got)
			}
		}
	}
}
