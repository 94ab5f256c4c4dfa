package proven

import (
	"fmt"
	"os"

	"github.com/kvap/kvap/images"
)

// ReadTrust is whom keyless signatures are trusted by; nil where no file says so.
func ReadTrust(file string) (*images.Trust, error) {
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
