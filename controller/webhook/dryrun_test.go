package webhook

import (
	"context"
	"testing"

	"github.com/kvap/kvap/interp"
)

type marked struct{}

// A markedWorld notes whether it was asked in a context that is marked.
type markedWorld struct {
	interp.Offline
	was bool
}

func (w *markedWorld) ConfigMap(ctx context.Context, _, _ string) (map[string]any, error) {
	w.was = ctx.Value(marked{}) != nil
	return map[string]any{"data": map[string]any{"closed": "no"}}, nil
}

// What rules ask for a dry run is asked as such, and for no other request.
func TestDryRunIsMarked(t *testing.T) {
	w := &markedWorld{}
	c := start(t, Options{World: w, DryRun: func(ctx context.Context) context.Context { return context.WithValue(ctx, marked{}, true) }})
	c.Set(set(policies(t, asksForConfigMap)))
	for request, want := range map[string]bool{`{"dryRun":true}`: true, `{"dryRun":false}`: false, `{}`: false} {
		if c.ask(t, "/validate/fail", plain, request); w.was != want {
			t.Errorf("%s: marked %t", request, w.was)
		}
	}
}
