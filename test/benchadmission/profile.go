package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
)

// profile writes into a file what the server's processors do while all workers post
// the Pod that is admitted, judged by the variant of a name.
func (b *bench) profile(ctx context.Context, vs []variant, name, file string) (err error) {
	i := slices.IndexFunc(vs, func(v variant) bool { return strings.Trim(v.name, "`") == name })
	if i < 0 {
		return fmt.Errorf("there is no variant %q", name)
	}
	if err := b.apply(ctx, vs[i]); err != nil {
		return err
	}
	if err := b.plane.Settle(ctx); err != nil {
		return err
	}
	if _, _, err := b.throughput(ctx, goodPod, http.StatusCreated); err != nil { // warm
		return err
	}
	work := make(chan error)
	go func() {
		_, _, err := b.throughput(ctx, goodPod, http.StatusCreated)
		work <- err
	}()
	text, err := b.get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", max(1, b.seconds)))
	if err := errors.Join(err, <-work); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
