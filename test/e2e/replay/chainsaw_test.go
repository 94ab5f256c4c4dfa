//go:build e2e

package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kvap/kvap/test/e2e/chainsaw"
)

// A scenario is a chainsaw test that can be replayed.
type scenario struct {
	name  string
	steps []step
}

// A step is done to each of its objects.
type step struct {
	at      string // where it stands
	verb    verb
	objects []*unstructured.Unstructured
	refused bool // each is to be refused
}

type verb string

const (
	apply    verb = "apply"
	patch    verb = "patch"
	deletion verb = "delete"
	presence verb = "presence" // an object like this must be there
	absence  verb = "absence"  // and must not
)

// A document is chainsaw's.
type document struct {
	Spec struct {
		Bindings []any
		Steps    []struct {
			Try, Finally, Cleanup []map[string]operation
		}
	}
}

type operation struct {
	File     string
	Resource map[string]any
	Ref      map[string]any
	Expect   []any
}

// isPolicy tells of the kinds that kvap takes the place of Kyverno for.
func isPolicy(o *unstructured.Unstructured) bool {
	group := o.GroupVersionKind().Group
	return group == "kyverno.io" || group == "policies.kyverno.io"
}

// read reads a folder. why says why it cannot be replayed.
func read(corpus, folder string) (s scenario, why string, err error) {
	s.name, _ = filepath.Rel(corpus, filepath.Dir(folder))
	data, err := os.ReadFile(filepath.Join(folder, chainsaw.FileName))
	if err != nil {
		return s, "", err
	}
	var d document
	if err := yaml.Unmarshal(data, &d); err != nil {
		return s, "", err
	}
	if len(d.Spec.Bindings) > 0 {
		return s, "bindings of chainsaw", nil
	}
	for i, part := range d.Spec.Steps {
		for j, op := range slices.Concat(part.Try, part.Cleanup, part.Finally) {
			for word, o := range op {
				step, why, err := readStep(folder, word, o)
				if why != "" || err != nil {
					return s, why, err
				}
				step.at = fmt.Sprintf("step %d, %s %d %s", i+1, word, j+1, o.File)
				if len(step.objects) > 0 {
					s.steps = append(s.steps, step)
				}
			}
		}
	}
	return s, "", nil
}

func readStep(folder, word string, o operation) (s step, why string, err error) {
	switch word {
	case "sleep":
		return s, "", nil
	case "apply", "create":
		s.verb = apply
	case "patch":
		s.verb = patch
	case "delete":
		s.verb, o.Resource = deletion, o.Ref
		if o.Resource != nil && o.Ref["name"] != nil {
			o.Resource = map[string]any{"apiVersion": o.Ref["apiVersion"], "kind": o.Ref["kind"], "metadata": map[string]any{
				"name": o.Ref["name"], "namespace": o.Ref["namespace"],
			}}
		}
	case "assert":
	case "error":
		s.verb = absence
	default:
		return s, "a step " + word, nil
	}
	if s.refused = len(o.Expect) > 0; s.refused && !expectsError(o.Expect) {
		return s, "a check of an answer that is not whether there is an error", nil
	}
	s.objects, err = readObjects(folder, o)
	if os.IsNotExist(err) {
		return s, "a file that is not in the corpus", nil
	}
	if word == "assert" {
		s.verb, s.objects = presence, slices.DeleteFunc(s.objects, isPolicy) // that one is ready is seen to anyway
	}
	return s, "", err
}

// asserts says what a scenario wants to know of objects, besides whether they are
// admitted and there.
func (s scenario) asserts() string {
	for _, step := range s.steps {
		if step.verb == presence {
			return "an assertion about an object"
		}
		if step.verb == absence && slices.ContainsFunc(step.objects, func(o *unstructured.Unstructured) bool { return len(o.Object) > 3 || o.GetName() == "" }) {
			return "an assertion about what is in an object"
		}
	}
	return ""
}

// expectsError tells of the check that there is an error.
func expectsError(expect []any) bool {
	return reflect.DeepEqual(expect, []any{map[string]any{"check": map[string]any{"($error != null)": true}}})
}

func readObjects(folder string, o operation) ([]*unstructured.Unstructured, error) {
	if o.Resource != nil {
		return []*unstructured.Unstructured{{Object: o.Resource}}, nil
	}
	file := strings.Replace(o.File, "/.kyverno-test/", "/kyverno-test/", 1) // as the corpus has it
	objects, err := chainsaw.Objects(filepath.Join(folder, file))
	if os.IsNotExist(err) && strings.HasPrefix(file, "../") && strings.Count(file, "/") == 1 { // the corpus has the policy by another name
		return chainsaw.Objects(filepath.Join(folder, "..", "policy.yaml"))
	}
	return objects, err
}
