package cel

import (
	"math/rand/v2"
	"testing"
)

// What is found out of a part counts where it stands, and not where it stands once more
// among other things that are known.
func TestSamePartElsewhere(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`(oldObject.b.all(x, x.b == 'a') ? object.c.a == 1 : false) || oldObject != null && (oldObject.b.all(x, x.b == 'a') ? object.c.a == 1 : false)`,
		`params.b.all(x, x.b == 'a' ? object.c.a == 1 : false) || object.b.all(x, x.b == 'a' ? object.c.a == 1 : false)`,
		`object.b.all(x, x.b == 'a' ? object.c.a == 1 : false) || params.b.all(x, x.b == 'a' ? object.c.a == 1 : false)`,
	} {
		sameTogether(t, parse(t, text).AsBool())
	}
	for seed := range uint64(3000) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 5))}
		sameTogether(t, s.bool(4).AsBool())
	}
}

// sameTogether simplifies b where no part stands twice, and where equal parts are one.
func sameTogether(t *testing.T, b Bool) {
	t.Helper()
	apart, together := Bool{Value{apart(b.n)}}, Bool{Value{together(b.n, map[string]*node{})}}
	if want, got := apart.Simplify(), together.Simplify(); !Equal(want.Value, got.Value) {
		t.Errorf("%s\nis %s\nand where equal parts are one\n%s", b, want, got)
	}
	want, got := apart.SimplifyIn(sketchedSurroundings()), together.SimplifyIn(sketchedSurroundings())
	if !Equal(want.Value, got.Value) {
		t.Errorf("%s\nis with what is known around it\n%s\nand where equal parts are one\n%s", b, want, got)
	}
}

// apart is n with no part in two places.
func apart(n *node) *node {
	m := *n
	m.args = make([]*node, len(n.args))
	for i, a := range n.args {
		m.args[i] = apart(a)
	}
	return newNode(m)
}

// together is n with equal parts as one, in as many places.
func together(n *node, parts map[string]*node) *node {
	m := *n
	m.args = make([]*node, len(n.args))
	for i, a := range n.args {
		m.args[i] = together(a, parts)
	}
	text := Value{n}.String()
	if parts[text] == nil {
		parts[text] = newNode(m)
	}
	return parts[text]
}
