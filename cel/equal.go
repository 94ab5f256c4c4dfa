package cel

import (
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
)

// Equal tells that v and w are the same expression, written the same way.
func Equal(v, w Value) bool { return equal(v.n, w.n) }

func equal(a, b *node) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.hash != b.hash || a.op != b.op || a.name != b.name ||
		!sameLit(a.lit, b.lit) || !slices.Equal(a.vars, b.vars) {
		return false
	}
	return slices.EqualFunc(a.args, b.args, equal)
}

// sameLit compares doubles by their bits: NaN is itself, and 0.0 is not -0.0.
func sameLit(a, b any) bool {
	if f, ok := a.(float64); ok {
		g, ok := b.(float64)
		return ok && math.Float64bits(f) == math.Float64bits(g)
	}
	return a == b
}

func (n *node) sum() uint64 {
	h := fnv.New64a()
	io.WriteString(h, n.name)
	for _, v := range n.vars {
		io.WriteString(h, "\x00"+v)
	}
	if n.lit != nil {
		fmt.Fprintf(h, "\x01%v", n.lit)
	}
	s := mix(h.Sum64(), uint64(n.op))
	for _, a := range n.args {
		if a != nil {
			s = mix(s, a.hash)
		}
	}
	return s
}

func mix(a, b uint64) uint64 {
	const prime = 0x9E3779B97F4A7C15
	a = (a ^ b) * prime
	return a ^ a>>29
}

// A nodeSet holds nodes, told apart by their structure.
type nodeSet map[uint64][]*node

// add tells whether n is new.
func (s nodeSet) add(n *node) bool {
	if s.has(n) {
		return false
	}
	s[n.hash] = append(s[n.hash], n)
	return true
}

func (s nodeSet) has(n *node) bool {
	return slices.ContainsFunc(s[n.hash], func(m *node) bool { return equal(n, m) })
}
