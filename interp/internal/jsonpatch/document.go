package jsonpatch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/kvap/kvap/interp/internal/datum"
)

// maxNodes bounds what a patch can make of an object: copies of copies double it.
const maxNodes = 500_000

// maxDepth is how many levels a document may have.
const maxDepth = 10_000

// A patchedObject is an object that is being patched.
type patchedObject struct {
	root   any
	budget int
}

// A container is a map or list of a document, which operations change.
type container interface {
	get(key string) (value any, has bool, err error)
	add(key string, value any) error
	set(key string, value any) error
	remove(key string) error
}

// A mapping is a map that knows the order in which its keys came.
type mapping struct {
	keys   []string
	values map[string]any
}

// A sequence is a list.
type sequence struct{ items []any }

// load copies plain data.
func (d *patchedObject) load(v any) (any, error) { return d.copy(v, maxDepth) }

func (d *patchedObject) copy(v any, levels int) (any, error) {
	if d.budget--; d.budget < 0 {
		return nil, fmt.Errorf("the patch makes too much of the object: more than %d values", maxNodes)
	}
	if levels == 0 {
		return nil, fmt.Errorf("there are more than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		m := &mapping{keys: slices.Sorted(maps.Keys(v)), values: make(map[string]any, len(v))}
		for _, key := range m.keys {
			item, err := d.copy(v[key], levels-1)
			if err != nil {
				return nil, err
			}
			m.values[key] = item
		}
		return m, nil
	case []any:
		l := &sequence{items: make([]any, len(v))}
		for i, item := range v {
			var err error
			if l.items[i], err = d.copy(item, levels-1); err != nil {
				return nil, err
			}
		}
		return l, nil
	}
	return v, nil
}

// plain is a node as plain data.
func plain(v any) any {
	switch v := v.(type) {
	case *mapping:
		m := make(map[string]any, len(v.values))
		for key, item := range v.values {
			m[key] = plain(item)
		}
		return m
	case *sequence:
		l := make([]any, len(v.items))
		for i, item := range v.items {
			l[i] = plain(item)
		}
		return l
	}
	return v
}

// same compares two nodes, the order of keys too.
func same(a, b any) bool {
	switch a := a.(type) {
	case *mapping:
		b, ok := b.(*mapping)
		return ok && slices.Equal(a.keys, b.keys) &&
			!slices.ContainsFunc(a.keys, func(key string) bool { return !same(a.values[key], b.values[key]) })
	case *sequence:
		b, ok := b.(*sequence)
		return ok && slices.EqualFunc(a.items, b.items, same)
	}
	return datum.Equal(a, b)
}

func (m *mapping) get(key string) (any, bool, error) {
	v, ok := m.values[key]
	return v, ok, nil
}

func (m *mapping) add(key string, value any) error {
	if _, has := m.values[key]; !has {
		m.keys = append(m.keys, key)
	}
	m.values[key] = value
	return nil
}

func (m *mapping) set(key string, value any) error { return m.add(key, value) }

func (m *mapping) remove(key string) error {
	if _, has := m.values[key]; has {
		delete(m.values, key)
		m.keys = slices.DeleteFunc(m.keys, func(k string) bool { return k == key })
	}
	return nil
}

// index reads an index; a negative one counts from the end of size.
func index(key string, size int) (int, error) {
	i, err := strconv.Atoi(key)
	if err != nil {
		return 0, fmt.Errorf("%q is no index of a list", key)
	}
	if i < 0 {
		i += size
	}
	if i < 0 || i >= size {
		return 0, fmt.Errorf("the list has no index %s", key)
	}
	return i, nil
}

func (l *sequence) get(key string) (any, bool, error) {
	i, err := index(key, len(l.items))
	if err != nil {
		return nil, false, err
	}
	return l.items[i], true, nil
}

// add inserts; - and -1 append.
func (l *sequence) add(key string, value any) error {
	i := len(l.items)
	if key != "-" {
		var err error
		if i, err = index(key, len(l.items)+1); err != nil {
			return err
		}
	}
	l.items = slices.Insert(l.items, i, value)
	return nil
}

func (l *sequence) set(key string, value any) error {
	i, err := index(key, len(l.items))
	if err != nil {
		return err
	}
	l.items[i] = value
	return nil
}

// remove takes an index that the list does not have for removed.
func (l *sequence) remove(key string) error {
	if _, err := strconv.Atoi(key); err != nil {
		return fmt.Errorf("%q is no index of a list", key)
	}
	if i, err := index(key, len(l.items)); err == nil {
		l.items = slices.Delete(l.items, i, i+1)
	}
	return nil
}
