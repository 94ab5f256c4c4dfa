package pattern

import (
	"path"
	"strconv"
	"strings"

	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// dereferenced is a pattern with its $(...) replaced by what they point at: other
// leaves of the pattern, never of the object. It is false where one points at
// nothing, or at what is no text.
func dereferenced(l *read.Lowering, root *policy.Node) (*policy.Node, bool) {
	d := dereferencer{l: l, root: root, ok: true}
	out := d.node(root, "/")
	return out, d.ok
}

// badReference is what a pattern is that is not dereferenced: Kyverno errs on every object.
func badReference() partial.Bool {
	return partial.Error("reference")
}

type dereferencer struct {
	l    *read.Lowering
	root *policy.Node
	ok   bool
}

// node is n at the place at, which is written with the anchors of its keys.
func (d *dereferencer) node(n *policy.Node, at string) *policy.Node {
	out := rebuilt(n, func(i int, item *policy.Node) *policy.Node { return d.node(item, path.Join(at, strconv.Itoa(i))) }, func(f policy.Field) policy.Field {
		f.Value = d.node(f.Value, path.Join(at, f.Key))
		return f
	})
	if n.Kind == policy.String {
		out.Str = d.text(n, at)
	}
	return out
}

func (d *dereferencer) text(n *policy.Node, at string) string {
	t := query.ParseTemplate(n.Str, n.Pos)
	if !t.HasRefs() {
		return n.Str
	}
	var b strings.Builder
	for _, part := range t.Parts {
		switch {
		case part.Ref != nil:
			b.WriteString(d.value(part.Ref, at))
		case part.Var != nil:
			d.l.SetPos(n.Pos)
			panic(d.l.Unsupported("a reference beside a variable"))
		default:
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// value is the text that a reference stands for: of a string the string, and
// behind an operator of a number too.
func (d *dereferencer) value(r *jmespath.Reference, at string) string {
	to := r.Path
	if !strings.HasPrefix(to, "/") {
		to = path.Join(at, to)
	}
	n := d.find(d.root, strings.Split(strings.Trim(path.Clean(to), "/"), "/"))
	switch {
	case n == nil:
	case n.Kind == policy.String && query.HasVariables(n):
		d.l.SetPos(n.Pos)
		panic(d.l.Unsupported("a reference to a value with variables"))
	case n.Kind == policy.String:
		return r.Operator + n.Str
	case r.Operator == "":
	case n.Kind == policy.Int:
		return r.Operator + strconv.FormatInt(n.Int, 10)
	case n.Kind == policy.Float:
		return r.Operator + strconv.FormatFloat(n.Float, 'f', 6, 64)
	}
	d.ok = false
	return ""
}

// find is the leaf at a place; the keys on the way are compared without anchors.
func (d *dereferencer) find(n *policy.Node, steps []string) *policy.Node {
	if len(steps) == 0 {
		if n.Kind == policy.Map || n.Kind == policy.List {
			return nil
		}
		return n
	}
	if n.Kind == policy.List {
		i, err := strconv.Atoi(steps[0])
		if err != nil || i < 0 || i >= len(n.Items) {
			return nil
		}
		return d.find(n.Items[i], steps[1:])
	}
	for _, f := range n.Fields {
		if _, key := anchor.Split(f.Key); key == steps[0] {
			return d.find(f.Value, steps[1:])
		}
	}
	return nil
}
