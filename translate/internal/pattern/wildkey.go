package pattern

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A key with wildcards stands for the keys of labels or annotations that match it. Kyverno
// takes an arbitrary one of them; deviation 3.
func isWildKey(v read.Place, key string) bool {
	return v.Part == read.InLabels && scalar.IsWild(key)
}

// wildKey says of a key with wildcards what its anchor says of it: acme.io/* with "?*" is
//
//	labels.exists(key, key.startsWith('acme.io/') && labels[key] != '')
func wildKey(l *read.Lowering, v read.Place, kind anchor.Kind, key string, p *policy.Node) cel.Bool {
	l.SetPos(p.Pos)
	l.Note(diag.WildcardKey, "Kyverno takes an arbitrary one of the keys that match %s; here %s", key, decided(kind))
	switch kind {
	case anchor.Conditional:
		return someKey(l, v, key, p)
	case anchor.Equality:
		return everyKey(l, v, key, p)
	case anchor.Negation, anchor.Existence: // the value of a label is no list
		return cel.Not(compare.SomeKey(l, v, key))
	case anchor.Global:
		return cel.Implies(compare.SomeKey(l, v, key), someKey(l, v, key, p))
	default:
		some := someKey(l, v, key, p)
		if compare.NullSatisfies(l, p) { // as any key that is missing
			some = cel.Or(some, cel.Not(compare.SomeKey(l, v, key)))
		}
		return some
	}
}

// decided says what an anchor makes of several keys that match.
func decided(kind anchor.Kind) string {
	switch kind {
	case anchor.Conditional, anchor.Global:
		return "the condition holds where some matching key satisfies it"
	case anchor.Equality:
		return "every matching key must satisfy the pattern"
	case anchor.Negation, anchor.Existence:
		return "no matching key may be there"
	default:
		return "some matching key must satisfy the pattern"
	}
}

// someKey is: some key that matches has a value that satisfies p.
func someKey(l *read.Lowering, v read.Place, key string, p *policy.Node) cel.Bool {
	found := l.Binders.Exists(v.Settled().Expr, "key", func(k cel.Value) cel.Bool {
		return cel.And(native.Matches(k, key), entrySatisfies(l, v, k, p))
	})
	return cel.And(v.Found(), found)
}

// everyKey is: each key that matches has a value that satisfies p.
func everyKey(l *read.Lowering, v read.Place, key string, p *policy.Node) cel.Bool {
	all := l.Binders.All(v.Settled().Expr, "key", func(k cel.Value) cel.Bool {
		return cel.Implies(native.Matches(k, key), entrySatisfies(l, v, k, p))
	})
	return cel.Implies(v.Found(), all)
}

// entrySatisfies is: the value of key k, which is there, satisfies p.
func entrySatisfies(l *read.Lowering, v read.Place, k cel.Value, p *policy.Node) cel.Bool {
	if p.Kind == policy.String && p.Str == "*" {
		return cel.True()
	}
	m := v.Settled()
	return match(l, read.PlaceOf(m.Expr.Index(k), m.Elem()), p, "").ok()
}
