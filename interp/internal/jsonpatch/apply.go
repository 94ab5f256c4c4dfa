package jsonpatch

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
)

// Apply is the object after the patch, and whether its text is another: a key that
// was removed and added again is another text, though the object is the same.
func (p Patch) Apply(object map[string]any) (result any, changed bool, err error) {
	d := &patchedObject{budget: maxNodes}
	root, err := d.load(object)
	if err != nil {
		return nil, false, err
	}
	d.root = root
	for _, op := range p {
		if err := d.apply(op); err != nil {
			return nil, false, fmt.Errorf("%s %s: %w", op.Op, op.Path, err)
		}
	}
	before, err := d.load(object)
	if err != nil {
		return nil, false, err
	}
	return plain(d.root), !same(before, d.root), nil
}

func (d *patchedObject) apply(op Operation) error {
	if strings.Count(op.Path, "/") > maxSteps || strings.Count(op.From, "/") > maxSteps {
		return fmt.Errorf("the path has more than %d steps", maxSteps)
	}
	switch op.Op {
	case "add":
		return d.add(op)
	case "remove":
		return d.remove(op.Path)
	case "replace":
		return d.replace(op)
	case "test":
		return d.test(op)
	}
	return d.transfer(op)
}

func (d *patchedObject) add(op Operation) error {
	value, err := d.load(op.Value)
	if err != nil {
		return err
	}
	if op.Path == "" {
		d.root = value
		return nil
	}
	if err := d.ensure(op.Path); err != nil {
		return err
	}
	return d.put(op.Path, value)
}

// put adds a value under a path whose parents are there.
func (d *patchedObject) put(path string, value any) error {
	parent, key, ok := d.parent(path)
	if !ok {
		return fmt.Errorf("there is no place for it")
	}
	return parent.add(key, value)
}

// remove takes what is missing for removed.
func (d *patchedObject) remove(path string) error {
	parent, key, ok := d.parent(path)
	if !ok {
		return nil
	}
	return parent.remove(key)
}

func (d *patchedObject) replace(op Operation) error {
	value, err := d.load(op.Value)
	if err != nil {
		return err
	}
	if op.Path == "" {
		d.root = value
		return nil
	}
	parent, key, ok := d.parent(op.Path)
	if !ok {
		return fmt.Errorf("there is nothing to replace")
	}
	if _, has, err := parent.get(key); err != nil || !has {
		return fmt.Errorf("there is nothing to replace")
	}
	return parent.set(key, value)
}

// test compares; what is missing equals null.
func (d *patchedObject) test(op Operation) error {
	value, err := d.load(op.Value)
	if err != nil {
		return err
	}
	there := d.root
	if op.Path != "" {
		parent, key, ok := d.parent(op.Path)
		if !ok {
			return fmt.Errorf("there is nothing to test")
		}
		if there, _, err = parent.get(key); err != nil {
			return err
		}
	}
	if !datum.Equal(plain(there), plain(value)) {
		return fmt.Errorf("the value is another")
	}
	return nil
}

// transfer moves or copies. The parents of the new place must be there.
func (d *patchedObject) transfer(op Operation) error {
	parent, key, ok := d.parent(op.From)
	if !ok {
		return fmt.Errorf("there is nothing at %s", op.From)
	}
	value, has, err := parent.get(key)
	if err != nil || !has {
		return fmt.Errorf("there is nothing at %s", op.From)
	}
	// Also what is moved is loaded anew, so that no chain of moves nests for ever.
	if value, err = d.load(plain(value)); err != nil {
		return err
	}
	if op.Op == "move" {
		if err := parent.remove(key); err != nil {
			return err
		}
	}
	return d.put(op.Path, value)
}
