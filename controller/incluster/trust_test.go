package incluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kvap/kvap/test/testregistry"
)

func TestTrustOptions(t *testing.T) {
	for want, o := range map[string]Webhook{
		"":                                {TUFMirror: "https://tuf.acme.io", TUFRoot: "root.json", TUFCache: "dir"},
		"needs --sigstore-trusted-root":   {TrustDigests: []string{"sha256:a"}},
		"want one of them":                {TUFMirror: "https://tuf.acme.io", TUFRoot: "root.json", TUFCache: "dir", TrustFile: "f"},
		"together, or none of them":       {TUFMirror: "https://tuf.acme.io"},
		"--sigstore-tuf-cache together, ": {TUFCache: "dir"},
	} {
		err := o.checkTrust()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// A TUF repository that cannot be asked does not hold up the start, and is counted.
func TestTrustOfARepository(t *testing.T) {
	repo, dir := testregistry.NewTUF(t), t.TempDir()
	t.Cleanup(func() { // the repository is asked once more when the test ends, and its answer may still be written
		for range 50 {
			_ = os.RemoveAll(filepath.Join(dir, "cache"))
			time.Sleep(10 * time.Millisecond)
		}
	})
	root := filepath.Join(dir, "root.json")
	if err := os.WriteFile(root, repo.Root(1), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Webhook{TUFMirror: repo.URL, TUFRoot: root, TUFCache: filepath.Join(dir, "cache")} // its address is of this machine
	trust, err := o.trust(t.Context(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if got := trust().ID(); got != "unknown" {
		t.Errorf("got %s", got)
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := false
	for _, f := range families {
		counted = counted || f.GetName() == "kvap_image_trusted_root_reads_total" && f.GetMetric()[0].GetLabel()[0].GetValue() == "refused"
	}
	if !counted {
		t.Error("it is not counted")
	}
	o.TUFRoot = filepath.Join(dir, "none")
	if _, err := o.trust(t.Context(), logr.Discard()); err == nil || !strings.Contains(err.Error(), "--sigstore-tuf-root") {
		t.Errorf("got %v", err)
	}
}
