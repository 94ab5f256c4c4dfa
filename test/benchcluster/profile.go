package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// pprofAddress is where the controller serves its profiles, where these are wanted.
const pprofAddress = "127.0.0.1:6061"

// profiled does something while the controller's CPU is profiled, for so many seconds
// at most as a profile is said to last, and takes a profile of its heap afterwards.
func (b *bench) profiled(ctx context.Context, seconds int, do func(context.Context) error) error {
	if b.profiles == "" {
		return do(ctx)
	}
	if err := fetch(ctx, "heap", filepath.Join(b.profiles, "heap-before.pb.gz")); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		done <- fetch(ctx, fmt.Sprintf("profile?seconds=%d", seconds), filepath.Join(b.profiles, "cpu.pb.gz"))
	}()
	if err := do(ctx); err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	return fetch(ctx, "heap", filepath.Join(b.profiles, "heap-after.pb.gz"))
}

// fetch keeps a profile of the controller in a file. It waits for a controller that
// comes up.
func fetch(ctx context.Context, profile, file string) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pprofAddress+"/debug/pprof/"+profile, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			if sleep(ctx, 100*time.Millisecond) != nil {
				return err
			}
			continue
		}
		data, err := io.ReadAll(response.Body)
		_ = response.Body.Close() // it was read
		if err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o644) //nolint:gosec // a profile
	}
}
