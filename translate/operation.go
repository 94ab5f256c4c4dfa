package translate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
)

// operations are the classes of operations that the rule may treat differently. A
// rule whose check says nothing of a deletion is not asked about one (deviation 12).
func (l *lowering) operations(t target) [][]string {
	var all []string
	for _, op := range t.ops() {
		if op == "DELETE" && l.ignoresDeletion() {
			continue
		}
		if l.someFilterHas(op) {
			all = append(all, op)
		}
	}
	if l.dependsOnOperation() {
		var out [][]string
		for _, op := range all {
			out = append(out, []string{op})
		}
		return out
	}
	var out [][]string
	var writes []string
	for _, op := range all {
		if op == "CREATE" || op == "UPDATE" {
			writes = append(writes, op)
		} else {
			out = append(out, []string{op})
		}
	}
	if len(writes) > 0 {
		out = append([][]string{writes}, out...)
	}
	return out
}

// ignoresDeletion tells whether the check is not evaluated on DELETE.
func (l *lowering) ignoresDeletion() bool {
	v := l.rule.Validate
	if v.PodSecurity != nil {
		return true
	}
	return v.CEL == nil && v.Deny == nil && (v.Pattern != nil || v.AnyPattern != nil)
}

func (l *lowering) someFilterHas(op string) bool {
	return slices.ContainsFunc(filters(l.rule.Match), func(f *policy.Filter) bool {
		return len(f.Operations) == 0 || slices.Contains(f.Operations, op)
	})
}

// dependsOnOperation tells whether CREATE and UPDATE may differ to the rule.
func (l *lowering) dependsOnOperation() bool {
	for _, f := range append(filters(l.rule.Match), filters(l.rule.Exclude)...) {
		if len(f.Operations) > 0 {
			return true
		}
	}
	source := l.rule.Source
	if l.rule.Validate.CEL != nil { // CEL itself takes any operation as it comes
		source = source.Get("preconditions")
	}
	asks := func(s string) bool {
		return strings.Contains(s, "operation") || strings.Contains(s, "oldObject")
	}
	return mentions(source, asks) || slices.ContainsFunc(l.opts.Exceptions, func(e *policy.Exception) bool {
		return l.excepts(e) && mentions(e.Source, asks)
	})
}

// mentions tells whether some string below n satisfies f.
func mentions(n *policy.Node, f func(string) bool) bool {
	if n == nil {
		return false
	}
	if n.Kind == policy.String {
		return f(n.Str)
	}
	for _, item := range n.Items {
		if mentions(item, f) {
			return true
		}
	}
	for _, field := range n.Fields {
		if mentions(field.Value, f) {
			return true
		}
	}
	return false
}

func (l *lowering) operation() operand {
	if l.prior {
		return litOf("CREATE")
	}
	if len(l.ops) == 1 {
		return litOf(l.ops[0])
	}
	return stringOf(cel.Ident("request").Field("operation"))
}
