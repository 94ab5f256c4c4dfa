package apiserver

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/internal/textdiff"
)

// The objects of the corpus have the form that the API server gives them, so
// Canonical must leave them alone.
func TestCanonicalKeepsTheCorpus(t *testing.T) {
	files, err := filepath.Glob("../../../shared/corpus/policies/*/*/cases.jsonl.gz")
	if err != nil || len(files) == 0 {
		t.Skip("no corpus beside the repository")
	}
	if testing.Short() {
		files = files[:5]
	}
	for _, file := range files {
		keeps(t, file)
	}
}

func keeps(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c struct {
			ID      string
			Request struct {
				Kind   metav1.GroupVersionKind
				Object json.RawMessage
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := kjson.Unmarshal(c.Request.Object, &object); err != nil {
			t.Fatal(err)
		}
		got, err := Canonical(object, schema.GroupVersionKind(c.Request.Kind))
		if err != nil {
			t.Errorf("%s: %s: %v", file, c.ID, err)
			continue
		}
		if d := textdiff.Values(object, got); d != "" {
			t.Fatalf("%s: %s (-have +canonical):\n%s", file, c.ID, d)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
