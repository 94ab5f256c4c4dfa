package verify

import "math/rand/v2"

// A choice makes decisions: from chance, or as they were made before. The
// decisions are bytes, so that what was made from them can be made again, by a
// fuzzer or from a smaller list. Option 0 is always the plainest, and the one
// that is taken where the list ends: a shorter list makes a plainer thing.
type choice struct {
	chance *rand.Rand // nil: none beyond the list
	list   []byte     // the decisions, made or to be made
	next   int
}

func choose(seed uint64) *choice {
	return &choice{chance: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))}
}

func replay(list []byte) *choice { return &choice{list: list} }

// follow makes the decisions of a list, and further ones by chance.
func follow(list []byte, chance *rand.Rand) *choice { return &choice{list: list, chance: chance} }

// of is a number below n, of which there are at most 256.
func (c *choice) of(n int) int {
	if n <= 1 {
		return 0
	}
	if c.next < len(c.list) {
		b := c.list[c.next]
		c.next++
		return int(b) % n
	}
	if c.chance == nil {
		return 0
	}
	b := c.chance.IntN(n)
	c.list = append(c.list, byte(b))
	c.next++
	return b
}

// made are the decisions that were made so far.
func (c *choice) made() []byte { return c.list[:min(c.next, len(c.list))] }

// percent is true that often.
func (c *choice) percent(p int) bool { return c.of(100) >= 100-p }

// one is an element of a list that is not empty. Of long lists only the first
// 256 come up.
func one[T any](c *choice, list ...T) T { return list[c.of(min(len(list), 256))] }
