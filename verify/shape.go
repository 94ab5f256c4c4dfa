package verify

import (
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/schema"
)

// A focus is a tree of the places that a policy looks at.
type focus struct {
	below map[string]*focus // by the steps of a mention
}

func (f *focus) add(m mention) {
	for _, step := range m {
		if f.below == nil {
			f.below = map[string]*focus{}
		}
		if f.below[step] == nil {
			f.below[step] = &focus{}
		}
		f = f.below[step]
	}
}

// at is what is one step below, nil where the policy looks at nothing there.
func (f *focus) at(step string) *focus {
	if f == nil {
		return nil
	}
	return f.below[step]
}

// keys are the names below.
func (f *focus) keys() []string {
	if f == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.below))
}

// shape is what an object of a kind without a schema may look like to have what
// the policy looks at.
func (f *focus) shape() *schema.Type {
	names := f.keys()
	switch {
	case len(names) == 0:
		return &schema.Type{Kind: schema.Any}
	case names[0] == anyElement:
		return &schema.Type{Kind: schema.List, Elem: f.at(anyElement).shape()}
	case len(names) == 1 && names[0] == anyKey:
		return &schema.Type{Kind: schema.Map, Elem: f.at(anyKey).shape()}
	}
	t := &schema.Type{Kind: schema.Object, Fields: map[string]*schema.Field{}}
	for _, name := range names {
		if !strings.HasPrefix(name, "[") && !strings.HasPrefix(name, "{") {
			t.Fields[name] = &schema.Field{Name: name, Type: f.at(name).shape()}
		}
	}
	return t
}
