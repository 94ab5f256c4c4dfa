//go:build e2e

package replay

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mistaken are objects that a test wants refused although its policy allows them, of
// which there is no recorded verdict.
func mistaken() map[string]string {
	return map[string]string{
		"policies/other/advanced-restrict-image-registries badpod01": "its image is of the registry that the ConfigMap of the test allows everywhere",
	}
}

// admitted tells whether Kyverno itself, as the corpus has recorded it, lets an
// object be made that a chainsaw test wants refused. Some tests have a good object
// in a file of bad ones.
func admitted(folder string, o *unstructured.Unstructured) (bool, error) {
	file, err := os.Open(filepath.Join(folder, "cases.jsonl.gz"))
	if err != nil {
		return false, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return false, err
	}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 16<<20)
	found := false
	for lines.Scan() {
		var c struct {
			Request struct {
				Operation   string
				SubResource string
				Object      map[string]any
			}
			Verdicts, EnforceVerdicts, Status map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return false, err
		}
		recorded := unstructured.Unstructured{Object: c.Request.Object}
		if c.Request.Operation != "CREATE" || c.Request.SubResource != "" || recorded.GetName() != o.GetName() || recorded.GetKind() != o.GetKind() ||
			!within(o.Object["spec"], c.Request.Object["spec"]) || recorded.GetLabels() != nil && !reflect.DeepEqual(recorded.GetLabels(), o.GetLabels()) {
			continue
		}
		found = true
		for _, verdicts := range []map[string]string{c.Verdicts, c.EnforceVerdicts, c.Status} {
			for _, v := range verdicts {
				if v == "fail" || v == "error" {
					return false, nil
				}
			}
		}
	}
	return found, lines.Err()
}

// within tells whether what was written is in what was recorded, which has defaults
// besides.
func within(written, recorded any) bool {
	switch w := written.(type) {
	case map[string]any:
		r, ok := recorded.(map[string]any)
		for k, v := range w {
			ok = ok && within(v, r[k])
		}
		return ok
	case []any:
		r, ok := recorded.([]any)
		ok = ok && len(r) == len(w)
		for i, v := range w {
			ok = ok && within(v, r[i])
		}
		return ok
	case int64:
		n, ok := recorded.(float64)
		return ok && n == float64(w)
	}
	return reflect.DeepEqual(written, recorded)
}
