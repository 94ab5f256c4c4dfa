package jsonpatch

import (
	"fmt"
	"strconv"
	"strings"
)

// maxPadding bounds how many nulls a path puts in front of an index.
const maxPadding = 10_000

// maxSteps bounds the levels that one path can make.
const maxSteps = 1000

// steps are the keys of a path. What stands in front of the first slash does not
// count.
func steps(path string) []string {
	parts := strings.Split(path, "/")[1:]
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts
}

// escaped is a key as a step of a path.
func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// parent is the container that a path ends in, and its last key.
func (d *patchedObject) parent(path string) (c container, key string, ok bool) {
	all := steps(path)
	if len(all) == 0 {
		return nil, "", false
	}
	c, ok = d.root.(container)
	for _, step := range all[:len(all)-1] {
		if !ok {
			return nil, "", false
		}
		next, _, err := c.get(step)
		if err != nil {
			return nil, "", false
		}
		c, ok = next.(container)
	}
	return c, all[len(all)-1], ok
}

// ensure makes the parents of a path that are missing or null: a list where the
// next step is an index, else a map.
func (d *patchedObject) ensure(path string) error {
	all := steps(path)
	c, ok := d.root.(container)
	for i := 0; i+1 < len(all); i++ {
		if !ok {
			return fmt.Errorf("a scalar is in the way at %s", all[i])
		}
		next, _, err := c.get(all[i])
		if err == nil && next != nil {
			c, ok = next.(container)
			continue
		}
		made, err := d.newParent(all[i+1])
		if err != nil {
			return err
		}
		if err := d.padTo(c, all[i]); err != nil {
			return err
		}
		if err := c.add(all[i], made); err != nil {
			return err
		}
		c, ok = made, true
	}
	return nil
}

// newParent is an empty container for a step, with nulls in front of its index.
func (d *patchedObject) newParent(step string) (container, error) {
	if d.budget--; d.budget < 0 {
		return nil, fmt.Errorf("the patch makes too much of the object: more than %d values", maxNodes)
	}
	n, err := strconv.Atoi(step)
	switch {
	case step == "-":
		return &sequence{}, nil
	case err != nil:
		return &mapping{values: map[string]any{}}, nil
	case n < -1:
		return nil, fmt.Errorf("a new list has no index %s", step)
	}
	l := &sequence{}
	return l, d.pad(l, n)
}

// padTo fills a list with nulls so that an index can be added.
func (d *patchedObject) padTo(c container, step string) error {
	l, ok := c.(*sequence)
	n, err := strconv.Atoi(step)
	if !ok || err != nil {
		return nil
	}
	return d.pad(l, n)
}

func (d *patchedObject) pad(l *sequence, n int) error {
	missing := n - len(l.items)
	if missing <= 0 {
		return nil
	}
	if d.budget -= missing; d.budget < 0 || missing > maxPadding {
		return fmt.Errorf("the index %d is too far behind the end of the list", n)
	}
	l.items = append(l.items, make([]any, missing)...)
	return nil
}
