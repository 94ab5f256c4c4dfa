//go:build e2e

package webhook

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/test/testregistry"
)

// Images are pinned and verified against a registry, whose outage holds up nothing but what
// brings other images.
func TestVerifiesImages(t *testing.T) {
	r := testregistry.New(t)
	signer := testregistry.NewSigner(t)
	signed, unsigned := r.Push("team/app:v1"), r.Push("team/app:v2")
	r.Attach(signed, "sig", signer.Signature(signed, nil))
	shared.Namespace(t, "shop", nil)
	shared.start(t, "", "--image-registries", r.Host+"/team", "--allow-local-registries")
	shared.Apply(t, `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: key
    match: {any: [{resources: {kinds: [Pod], namespaces: [shop]}}]}
    verifyImages:
    - imageReferences: ["127.0.0.1:*"]
      imageRegistryCredentials: {allowInsecureRegistry: true}
      attestors: [{entries: [{keys: {rekor: {ignoreTlog: true}, publicKeys: "`+strings.ReplaceAll(signer.PEM(), "\n", `\n`)+`"}}]}]
`)
	// An API server may ask for a verdict before it asks for digests: until both
	// configurations have reached it, a tag has none.
	testcluster.Soon(t, "a denial of an image that is pinned", func() bool {
		message := shared.denied(t, deploymentOf("IMAGE", r.Host+"/team/app:v2"))
		return strings.Contains(message, "there are no signatures of") && strings.Contains(message, testregistry.Digest(unsigned))
	})
	if message := shared.denied(t, deploymentOf("IMAGE", r.Host+"/elsewhere/app:v1")); !strings.Contains(message, "--image-registries") {
		t.Error(message)
	}
	one := shared.admitted(t, deploymentOf("IMAGE", r.Host+"/team/app:v1"))
	want := r.Host + "/team/app:v1@" + testregistry.Digest(signed)
	if got := at(t, item(at(t, one, "spec", "template", "spec", "containers"), 0), "image"); got != want {
		t.Errorf("want %s, got %v", want, got)
	}
	r.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	if message := shared.denied(t, deploymentOf("IMAGE", r.Host+"/team/app:v3")); !strings.Contains(message, "the registry cannot be asked") {
		t.Error(message)
	}
}
