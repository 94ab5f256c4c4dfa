package interp

import (
	"context"

	"github.com/kvap/kvap/diag"
)

// An Observation is what a predicate of a rule came to while a request was judged.
// The old object's are told too, where a rule looks at one.
type Observation struct {
	// Rule is set where the judging of a rule begins; it then tells whether the
	// rule applies to the request.
	Rule string
	// Pos is the place of a condition, and Path that of a key of a pattern in the
	// object, such as /spec/containers/0/=(image)/.
	Pos  diag.Pos
	Path string
	// Holds tells what it came to; Err that it could not be told.
	Holds bool
	Err   error
}

type observerKey struct{}

// Observed is a context that makes Judge tell f what the predicates of rules come
// to. It is called in the order of judging, by the goroutine that judges.
func Observed(ctx context.Context, f func(Observation)) context.Context {
	return context.WithValue(ctx, observerKey{}, f)
}

// unobserved is a context that tells nobody.
func unobserved(ctx context.Context) context.Context {
	return context.WithValue(ctx, observerKey{}, nil)
}

func observe(ctx context.Context, o Observation) {
	if f, ok := ctx.Value(observerKey{}).(func(Observation)); ok {
		f(o)
	}
}
