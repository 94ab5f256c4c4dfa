package convert

import (
	"fmt"
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
)

// NoPolicy is the end of a run that found nothing to convert: likely it was
// pointed at the wrong place, and nobody should take that for success. found is what
// -v shows, and verbose tells that it is shown already.
func NoPolicy(paths []string, kustomize string, found diag.List, verbose bool) error {
	names := input.Names(paths, kustomize)
	if found.HasErrors() {
		return exit.Usage(fmt.Errorf("no policy in %s could be read", names))
	}
	hint := ""
	if !verbose && slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Severity == diag.Note }) {
		hint = "; -v says what was passed over"
	} else if len(found) == 0 && slices.ContainsFunc(paths, input.LeadsToFolder) {
		hint = "; of a folder, files that end in .yaml, .yml or .json are read, and no hidden folders"
	}
	return exit.Usage(fmt.Errorf("there is no policy in %s%s", names, hint))
}
