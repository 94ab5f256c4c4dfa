//go:build e2e

package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Tests that were written for this project pass, or fail where they are to fail, as tests
// of Kyverno's would: what those say of kvap is only worth what their runner is.
func TestRunner(t *testing.T) {
	t.Parallel()
	c := newConformer(t)
	for _, folder := range folders(t, "testdata/chainsaw/passes") {
		t.Run("passes/"+filepath.Base(folder), func(t *testing.T) {
			if err := c.conform(t, folder, "chainsaw-passes"); err != nil {
				t.Error(err)
			}
		})
	}
	c.cluster.Patience = time.Second // they fail for good
	for _, folder := range folders(t, "testdata/chainsaw/fails") {
		t.Run("fails/"+filepath.Base(folder), func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join(folder, "want.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.conform(t, folder, "chainsaw-fails"); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(string(want))) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func folders(t *testing.T, parent string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s is empty: %v", parent, err)
	}
	return found
}
