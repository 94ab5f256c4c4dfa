//go:build e2e

package webhook

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {LABEL}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, LABEL}, annotations: {NOTE}}
    spec: {containers: [{name: web, image: "IMAGE"}]}
`

func deploymentOf(replacements ...string) string {
	text := strings.NewReplacer(replacements...).Replace(deployment)
	return strings.NewReplacer("LABEL", "a: b", "NOTE", "a: b", "IMAGE", "web:1").Replace(text)
}

// A Deployment is judged by the form of a rule for pods that is for controllers, with
// what an API call to another kind finds.
func TestDeniesByAPICall(t *testing.T) {
	shared.Namespace(t, "shop", nil)
	shared.start(t, "")
	shared.Apply(t, `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: known-teams}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod], namespaces: [shop]}}]}
    context:
    - name: teams
      apiCall: {urlPath: "/api/v1/namespaces/shop/configmaps", jmesPath: "items[].metadata.name"}
    validate:
      message: The team is not known.
      deny:
        conditions:
          all:
          - {key: "{{ request.object.metadata.labels.team || '' }}", operator: AnyNotIn, value: "{{ teams }}"}
`)
	message := shared.denied(t, deploymentOf("LABEL", "team: blue"))
	for _, want := range []string{"known-teams:", "autogen-team: The team is not known.", "resource Deployment/shop/web was blocked"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message lacks %q:\n%s", want, message)
		}
	}
	shared.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: blue, namespace: shop}")
	shared.admitted(t, deploymentOf("LABEL", "team: blue"))
	shared.denied(t, deploymentOf("LABEL", "team: green"))
}

// An image's user is read from a registry that the flags allow.
func TestDeniesByImage(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	push(t, host+"/team/root:v1", "0")
	push(t, host+"/team/user:v1", "1001")
	shared.Namespace(t, "shop", nil)
	shared.start(t, "", "--image-registries", host+"/team", "--allow-local-registries")
	shared.Apply(t, `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: no-root}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: user
    match: {any: [{resources: {kinds: [Pod], namespaces: [shop]}}]}
    validate:
      message: The image runs as root.
      foreach:
      - list: request.object.spec.containers
        context:
        - name: image
          imageRegistry: {reference: "{{ element.image }}", jmesPath: "configData.config.User || '0'"}
        deny: {conditions: {all: [{key: "{{ image }}", operator: Equals, value: "0"}]}}
`)
	if message := shared.denied(t, deploymentOf("IMAGE", host+"/team/root:v1")); !strings.Contains(message, "The image runs as root.") {
		t.Error(message)
	}
	shared.admitted(t, deploymentOf("IMAGE", host+"/team/user:v1"))
	if message := shared.denied(t, deploymentOf("IMAGE", "elsewhere.example.com/a:v1")); !strings.Contains(message, "no-root") {
		t.Error(message)
	}
}

func push(t *testing.T, reference, user string) {
	t.Helper()
	config, err := empty.Image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.User = user
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
}
