package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
)

// loadSchemas are the types of a release, and those of the CRDs in the paths.
func loadSchemas(release cel.Release, paths []string) (*schema.Set, error) {
	set, err := schema.Builtin(release.String())
	if err != nil {
		return nil, runtimeError(err)
	}
	if len(paths) == 0 {
		return set, nil
	}
	sources, found, err := readInput(paths, nil)
	if err != nil {
		return nil, &exit{exitUsage, fmt.Errorf("--crds: %w", err)}
	}
	if !slices.ContainsFunc(sources, func(s source) bool { return bytes.Contains(s.data, []byte("CustomResourceDefinition")) }) {
		return nil, &exit{exitUsage, fmt.Errorf("--crds: there is no CustomResourceDefinition in %s", strings.Join(paths, ", "))}
	}
	for _, s := range sources {
		next, ds := set.WithCRDFile(s.name, s.data)
		found = append(found, ds...)
		set = next
	}
	for _, d := range found.Sort() {
		if d.Severity == diag.Error {
			return nil, &exit{exitUsage, fmt.Errorf("--crds: %w", d)}
		}
	}
	return set, nil
}
