package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kvap/kvap/internal/proven"
)

// registryFlags say what registries would answer, where none is asked.
type registryFlags struct{ registryDir, trustedRoot string }

const trustedRootHelp = "a file with whom keyless signatures of images are trusted by (trusted_root.json)"

func (f *registryFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.registryDir, "registry-dir", "", "an OCI layout folder, or a folder of them as HOST/REPOSITORY, that answers in the place of registries: images, signatures, attestations")
	fs.StringVar(&f.trustedRoot, "sigstore-trusted-root", "", trustedRootHelp+"; that of the public Sigstore, as it was when kvap was built, by default")
}

// registry is the folder; nil where there is none.
func (f *registryFlags) registry() (*proven.Recorded, error) {
	trust, err := proven.ReadTrust(f.trustedRoot)
	if err != nil || f.registryDir == "" {
		return nil, err
	}
	out, err := proven.Open(f.registryDir, trust)
	if err != nil {
		return nil, fmt.Errorf("--registry-dir: %w", err)
	}
	return out, nil
}
