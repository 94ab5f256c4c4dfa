package kvap_test

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// platforms are those of a release. tools/release has the same list.
func platforms() []string {
	return []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
}

// TestPlatforms: the program builds for every platform of a release. Of each operating system
// the first platform that is not this machine's is type-checked from source, with all that it
// imports, which takes seconds where a build without a cache takes minutes. kvap's own
// packages have the same files for the other architecture, so the same holds there; `make
// platforms` builds these.
func TestPlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the sources of all modules for each operating system")
	}
	checked := map[string]bool{}
	files := map[string][]string{} // of kvap's packages, by operating system
	for _, platform := range platforms() {
		system, arch, _ := strings.Cut(platform, "/")
		mode := packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps
		if !checked[system] && platform != runtime.GOOS+"/"+runtime.GOARCH {
			checked[system] = true
			mode |= packages.NeedCompiledGoFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedTypesSizes
		}
		roots, err := packages.Load(&packages.Config{
			Mode: mode,
			Env:  append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		}, "./cmd/kvap")
		if err != nil {
			t.Fatal(err)
		}
		var own []string
		packages.Visit(roots, nil, func(p *packages.Package) {
			for _, e := range p.Errors {
				t.Errorf("%s: %v", platform, e)
			}
			if p.PkgPath == module || strings.HasPrefix(p.PkgPath, module+"/") {
				own = append(own, p.GoFiles...)
			}
		})
		slices.Sort(own)
		if len(own) < 100 {
			t.Fatalf("%s: found only %d files", platform, len(own))
		}
		if files[system] == nil {
			files[system] = own
		} else if !slices.Equal(own, files[system]) {
			t.Errorf("%s: kvap's files differ from those of the other architecture: check the types of both", platform)
		}
	}
}
