package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Two corrections of an object are made at once: somebody has changed it, and perhaps again.
// Whoever goes on has a writer that does so each time. Each further correction waits twice as
// long as the one before, and none is counted any more once the object was left alone for a
// while.
const (
	promptCorrections  = 2
	firstCorrection    = 5 * time.Second
	longestCorrection  = 5 * time.Minute
	correctionsEndWith = 2 * longestCorrection
)

// errContested is an object that another writer changes again and again.
var errContested = errors.New("somebody else changes this object again and again")

// corrections are the objects that were written again although nothing else is wanted of them
// than before. The zero value knows of none.
type corrections struct {
	// count is told of each; nil tells nobody.
	count func()
	now   func() time.Time // time.Now where it is nil

	mu      sync.Mutex
	objects map[string]*correctedObject
}

// A correctedObject is one that was written.
type correctedObject struct {
	text  string // what was wanted of it, in short
	times int    // how often it was corrected
	last  time.Time
	// contested tells that a correction waits.
	contested bool
}

func (c *corrections) clock() time.Time {
	if c.now == nil {
		return time.Now()
	}
	return c.now()
}

// write writes an object of which something is wanted, unless another writer is to be left
// alone for now: then it returns errContested.
func (c *corrections) write(key string, want client.Object, write func() error) error {
	text := hashOf(asJSON(want))
	if err := c.wait(key, text); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.objects[key]
	switch {
	case !ok || o.text != text:
		o = &correctedObject{text: text}
	default:
		if c.count != nil {
			c.count()
		}
		if c.clock().Sub(o.last) > correctionsEndWith {
			o.times = 0
		}
		o.times++
		o.last, o.contested = c.clock(), false
	}
	if c.objects == nil {
		c.objects = map[string]*correctedObject{}
	}
	c.objects[key] = o
	return nil
}

// wait returns errContested while an object must not be corrected.
func (c *corrections) wait(key, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.objects[key]
	if !ok || o.text != text || o.times < promptCorrections {
		return nil
	}
	wait := longestCorrection
	if n := o.times - promptCorrections; n < 10 {
		wait = min(wait, firstCorrection<<n)
	}
	if o.contested = c.clock().Sub(o.last) < wait; !o.contested {
		return nil
	}
	return fmt.Errorf("%w: it was corrected %d times, and will be again in %s at most; find who else writes it", errContested, o.times, wait)
}

// rests notes that an object is as it is wanted.
func (c *corrections) rests(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.objects[key]; o != nil {
		o.contested = false
	}
}

// forget forgets an object that is not wanted any more.
func (c *corrections) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, key)
}

// contested are how many objects wait for their correction.
func (c *corrections) contested() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(slices.DeleteFunc(slices.Collect(maps.Values(c.objects)), func(o *correctedObject) bool { return !o.contested }))
}
