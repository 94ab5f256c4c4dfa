//go:build e2e

package chainsaw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// FileName is the name that the file of a test has.
const FileName = "chainsaw-test.yaml"

// A Test is a folder with the steps of a test and the files that they name.
type Test struct {
	Folder string
	Name   string
	spec   spec
}

type spec struct {
	Namespace string
	Bindings  []binding
	Steps     []step
	// The rest changes nothing here: tests run one after the other in a cluster.
	Concurrent, SkipDelete, Skip, FailFast, Template *bool
	Description                                      string
	Timeouts                                         map[string]string
}

type binding struct {
	Name  string
	Value any
}

type step struct {
	Name, Description string
	Bindings          []binding
	Use               *use
	Timeouts          map[string]string
	Template          *bool

	Try, Catch, Finally, Cleanup []operation
}

// A use stands for the steps of a template.
type use struct {
	Template string
	With     struct{ Bindings []binding }
}

// An operation has one of its fields.
type operation struct {
	Description                  string
	Apply, Create, Update, Patch *patchStep
	Delete                       *deletion
	Assert, Error                *assertion
	Script                       *script
	Command                      *command
	Sleep                        *struct{ Duration metav1.Duration }
}

type patchStep struct {
	objectsFile
	Expect []expectation
	DryRun *bool
}

// An objectsFile is the objects of a file, or one that is written out.
type objectsFile struct {
	File     string
	Resource map[string]any
	Template *bool
	Timeout  *metav1.Duration
}

// An expectation checks the answer about objects that match.
type expectation struct {
	Match, Check any
}

type deletion struct {
	File string
	Ref  *struct {
		APIVersion      string `json:"apiVersion"`
		Kind            string
		Name, Namespace string
		Labels          map[string]string
	}
	Timeout                   *metav1.Duration
	Template                  *bool
	DeletionPropagationPolicy string
	Expect                    []expectation
}

type assertion struct{ objectsFile }

type script struct {
	Content       string
	Env           []environment
	Check         any
	Timeout       *metav1.Duration
	WorkDir       string
	SkipLogOutput *bool
}

type command struct {
	Entrypoint string
	Args       []string
	Env        []environment
	Check      any
	Timeout    *metav1.Duration
}

type environment struct{ Name, Value string }

// Read reads the test in a folder. A field that is not known is an error.
func Read(folder string) (*Test, error) {
	var document struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              spec
	}
	if err := readFile(filepath.Join(folder, FileName), &document); err != nil {
		return nil, err
	}
	return &Test{Folder: folder, Name: document.Name, spec: document.Spec}, nil
}

// Asserted are the objects that assertions of the test are about, as they are written.
func (t *Test) Asserted() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, s := range t.spec.Steps {
		for _, o := range append(append(s.Try, s.Finally...), s.Cleanup...) {
			for _, a := range []*assertion{o.Assert, o.Error} {
				switch {
				case a == nil:
				case a.Resource != nil:
					all = append(all, &unstructured.Unstructured{Object: a.Resource})
				default:
					some, err := Objects(filepath.Join(t.Folder, a.File))
					if err != nil {
						return nil, err
					}
					all = append(all, some...)
				}
			}
		}
	}
	return all, nil
}

// template reads the steps that a use stands for.
func (u *use) template(folder string) (steps step, err error) {
	var document struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              step
	}
	err = readFile(filepath.Join(folder, u.Template), &document)
	return document.Spec, err
}

func readFile(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := sigsyaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Objects reads the objects of a file; those of a list are in its place.
func Objects(path string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		u := &unstructured.Unstructured{}
		err := d.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		items, isList := u.Object["items"].([]any)
		switch {
		case len(u.Object) == 0:
		case isList && u.Object["metadata"] == nil:
			for _, item := range items {
				object, _ := item.(map[string]any)
				all = append(all, &unstructured.Unstructured{Object: object})
			}
		default:
			all = append(all, u)
		}
	}
}
