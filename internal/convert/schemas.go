package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/schema"
)

// Schemas are the types of a release, those of the CRDs in the paths, and those that
// projects publish.
func Schemas(release cel.Release, paths []string) (*schema.Set, error) {
	set, err := schema.Builtin(release.String())
	if err != nil {
		return nil, exit.Runtime(err)
	}
	set = set.WithPublished()
	if len(paths) == 0 {
		return set, nil
	}
	sources, found, err := input.Read(paths, nil)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--crds: %w", err))
	}
	if !slices.ContainsFunc(sources, func(s input.Source) bool { return bytes.Contains(s.Data, []byte("CustomResourceDefinition")) }) {
		return nil, exit.Usage(fmt.Errorf("--crds: there is no CustomResourceDefinition in %s", strings.Join(paths, ", ")))
	}
	for _, s := range sources {
		next, ds := set.WithCRDFile(s.Name, s.Data)
		found = append(found, ds...)
		set = next
	}
	if err := found.Sort().Err(); err != nil {
		return nil, exit.Usage(fmt.Errorf("--crds: %w", err))
	}
	return set, nil
}
