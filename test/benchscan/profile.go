package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// pprofAddress is where the controller serves its profiles, where these are wanted.
const pprofAddress = "127.0.0.1:6061"

// profile keeps a profile of the controller in a file of the folder for profiles, if there is one.
func (b *bench) profile(ctx context.Context, profile, file string) error {
	if b.profiles == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pprofAddress+"/debug/pprof/"+profile, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it is read
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", profile, response.Status, data)
	}
	return os.WriteFile(filepath.Join(b.profiles, file), data, 0o644) //nolint:gosec // a profile
}
