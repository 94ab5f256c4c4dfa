package dev

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cleanup"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/internal/controlplane"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/report"
)

// Definitions reads CustomResourceDefinitions.
func Definitions(paths []string) ([]controlplane.CRD, error) {
	objects, err := readObjects(paths, nil)
	if err != nil {
		return nil, err
	}
	var out []controlplane.CRD
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			out = append(out, o)
		}
	}
	return out, nil
}

// Policies reads the objects of the kinds that the controller reads, and
// says how many others there were.
func Policies(paths []string, stdin io.Reader, errs io.Writer) ([]*unstructured.Unstructured, error) {
	objects, err := readObjects(paths, stdin)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	others := 0
	for _, o := range objects {
		if gvk := o.GroupVersionKind(); controller.Reads(gvk) || cleanup.Reads(gvk) {
			out = append(out, o)
		} else {
			others++
		}
	}
	if others > 0 {
		fmt.Fprintf(errs, "warning: %s of other kinds left out; kubectl apply takes them\n", report.Count(others, "object", "objects"))
	}
	if len(paths) > 0 && len(out) == 0 {
		return nil, errors.New("there is no policy in the input")
	}
	return out, nil
}

// readObjects reads all documents of the paths.
func readObjects(paths []string, stdin io.Reader) ([]*unstructured.Unstructured, error) {
	sources, found, err := input.Read(paths, stdin)
	if err != nil {
		return nil, err
	}
	if found.HasErrors() {
		return nil, found[0]
	}
	var out []*unstructured.Unstructured
	for _, s := range sources {
		objects, found := manifest.Read(s.Name, s.Data)
		if found.HasErrors() {
			return nil, found[0]
		}
		for _, o := range objects {
			out = append(out, &unstructured.Unstructured{Object: o.Value})
		}
	}
	return out, nil
}
