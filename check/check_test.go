package check_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/schema"
)

var update = flag.Bool("update", false, "rewrite the expected files from current output")

// schemas are the types of releases, made once.
func schemas(t testing.TB, releases ...cel.Release) map[cel.Release]*schema.Set {
	t.Helper()
	out := map[cel.Release]*schema.Set{}
	for _, r := range releases {
		set, err := schema.Builtin(r.String())
		if err != nil {
			t.Fatal(err)
		}
		out[r] = set
	}
	return out
}

// find checks a file for an old and a new release.
func find(t testing.TB, file string, text []byte) []*check.Result {
	t.Helper()
	objects, ds := check.Written(file, text)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return check.Objects(objects, check.Options{Schemas: schemas(t, 34, 36)})
}

// listed is a line for each finding: place, code, and what it says.
func listed(results []*check.Result) string {
	var b strings.Builder
	for _, r := range results {
		for _, f := range r.Findings {
			release, known := "", ""
			if f.Release != 0 {
				release = " " + f.Release.String()
			}
			if f.Known {
				known = " known"
			}
			fmt.Fprintf(&b, "%d:%d %s %s%s%s %s: %s\n", f.Line, f.Pos.Col, f.Code, f.Severity, release, known, f.Field, f.Message)
		}
	}
	return b.String()
}

// Each file of testdata has the findings that stand beside it.
func TestFindings(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := listed(find(t, filepath.Base(file), text))
			golden := strings.TrimSuffix(file, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := textdiff.Values(string(want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Each code of this package has an example that yields it, a file kvNNN.yaml with
// what it finds, and a file kvNNN-not.yaml with what is near to it and right.
func TestEveryCodeIsTriggeredAndNot(t *testing.T) {
	for _, code := range diag.Codes() {
		if code < diag.TypeCheckFailed || code > 499 {
			continue
		}
		example, ok := diag.Example(code)
		if !ok {
			t.Errorf("%s has no example", code)
			continue
		}
		if !strings.Contains(listed(find(t, "example.yaml", []byte(example))), code.String()) {
			t.Errorf("the example of %s does not yield it", code)
		}
		base := "testdata/" + strings.ToLower(code.String())
		for file, want := range map[string]bool{base + ".want": true, base + "-not.want": false} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			} else if strings.Contains(string(text), code.String()) != want {
				t.Errorf("%s: %s is there: %t", file, code, !want)
			}
		}
	}
}

// What has a value of the wrong type cannot be checked, and it is said which value.
func TestWrongType(t *testing.T) {
	const policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: subject}\nspec:\n"
	for text, want := range map[string]string{
		"  validations:\n    - expression: 'true'\n    - expression: true\n": "7:19: spec.validations.expression must be a string, not a bool; the ValidatingAdmissionPolicy cannot be checked",
		"  validations: {expression: 'true'}\n":                              "5:16: spec.validations must be a list, not a map; the ValidatingAdmissionPolicy cannot be checked",
		"  failurePolicy: [Fail]\n":                                          "5:18: spec.failurePolicy must be a string, not a list; the ValidatingAdmissionPolicy cannot be checked",
		"  matchConstraints:\n    resourceRules:\n      - apiGroups: apps\n": "7:20: spec.matchConstraints.resourceRules.apiGroups must be a list, not a string; the ValidatingAdmissionPolicy cannot be checked",
		"  matchConstraints: pods\n":                                         "5:21: spec.matchConstraints must be a map, not a string; the ValidatingAdmissionPolicy cannot be checked",
	} {
		_, found := check.Written("p.yaml", []byte(policy+text))
		if len(found) != 1 {
			t.Fatalf("%s: %v", text, found)
		}
		if got := fmt.Sprintf("%d:%d: %s", found[0].Line, found[0].Pos.Col, found[0].Message); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}
