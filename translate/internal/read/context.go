package read

import (
	"slices"

	"github.com/kvap/kvap/policy"
)

// A ContextVar is a context entry. It is lowered where a query names it: what is never
// named has no errors, in Kyverno and here.
type ContextVar struct {
	Entry *policy.ContextEntry
	Index int // among the entries of the context
	// Outer is the context that the entry may use: the entries before it.
	Outer Context
}

// A Context is the entries that may be used at a place. Contexts of one rule share
// what they have by name, and each sees the first so many of all entries.
type Context struct {
	Named map[string][]*ContextVar // in order
	Size  int
}

// Get is the last entry of a name, or nil.
func (c Context) Get(name string) *ContextVar {
	for _, v := range slices.Backward(c.Named[name]) {
		if v.Index < c.Size {
			return v
		}
	}
	return nil
}

// A LoadedEntry is a context entry that a query names: its value, and what loading it demands.
type LoadedEntry struct {
	Value   Operand
	Loading Demands
}
