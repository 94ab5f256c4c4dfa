//go:build e2e

package migrate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/test/testregistry"
)

// While Kyverno and kvap both verify images, and when only one of them does, nothing that is not
// signed is admitted, nothing that is signed is refused, and each tag gets its digest. Some are signed
// by a key, others by certificates of Notary.
func TestImages(t *testing.T) {
	c := shared
	r, k := testregistry.New(t), testregistry.NewSigner(t)
	root := testregistry.NewRoot(t)
	leaf := testregistry.NewLeaf(t, root, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour))
	byKey, byNotary, unsigned := r.Push("keys/app:v1"), r.Push("notary/app:v1"), r.Push("keys/app:v2")
	r.Push("notary/app:v2")
	r.Attach(byKey, "sig", k.Signature(byKey, nil))
	r.Notarize(byNotary, testregistry.Notarization{Chain: []*testregistry.Authority{leaf, root}}, nil)
	c.startKyverno(t)
	text := func(pem string) string { return `"` + strings.ReplaceAll(pem, "\n", `\n`) + `"` }
	c.apply(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: key
    match: {any: [{resources: {kinds: [Pod], namespaces: [shop]}}]}
    verifyImages:
    - imageReferences: ["`+r.Host+`/keys/*"]
      imageRegistryCredentials: {allowInsecureRegistry: true}
      attestors: [{entries: [{keys: {rekor: {ignoreTlog: true, url: "https://rekor.sigstore.dev"}, publicKeys: `+text(k.PEM())+`}}]}]
    - type: Notary
      imageReferences: ["`+r.Host+`/notary/*"]
      imageRegistryCredentials: {allowInsecureRegistry: true}
      attestors: [{entries: [{certificates: {certChain: `+text(root.Certificate())+`}}]}]`)
	// judged is why an image is refused, or what the image has become.
	judged := func(ctx context.Context, image string) (string, error) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: probe, namespace: shop}, spec: {selector: {matchLabels: {a: b}},
template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: %q}]}}}}`, image), &o.Object); err != nil {
			return "", err
		}
		if err := c.Create(ctx, o, client.DryRunAll); err != nil {
			return "", err
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			return "", fmt.Errorf("it has %v: %w", containers, err)
		}
		got, _ := containers[0].(map[string]any)["image"].(string)
		return got, nil
	}
	good := map[string]string{}
	for tag, pinned := range map[string]string{"/keys/app:v1": byKey, "/notary/app:v1": byNotary} {
		good[r.Host+tag] = r.Host + tag + "@" + testregistry.Digest(pinned)
	}
	bad := []string{r.Host + "/keys/app:v2", r.Host + "/notary/app:v2", unsigned}
	for _, image := range bad {
		testcluster.Soon(t, "Kyverno refuses "+image, func() bool {
			_, err := judged(t.Context(), image)
			return err != nil && strings.Contains(err.Error(), "failed to verify image")
		})
	}
	for image, want := range good {
		testcluster.Soon(t, "Kyverno pins "+image, func() bool { got, err := judged(t.Context(), image); return err == nil && got == want })
	}
	var admitted, refused, goods, bads atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	ask := func(one func()) {
		asking.Go(func() {
			for ctx.Err() == nil {
				one()
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	for image, want := range good {
		ask(func() {
			if got, err := judged(ctx, image); ctx.Err() == nil && (err != nil || got != want) {
				refused.Add(1)
				t.Errorf("%s: a signed image became %q: %v", time.Now().Format(time.StampMilli), got, err)
			}
			goods.Add(1)
		})
	}
	for _, image := range bad {
		ask(func() {
			if _, err := judged(ctx, image); err == nil {
				admitted.Add(1)
				t.Errorf("%s: %s was admitted", time.Now().Format(time.StampMilli), image)
			}
			bads.Add(1)
		})
	}
	t.Cleanup(asking.Wait)
	t.Cleanup(cancel)
	said := func(when string) {
		t.Logf("%s: %d signed, %d of them refused; %d unsigned, %d of them admitted", when, goods.Load(), refused.Load(), bads.Load(), admitted.Load())
	}
	c.control(t, "--image-registries", r.Host, "--allow-local-registries")
	c.migrate(t, 0, "shadow", "--all")
	said("shadow")
	c.migrate(t, 0, "enforce", "signed", "--accept", "a test", "--yes", "--settle", "2s")
	said("enforce")
	if got := c.record(t, "signed"); got.Stage != v1alpha1.StageEnforced {
		t.Errorf("the record has %s", got.Stage)
	}
	if _, err := judged(t.Context(), unsigned); err == nil || strings.Contains(err.Error(), "kyverno.svc") || !strings.Contains(err.Error(), "there are no signatures of") {
		t.Errorf("kvap does not say why: %v", err)
	}
	c.migrate(t, 0, "rollback", "--all", "--yes", "--settle", "2s")
	cancel()
	asking.Wait()
	said("rollback")
	if goods.Load() == 0 || bads.Load() == 0 {
		t.Error("nothing was asked")
	}
}
