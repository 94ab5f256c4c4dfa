package translate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Only package partial makes an expression that is an error.
func TestOnePlaceMakesErrors(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if n := strings.Count(string(text), "cel.Map()).Field("); n > 0 {
			found += n
			if filepath.Base(filepath.Dir(path)) != "partial" {
				t.Errorf("%s makes an error; partial.Fault does", path)
			}
		}
		return err
	})
	if err != nil || found != 1 {
		t.Errorf("%d places make errors, want 1: %v", found, err)
	}
}
