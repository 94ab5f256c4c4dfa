package compile

import (
	"crypto/sha256"
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// A Cache remembers what a compilation found of each policy and each object, for
// the next one: whoever compiles again and again, with one policy changed, lowers
// only that policy. It is for one set of options and exceptions, and for policies
// that nobody changes after they were read. What the last compilation did not need
// is forgotten. It is for one compilation at a time.
type Cache struct {
	checkers *cores.Pool[*apiserver.Checker]
	lowered  map[*policy.Policy]lowered
	errors   map[[sha256.Size]byte]field.ErrorList // of the last compilation, and
	fresh    map[[sha256.Size]byte]field.ErrorList // of this one
}

// NewCache is a cache that knows nothing yet.
func NewCache() *Cache { return &Cache{} }

// checkersFor are checkers for a release, of which those that are idle stay.
func (c *Cache) checkersFor(o Options) *cores.Pool[*apiserver.Checker] {
	made := cores.NewPool(func() *apiserver.Checker {
		checker := apiserver.NewChecker(o.Translate.Release)
		if o.Translate.Library {
			return checker.WithLibrary()
		}
		return checker
	})
	if c == nil {
		return made
	}
	if c.checkers == nil {
		c.checkers = made
	}
	return c.checkers
}

// lowered is what became of a policy, and what that took.
type lowered struct {
	translate.Lowered
	lowerCost
}

// A lowerCost is how many steps there were, and how many were spent: more, where the
// policy was too large.
type lowerCost struct{ steps, spent int64 }

// sameWith tells that what cost this comes out the same where there are other steps.
func (c lowerCost) sameWith(steps int64) bool {
	if c.spent > c.steps {
		return steps <= c.steps
	}
	return c.spent <= steps
}

// loweredBefore is what became of a policy the last time, unless that depends on the
// steps that there were.
func (c *Cache) loweredBefore(p *policy.Policy, steps int64) (translate.Lowered, lowerCost, bool) {
	if c == nil {
		return translate.Lowered{}, lowerCost{}, false
	}
	l, ok := c.lowered[p]
	return l.Lowered, l.lowerCost, ok && l.sameWith(steps)
}

// keepLowered forgets all policies but these.
func (c *Cache) keepLowered(ls []translate.Lowered, costs []lowerCost) {
	if c == nil {
		return
	}
	c.lowered = make(map[*policy.Policy]lowered, len(ls))
	for i, l := range ls {
		c.lowered[l.Policy] = lowered{l, costs[i]}
	}
}

// checkedBefore is what the last check said of objects that are the same in all
// that is checked.
func (c *Cache) checkedBefore(o vap.Objects) (key [sha256.Size]byte, errs field.ErrorList, ok bool) {
	if c == nil {
		return key, nil, false
	}
	text, err := json.Marshal(o.All())
	if err != nil {
		return key, nil, false
	}
	key = sha256.Sum256(text)
	if errs, ok = c.fresh[key]; !ok {
		errs, ok = c.errors[key]
	}
	return key, errs, ok
}

// keepChecked keeps what was said of objects. A key that is zero is of none.
func (c *Cache) keepChecked(keys [][sha256.Size]byte, errs []field.ErrorList) {
	if c == nil {
		return
	}
	if c.fresh == nil {
		c.fresh = make(map[[sha256.Size]byte]field.ErrorList, len(keys))
	}
	for i, key := range keys {
		c.fresh[key] = errs[i]
	}
}

// done forgets what was said of objects that this compilation did not have.
func (c *Cache) done() {
	if c != nil {
		c.errors, c.fresh = c.fresh, nil
	}
}
