//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/policy"
)

// corpus is the folder of public policies, where it is at hand.
const corpus = "../../../shared/corpus"

// only narrows the tests down while one works on something.
var only = flag.String("only", "", "convert only subjects whose name has this in it, and expect no numbers of them")

// A form is what convert is told of packing and guards.
type form struct{ pack, guard string }

func (f form) String() string { return "--pack " + f.pack + " --guard " + f.guard }

// forms are those that are tested: guarded as they are by default, however rules
// are packed, and once without guards.
func forms() []form {
	return []form{{"policy", "auto"}, {"match", "auto"}, {"policy", "never"}}
}

// A subject is a file of policies, with the flags that convert is to have.
type subject struct {
	name  string
	file  string
	flags []string
	// userCEL tells that a policy brings expressions of its own, whose quality is
	// not kvap's matter.
	userCEL bool
}

// A conversion is what `kvap convert` made. Tests share it, and leave it as it is.
type conversion struct {
	objects []*unstructured.Unstructured
	native  map[string]bool // by rule as written
}

// subjects are the fixtures, and the policies of the corpus.
func subjects(t *testing.T) []subject {
	t.Helper()
	var all []subject
	for _, f := range fixtures.All() {
		all = append(all, fixtureSubject(t, f))
	}
	for _, folder := range []string{"policies", "validatingpolicy"} {
		files, err := filepath.Glob(filepath.Join(corpus, folder, "*", "*", "policy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name, _ := filepath.Rel(corpus, filepath.Dir(file))
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, subject{name: name, file: file, userCEL: bringsCEL(data)})
		}
	}
	return slices.DeleteFunc(all, func(s subject) bool { return !strings.Contains(s.name, *only) })
}

// fixtureSubject turns options.yaml into the flags that it stands for.
func fixtureSubject(t *testing.T, f fixtures.Fixture) subject {
	t.Helper()
	folder := filepath.Join("..", "..", "fixtures", f.Name)
	s := subject{name: f.Name, file: filepath.Join(folder, "policy.yaml"), userCEL: bringsCEL(f.Policy)}
	var options map[string]any
	if err := yaml.Unmarshal(f.Options, &options); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	for flag, value := range options {
		switch value := value.(type) {
		case string:
			if !slices.Contains([]string{"pack", "guard", "kubernetes-version"}, flag) { // forms are tried all, and the server has its own release
				s.flags = append(s.flags, "--"+flag, value)
			}
		default: // crds
			file := filepath.Join(t.TempDir(), "crds.yaml")
			writeDocuments(t, file, value)
			s.flags = append(s.flags, "--"+flag, file)
		}
	}
	return s
}

func writeDocuments(t *testing.T, file string, list any) {
	t.Helper()
	var text bytes.Buffer
	for _, o := range list.([]any) {
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(data)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// bringsCEL tells whether a policy has expressions that its author wrote.
func bringsCEL(data []byte) bool {
	f, _ := policy.Parse("policy.yaml", data)
	return slices.ContainsFunc(f.Policies, func(p *policy.Policy) bool {
		return p.Validating != nil || slices.ContainsFunc(p.Rules, func(r *policy.Rule) bool {
			return r.Validate != nil && r.Validate.CEL != nil
		})
	})
}

// convert runs `kvap convert`, once for all tests, and returns nothing for a file that has
// nothing to convert.
func (c *cluster) convert(t *testing.T, s subject, f form) conversion {
	t.Helper()
	flags := append([]string{"convert", s.file, "--kubernetes-version", c.release.String(), "-q", "--no-color", "-o", "json", "--pack", f.pack, "--guard", f.guard}, s.flags...)
	key := strings.Join(flags, " ")
	if made, ok := c.converted.Load(key); ok {
		return made.(conversion)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.CommandContext(t.Context(), c.Kvap, append(flags, "--report", report)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && (!errors.As(err, &exit) || !slices.Contains([]int{2, 4}, exit.ExitCode())) {
		t.Fatalf("%s: kvap convert: %v\n%s", s.name, err, stderr.String())
	}
	made := conversion{objects: readList(t, s.name, stdout.Bytes()), native: readReport(t, report)}
	c.converted.Store(key, made)
	return made
}

func readList(t *testing.T, name string, data []byte) []*unstructured.Unstructured {
	t.Helper()
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	if err := json.Unmarshal(data, list); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, data)
	}
	var objects []*unstructured.Unstructured
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects
}

// readReport reads which rules are native.
func readReport(t *testing.T, file string) map[string]bool {
	t.Helper()
	native := map[string]bool{}
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) { // nothing could be read
		return native
	}
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Policies []struct {
			Rules []struct{ Rule, Target string }
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Policies {
		for _, r := range p.Rules {
			native[r.Rule] = r.Target == "native"
		}
	}
	return native
}

// origin is the name as written of a rule as Kyverno reports it.
func (c conversion) origin(rule string) string {
	for _, prefix := range []string{"autogen-cronjob-", "autogen-"} {
		if rest, ok := strings.CutPrefix(rule, prefix); ok {
			return rest
		}
	}
	return rule
}
