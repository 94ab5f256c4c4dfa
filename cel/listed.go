package cel

import (
	"slices"
	"strings"
)

// manyTexts is from how many on texts are a list.
const manyTexts = 4

// listed asks a value for each of many texts in one search, which has a line for each of them:
//
//	v.startsWith('a') || v.startsWith('b') || ...      ['a', 'b', ...].exists(prefix, v.startsWith(prefix))
//	!v.endsWith('a') && !v.endsWith('b') && ...        !['a', 'b', ...].exists(suffix, v.endsWith(suffix))
//
// A text that another one says already is left out.
func (n *node) listed() *node {
	if n.op != opAnd && n.op != opOr || len(n.args) < manyTexts {
		return n
	}
	var groups [][]*node // terms that ask one value, if only for one text
	var where []int      // in the groups, of each term; -1 for other terms
	for _, term := range n.args {
		i := -1
		if asks := n.op.asksForText(term); asks != nil {
			i = slices.IndexFunc(groups, func(g []*node) bool { return g[0].name == asks.name && equal(g[0].args[0], asks.args[0]) })
			if i < 0 {
				i = len(groups)
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], asks)
		}
		where = append(where, i)
	}
	var terms []Bool
	for k, term := range n.args {
		switch i := where[k]; {
		case i < 0 || len(groups[i]) < manyTexts:
			terms = append(terms, Bool{Value{term}})
		case slices.Index(where, i) == k:
			terms = append(terms, searchFor(groups[i], n.op == opOr))
		}
	}
	return andOr(n.op, terms).n
}

// asksForText is v.startsWith('a') of a term of ||, or of its negation in &&; else nil.
func (o op) asksForText(term *node) *node {
	if o == opAnd {
		if term.op != opNot {
			return nil
		}
		term = term.args[0]
	}
	if textPart(term.function()) == "" || term.op != opMember || len(term.args) != 2 || term.args[1].op != opString {
		return nil
	}
	return term
}

// textPart is what a function takes of a text.
func textPart(f Function) string {
	switch f {
	case FuncStartsWith:
		return "prefix"
	case FuncEndsWith:
		return "suffix"
	case FuncContains:
		return "part"
	}
	return ""
}

// searchFor is that one of the terms holds, or none.
func searchFor(terms []*node, some bool) Bool {
	value, f := Value{terms[0].args[0]}, terms[0].function()
	test := map[Function]func(text, part string) bool{FuncStartsWith: strings.HasPrefix, FuncEndsWith: strings.HasSuffix, FuncContains: strings.Contains}[f]
	var texts []string
	for _, t := range terms {
		texts = append(texts, t.args[1].lit.(string))
	}
	kept := slices.DeleteFunc(slices.Clone(texts), func(text string) bool {
		return slices.ContainsFunc(texts, func(other string) bool { return other != text && test(text, other) })
	})
	var found Bool
	if len(kept) < manyTexts {
		var left []Bool
		for _, text := range kept {
			left = append(left, value.Call(f, String(text)).AsBool())
		}
		found = Or(left...)
	} else {
		scope := &Scope{}
		scope.Reserve(value.Idents()...)
		x := Ident(scope.Fresh(textPart(f)))
		found = Strings(kept...).Macro(MacroExists, x, value.Call(f, x)).AsBool()
	}
	if some {
		return found
	}
	return negation(found)
}

// negation is !b, of each term of ||.
func negation(b Bool) Bool {
	terms := bools(b.n.terms(opOr))
	for i, t := range terms {
		terms[i] = Bool{Value{not(t.n)}}
	}
	return And(terms...)
}
