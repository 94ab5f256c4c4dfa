package input

import (
	"fmt"
	"io"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/manifest"
)

// Manifests reads the objects of some paths. A path that does not exist ends
// the run; a document that cannot be read is a diagnostic.
func Manifests(flag string, paths []string, stdin io.Reader) ([]manifest.Object, []Source, diag.List, error) {
	if len(paths) == 0 {
		return nil, nil, nil, nil
	}
	sources, found, err := Read(paths, stdin)
	if err != nil {
		return nil, nil, nil, exit.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	var objects []manifest.Object
	for _, s := range sources {
		if len(s.Data) == SizeLimit {
			found = append(found, diag.Errorf(diag.Pos{File: s.Name}, diag.Unreadable, "the file is larger than 10 MiB; split it"))
			continue
		}
		read, ds := manifest.Read(s.Name, s.Data)
		objects, found = append(objects, read...), append(found, ds...)
	}
	return objects, sources, found, nil
}
