//go:build e2e

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/test/testregistry"
)

func podRunning(name, image string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, namespace: shop}
spec:
  automountServiceAccountToken: false
  containers: [{name: c, image: "` + image + `"}]
`
}

// An ImageValidatingPolicy on a real API server: what is not signed is denied with its reason,
// what is signed is pinned, what only audits admits, and a registry that is away denies.
func TestImageValidatingPolicy(t *testing.T) {
	r := testregistry.New(t)
	signer := testregistry.NewSigner(t)
	signed, unsigned, bundled := r.Push("team/app:v1"), r.Push("team/app:v2"), r.Push("team/app:v3")
	r.Attach(signed, "sig", signer.Signature(signed, nil))
	r.Refer(bundled, testregistry.BundleMedia, testregistry.Bundle{Envelope: signer.Attestation(bundled, testregistry.CosignSign, `{}`).Data}.JSON())
	var many []string
	for i := range 20 {
		many = append(many, r.Push(fmt.Sprintf("team/many%d:v1", i)))
		r.Attach(many[i], "sig", signer.Signature(many[i], nil))
	}
	kind := schema.GroupVersionKind{Group: "policies.kyverno.io", Version: "v1", Kind: "ImageValidatingPolicy"}
	if err := shared.Plane.InstallCRDs(t.Context(), controlplane.StandIn(kind, "imagevalidatingpolicies", false)); err != nil {
		t.Fatal(err)
	}
	shared.Namespace(t, "shop", nil)
	p := shared.start(t, "", "--image-registries", r.Host+"/team", "--allow-local-registries")
	restart := func() {
		p.kill()
		p = shared.start(t, p.address, "--image-registries", r.Host+"/team", "--allow-local-registries")
	}
	policyOf := func(actions, failure string) string {
		return `
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: signed}
spec:
  validationActions: [` + actions + `]
  failurePolicy: ` + failure + `
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]
  matchImageReferences: [{glob: "127.0.0.1:*"}]
  credentials: {allowInsecureRegistry: true}
  attestors:
  - name: k
    cosign:
      key: {data: "` + strings.ReplaceAll(signer.PEM(), "\n", `\n`) + `"}
      ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}
  validations:
  - {expression: "images.containers.all(i, verifyImageSignatures(i, [attestors.k]) > 0)", message: images are signed}
`
	}
	shared.Apply(t, policyOf("Deny", "Fail"))
	restart()
	testcluster.Soon(t, "a denial of an image that is pinned", func() bool {
		message := shared.denied(t, podRunning("a", r.Host+"/team/app:v2"))
		return strings.Contains(message, "images are signed") && strings.Contains(message, testregistry.Digest(unsigned)) && strings.Contains(message, "there are no signatures of")
	})
	if message := shared.denied(t, deploymentOf("IMAGE", r.Host+"/team/app:v2")); !strings.Contains(message, "images are signed") {
		t.Error(message)
	}
	for tag, of := range map[string]string{"v1": signed, "v3": bundled} {
		one := shared.admitted(t, podRunning("a", r.Host+"/team/app:"+tag))
		if got, want := at(t, item(at(t, one, "spec", "containers"), 0), "image"), r.Host+"/team/app:"+tag+"@"+testregistry.Digest(of); got != want {
			t.Errorf("want %s, got %v", want, got)
		}
	}

	// A tag that moves between the phases is what it was when it was pinned, or denied.
	var heads atomic.Int64
	r.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.HasSuffix(q.URL.Path, "/team/app/manifests/moves") {
			return false
		}
		of := []string{signed, unsigned}[heads.Add(1)%2]
		w.Header().Set("Docker-Content-Digest", testregistry.Digest(of))
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Content-Length", "10")
		return true
	})
	for i := range 6 {
		one, err := shared.try(t.Context(), t, podRunning(fmt.Sprintf("m%d", i), r.Host+"/team/app:moves"))
		if err != nil {
			continue
		}
		if got := fmt.Sprint(at(t, item(at(t, one, "spec", "containers"), 0), "image")); !strings.HasSuffix(got, testregistry.Digest(signed)) {
			t.Errorf("a tag that moves became %s", got)
		}
	}
	if heads.Load() == 0 {
		t.Error("the tag was not asked for")
	}

	// Many Pods at once, of which nothing is known yet, by a registry that takes its time.
	r.Answer(func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(20 * time.Millisecond)
		return false
	})
	shared.flood(t, p, many)

	// A registry that is away denies, whatever the failure policy says.
	r.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	for _, failure := range []string{"Fail", "Ignore"} {
		shared.replace(t, policyOf("Deny", failure))
		testcluster.Soon(t, "a denial under "+failure, func() bool {
			message := shared.denied(t, podRunning("a", r.Host+"/team/new@"+testregistry.Digest(signed)))
			return strings.Contains(message, "the registry cannot be asked") && strings.Contains(message, strings.ToLower("validate-"+failure))
		})
	}
	r.Answer(nil)

	// Without the process nothing is admitted that was not verified, and it goes on where it was.
	shared.replace(t, policyOf("Deny", "Fail"))
	testcluster.Soon(t, "a denial under Fail", func() bool {
		return strings.Contains(shared.denied(t, podRunning("a", r.Host+"/team/app:v2")), "validate-fail")
	})
	p.kill()
	if _, err := shared.try(t.Context(), t, podRunning("a", r.Host+"/team/app:v2")); err == nil {
		t.Error("without the process an image that is not signed is admitted")
	}
	p = shared.start(t, p.address, "--image-registries", r.Host+"/team", "--allow-local-registries")
	shared.replace(t, policyOf("Audit", "Fail"))
	restart()
	shared.admitted(t, podRunning("a", r.Host+"/team/app@"+testregistry.Digest(unsigned)))
}

// flood makes 200 Pods at once, and says how long they took and what the program used.
func (c *cluster) flood(t *testing.T, p *process, images []string) {
	const pods = 200
	took := make([]time.Duration, pods)
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range pods {
		all.Go(func() {
			begun := time.Now()
			if _, err := c.try(ctx, t, podRunning(fmt.Sprintf("f%d", i), images[i%len(images)])); err != nil {
				t.Error(err)
			}
			took[i] = time.Since(begun)
		})
	}
	all.Wait()
	slices.Sort(took)
	t.Logf("200 Pods of %d images at once: median %v, p99 %v, longest %v; the program used %s at most", len(images), took[pods/2], took[pods*99/100], took[pods-1], peak(p))
	if took[pods*99/100] > 10*time.Second {
		t.Errorf("the 99th of a hundred took %v", took[pods*99/100])
	}
}

// peak is the most memory that the program had.
func peak(p *process) string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return "an unknown amount"
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}

// replace writes an object in the place of the one that is there.
func (c *cluster) replace(t *testing.T, text string) {
	t.Helper()
	o := testcluster.Read(t, text)[0]
	there := o.DeepCopy()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), there); err != nil {
		t.Fatal(err)
	}
	o.SetResourceVersion(there.GetResourceVersion())
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}
