package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/kvap/kvap/images"
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
	trust, err := readTrust(f.trustedRoot)
	if err != nil || f.registryDir == "" {
		return nil, err
	}
	out, err := proven.Open(f.registryDir, trust)
	if err != nil {
		return nil, fmt.Errorf("--registry-dir: %w", err)
	}
	return out, nil
}

// readTrust is whom keyless signatures are trusted by; nil where no file says so.
func readTrust(file string) (*images.Trust, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--sigstore-trusted-root: %w", err)
	}
	trust, err := images.ReadTrust(data)
	if err != nil {
		return nil, fmt.Errorf("--sigstore-trusted-root %s: %w", file, err)
	}
	return trust, nil
}
