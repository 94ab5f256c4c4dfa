package expr

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// A Scope is the object at the root of an expression. Its fields are looked up
// one by one, so that context entries can be loaded when they are needed; what
// they hold is plain data.
type Scope interface {
	Lookup(name string) (value Value, found bool, err error)
}

// scopeValue is a scope as the root. As a whole it counts as the request's.
func scopeValue(s Scope) Value { return Value{s, Provenance{Origin: OfRequest}} }

// A Whole scope can be used as one value, by an @ at the root.
type Whole interface {
	Whole() (map[string]any, error)
}

// Surroundings are what functions see beside their arguments. The zero value has
// no outside: functions that need one err.
type Surroundings struct {
	World World
	// NormalizeImage gives an image's reference with all that it leaves out.
	NormalizeImage func(reference string) (string, error)
	// Written says who wrote the expression, and so its literals: not the policy alone where
	// it was put together from variables.
	Written Origin
}

// A World is what functions ask outside: names, time and chance.
type World interface {
	Resolve(ctx context.Context, host string) ([]netip.Addr, error)
	Now() time.Time
	Random(n int) int
}

// An unknownKeyError is a field that its map does not have. Most constructs of
// JMESPath take it as null; an expression that fails with it names something
// that the request does not hold.
type unknownKeyError struct{ key string }

func (e *unknownKeyError) Error() string { return fmt.Sprintf("Unknown key %q in path", e.key) }
