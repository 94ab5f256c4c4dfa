package controller

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// failing reads from a cluster until it does not.
type failing struct {
	client.Reader
	after int
}

func (f *failing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if f.after--; f.after < 0 {
		return errors.New("no answer")
	}
	return f.Reader.List(ctx, list, options...)
}

// A handover that could not see what came of its writes is not done: what the removed
// judges read must stay until API servers are seen to judge without them.
func TestHandoverThatIsNotSeen(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	w := &writer{client: c, direct: c, tell: func(string) {}}
	gone := emptyLike(&nativePolicy{}).(*nativePolicy)
	gone.Name, gone.Labels = "gone", ownLabels(nil)
	if err := w.apply(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	before, err := readState(t.Context(), c, false)
	if err != nil {
		t.Fatal(err)
	}
	h := &handover{client: &failing{c, 2}, writer: w, canary: &canary{seen: before.versions()}, step: func(Step) {}, corrections: &corrections{}}
	out, err := h.run(t.Context(), nil, nil)
	if err == nil || !out.pending {
		t.Errorf("pending %t, %v", out.pending, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the judge that nobody wants: %v", err)
	}
}
