package translate

import (
	"regexp"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// call lowers a function. An argument that is missing is null to Kyverno, which
// most functions refuse as an error; the strict form of the argument is an error too.
func (l *lowering) call(e *jmespath.Expr, cur *jval) jval {
	arg := func(i int) jval { return l.eval(e.Args[i], cur).softly() }
	strictArg := func(i int) jval { return l.eval(e.Args[i], cur) }
	if f, ok := jmespath.LookupFunction(e.Name); ok && !f.Accepts(len(e.Args)) {
		return typeError(e.Name)
	}
	switch e.Name {
	case "contains":
		return arg(1).over(func(search jval) jval {
			return strictArg(0).over(func(in jval) jval { return l.contains(in, search) })
		})
	case "length":
		return strictArg(0).over(l.length)
	case "keys":
		return strictArg(0).over(func(j jval) jval { return l.keysOf(j, false) })
	case "values":
		return strictArg(0).over(func(j jval) jval { return l.keysOf(j, true) })
	case "starts_with", "ends_with":
		name := map[string]string{"starts_with": "startsWith", "ends_with": "endsWith"}[e.Name]
		return l.strings2(strictArg(0), strictArg(1), func(a, b cel.Value) jval { return boolOf(a.Call(name, b).AsBool()) })
	case "to_upper", "to_lower":
		return l.changeCase(e.Name, strictArg(0))
	case "equal_fold":
		return l.equalFold(strictArg(0), strictArg(1))
	case "regex_match":
		return l.regexMatch(strictArg(0), strictArg(1))
	case "pattern_match":
		return l.patternMatch(strictArg(0), strictArg(1))
	case "replace_all":
		return l.replaceAll(strictArg(0), strictArg(1), strictArg(2))
	case "parse_json":
		return strictArg(0).over(l.parseJSON)
	case "split":
		text := strictArg(0)
		elem := stringType()
		if isConfigured(text) {
			elem = configuredText()
		}
		return l.strings2(text, strictArg(1), func(a, b cel.Value) jval {
			return valOf(at(a.Call("split", b), &schema.Type{Kind: schema.List, Elem: elem}))
		})
	case "join":
		return l.joined(strictArg(0), strictArg(1))
	case "to_array":
		return arg(0).over(l.toArray)
	case "to_string":
		return arg(0).over(l.toString)
	case "not_null":
		return l.notNull(e, cur)
	case "sort":
		return l.sorted(strictArg(0))
	case "type":
		return arg(0).over(l.typeName)
	case "divide", "add", "subtract", "multiply":
		return l.arithmetic(e.Name, strictArg(0), strictArg(1))
	case "to_number":
		return arg(0).over(l.toNumber)
	case "max", "min":
		return l.extreme(e.Name, strictArg(0))
	case "trim_prefix":
		return l.trimPrefix(strictArg(0), strictArg(1))
	}
	panic(l.refuse(diag.NoFunction, "the function %s has no native form", e.Name))
}

// contains is membership in a list or in a string.
func (l *lowering) contains(in, search jval) jval {
	switch in.form {
	case litForm:
		return l.literalContains(in.lit, search)
	case errorForm:
		return in
	case streamForm, multiForm:
		s := l.elements2(in)
		if e, ok := s.(entries); ok && !e.values {
			if name, ok := search.lit.(string); ok && search.form == litForm {
				return boolOf(l.hasKey(e.v, name))
			}
		}
		return boolOf(s.quantify(l, "exists", true, func(x jval) cel.Bool { return l.equalValues(x, search) }))
	}
	v := in.v
	switch v.kind() {
	case schema.String:
		text, ok := l.expr(in)
		if search.form == litForm {
			if _, isText := search.lit.(string); !isText {
				return l.falseOf(v)
			}
		}
		what, ok2 := l.expr(search)
		if ok && ok2 && kindOf(search.typ()) == schema.String {
			return boolOf(text.Contains(what))
		}
	case schema.List:
		l.reads(v, true)
		if search.form == litForm {
			if w, ok := l.literalTree(search.lit); ok && couldEqual(v.elem(), search.lit) {
				return boolOf(w.In(v.expr))
			}
			return l.falseOf(v)
		}
		what, ok := l.expr(search)
		if ok && search.typ().Kind == v.elem().Kind {
			return boolOf(what.In(v.expr))
		}
		return boolOf(listOf{v: v, hint: l.hint(v)}.quantify(l, "exists", true, func(x jval) cel.Bool { return l.equalValues(x, search) }))
	case schema.Any:
		what, ok := l.expr(search)
		x, ok2 := l.expr(in)
		if ok && ok2 {
			l.errs = true
			isText := kindOf(search.typ()) == schema.String
			if !isText {
				return boolOf(what.In(x))
			}
			inList := cel.CondBool(isList(x), what.In(x), l.failing(typeError("contains")))
			return boolOf(cel.CondBool(isString(x), x.Contains(what), inList))
		}
	}
	panic(l.unsupported("this use of contains"))
}

// falseOf is false, but an error where v, which has a size, is missing.
func (l *lowering) falseOf(v val) jval {
	if !l.reads(v, true) || v.certain() {
		return litOf(false)
	}
	return boolOf(v.expr.Size().Compare("<", cel.Int(0)))
}

// hasKey is: a map, which must be there, has the key. has() would be false, not
// an error, for a map that is missing.
func (l *lowering) hasKey(v val, name string) cel.Bool {
	child := v.settled().field(name)
	switch {
	case v.certain() && child.never:
		return cel.False()
	case v.certain() && child.certain():
		return cel.True()
	case v.certain():
		return child.guards[len(child.guards)-1].cond
	case v.kind() == schema.Object:
		if l.reads(v, true) {
			return cel.String(name).In(dyn(v.expr))
		}
		return v.field(name).found()
	}
	if l.reads(v, true) {
		in := cel.String(name).In(v.expr)
		if shaped := v.shaped(); !shaped.IsTrue() { // of anything but a map the keys are an error
			return cel.CondBool(shaped, in, l.failing(typeError("keys")))
		}
		return in
	}
	return v.field(name).found()
}

func (l *lowering) literalContains(in any, search jval) jval {
	switch in := in.(type) {
	case []any:
		if search.form == litForm {
			for _, item := range in {
				if sameLiteral(item, search.lit) {
					return litOf(true)
				}
			}
			return litOf(false)
		}
		var alts []cel.Bool
		if v, ok := l.expr(search); ok && allStrings(in) && kindOf(search.typ()) == schema.String {
			list, _ := l.literalTree(in)
			return boolOf(v.In(list))
		}
		for _, item := range in {
			alts = append(alts, l.equal(search, litOf(item)))
		}
		return boolOf(cel.Or(alts...))
	case string:
		if s, ok := search.lit.(string); ok && search.form == litForm {
			return litOf(wildMatch("*"+regexp.QuoteMeta(s)+"*", in) || containsText(in, s))
		}
		if v, ok := l.expr(search); ok && kindOf(search.typ()) == schema.String {
			return boolOf(cel.String(in).Contains(v))
		}
	case nil:
		return typeError("contains")
	}
	panic(l.unsupported("this use of contains"))
}

func allStrings(vs []any) bool {
	for _, v := range vs {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return true
}

// length is the number of elements, entries or characters.
func (l *lowering) length(j jval) jval {
	switch j.form {
	case litForm:
		switch v := j.lit.(type) {
		case string:
			return litOf(float64(len([]rune(v))))
		case []any:
			return litOf(float64(len(v)))
		case map[string]any:
			return litOf(float64(len(v)))
		}
		return typeError("length")
	case imagesForm:
		return l.imageCount(j.images)
	case imageForm:
		panic(l.unsupported("the length of an image"))
	case errorForm:
		return j
	case streamForm:
		return intOf(j.s.count(l, true))
	case multiForm:
		return litOf(float64(len(j.multi)))
	case hashForm:
		return litOf(float64(len(j.multi)))
	}
	switch j.v.kind() {
	case schema.String, schema.List, schema.Map:
		l.errs = l.errs || !j.v.certain()
		return intOf(j.v.expr.Size())
	case schema.Object:
		return intOf(dyn(j.v.expr).Size())
	case schema.Any:
		x, _ := l.expr(j)
		l.errs = true
		return intOf(x.Size())
	}
	return typeError("length")
}

func (l *lowering) keysOf(j jval, values bool) jval {
	switch j.form {
	case imagesForm, imageForm:
		panic(l.unsupported("the keys and values of images"))
	case errorForm:
		return j
	case litForm:
		m, ok := j.lit.(map[string]any)
		if !ok {
			return typeError("keys")
		}
		var out []any
		for _, k := range sortedKeys(m) {
			if values {
				out = append(out, m[k])
			} else {
				out = append(out, k)
			}
		}
		return litOf(out)
	case valForm:
		switch j.v.kind() {
		case schema.Map, schema.Object:
			return streamOf(entries{v: j.v, values: values, given: true})
		case schema.Any:
			w := j.v
			w.guards = append(w.guards[:len(w.guards):len(w.guards)], guard{cond: isMap(w.expr), shape: true})
			w.typ, w.opt = mapOf(anyType()), cel.Value{}
			return streamOf(entries{v: w, values: values, given: true})
		}
	}
	return typeError("keys")
}

// strings2 is f of two strings; an argument that is no string is an error.
func (l *lowering) strings2(a, b jval, f func(a, b cel.Value) jval) jval {
	return a.over(func(a jval) jval {
		return b.over(func(b jval) jval {
			x, ok := l.stringArg(a)
			y, ok2 := l.stringArg(b)
			if !ok || !ok2 {
				return typeError("argument")
			}
			return f(x, y)
		})
	})
}

// stringArg is an argument that must be a string: an error at run time where it
// may be something else, and false where it cannot be one.
func (l *lowering) stringArg(j jval) (cel.Value, bool) {
	switch {
	case j.form == litForm:
		s, ok := j.lit.(string)
		return cel.String(s), ok
	case j.form == errorForm:
		return cel.Value{}, false
	}
	v, ok := l.expr(j)
	if !ok {
		return v, false
	}
	switch kindOf(j.typ()) {
	case schema.String:
		return v, true
	case schema.Any, schema.IntOrString:
		l.errs = true
		return v, true
	}
	return v, false
}

// stringOrNumberArg is for the functions that take numbers as text too.
func (l *lowering) stringOrNumberArg(j jval) (cel.Value, bool) {
	if f, ok := floatOf(j.lit); ok && j.form == litForm {
		return cel.String(numberText(f)), true
	}
	switch kindOf(j.typ()) {
	case schema.Int:
		v, ok := l.expr(j)
		return cel.Func("string", v), ok
	case schema.IntOrString:
		v, ok := l.expr(j)
		return cel.Func("string", v), ok
	}
	return l.stringArg(j)
}

func (l *lowering) changeCase(name string, a jval) jval {
	l.note(diag.ASCIICase, "%s changes only ASCII letters here", name)
	method := map[string]string{"to_upper": "upperAscii", "to_lower": "lowerAscii"}[name]
	return a.over(func(j jval) jval {
		if s, ok := j.lit.(string); ok && j.form == litForm {
			return litOf(changeCase(name, s))
		}
		x, ok := l.stringArg(j)
		if !ok {
			return typeError(name)
		}
		return stringOf(x.Call(method))
	})
}

// equalFold compares with a literal through a regular expression, whose folding
// is the one of Go's EqualFold.
func (l *lowering) equalFold(a, b jval) jval {
	if a.form == litForm {
		a, b = b, a
	}
	want, ok := b.lit.(string)
	if b.form != litForm || !ok {
		panic(l.refuse(diag.NoFunction, "the function equal_fold of two variables has no native form"))
	}
	return a.over(func(a jval) jval {
		x, ok := l.stringArg(a)
		if !ok {
			return typeError("equal_fold")
		}
		return boolOf(x.Matches("(?i)^" + regexp.QuoteMeta(want) + "$"))
	})
}

func (l *lowering) regexMatch(re, text jval) jval {
	want, ok := re.lit.(string)
	if re.form != litForm || !ok {
		panic(l.refuse(diag.NoFunction, "regex_match with an expression that is a variable has no native form"))
	}
	if _, err := regexp.Compile(want); err != nil {
		return typeError("regex")
	}
	return text.over(func(j jval) jval {
		if s, ok := j.lit.(string); ok && j.form == litForm {
			return litOf(regexp.MustCompile(want).MatchString(s))
		}
		x, ok := l.stringOrNumberArg(j)
		if !ok {
			return typeError("regex_match")
		}
		return boolOf(x.Matches(want))
	})
}

func (l *lowering) patternMatch(p, text jval) jval {
	want, ok := p.lit.(string)
	if p.form != litForm || !ok {
		panic(l.refuse(diag.NoFunction, "pattern_match with a pattern that is a variable has no native form"))
	}
	return text.over(func(j jval) jval {
		x, ok := l.stringOrNumberArg(j)
		if !ok {
			return typeError("pattern_match")
		}
		return boolOf(wild(x, want))
	})
}

func (l *lowering) replaceAll(text, from, to jval) jval {
	f, ok := l.stringArg(from)
	t, ok2 := l.stringArg(to)
	if !ok || !ok2 {
		return typeError("replace_all")
	}
	return text.over(func(j jval) jval {
		x, ok := l.stringArg(j)
		if !ok {
			return typeError("replace_all")
		}
		return stringOf(x.Call("replace", f, t))
	})
}

func (l *lowering) trimPrefix(text, prefix jval) jval {
	p, ok := l.stringArg(prefix)
	if !ok {
		return typeError("trim_prefix")
	}
	return text.over(func(j jval) jval {
		x, ok := l.stringArg(j)
		if !ok {
			return typeError("trim_prefix")
		}
		return stringOf(cel.Cond(x.StartsWith(p), x.Call("substring", p.Size()), x))
	})
}

func (l *lowering) joined(glue, list jval) jval {
	g, ok := l.stringArg(glue)
	if list.form == multiForm {
		texts := make([]cel.Value, len(list.multi))
		for i, part := range list.multi { // null is no text either
			x, isText := l.stringArg(part)
			texts[i], ok = x, ok && isText
		}
		if !ok {
			return typeError("join")
		}
		if slices.ContainsFunc(list.multi, func(part jval) bool { return kindOf(part.typ()) != schema.String }) {
			for i := range texts { // a list has items of one type
				texts[i] = dyn(texts[i])
			}
		}
		return stringOf(cel.List(texts...).Call("join", g))
	}
	v, ok2 := l.expr(list)
	if !ok || !ok2 || kindOf(list.typ()) == schema.String {
		return typeError("join")
	}
	return stringOf(v.Call("join", g))
}

func (l *lowering) toArray(j jval) jval {
	switch j.form {
	case streamForm:
		if null := j.s.null(); !null.IsFalse() {
			return streamOf(branch{null, concat{single{litOf(nil)}}, orEmpty{j.s}}) // [null]
		}
		return j
	case multiForm:
		return j
	case litForm:
		if _, ok := j.lit.([]any); ok {
			return j
		}
		return litOf([]any{j.lit})
	case valForm:
		if j.v.kind() == schema.List {
			return j
		}
		if j.v.certain() && !j.v.dynamic() {
			return streamOf(concat{single{j}})
		}
	}
	panic(l.unsupported("this use of to_array"))
}

func (l *lowering) toString(j jval) jval {
	if j.form == litForm {
		return litOf(literalText(j.lit))
	}
	return stringOf(l.text(j))
}

// notNull is the first argument that is neither missing nor null.
func (l *lowering) notNull(e *jmespath.Expr, cur *jval) jval {
	out := litOf(nil)
	for i := len(e.Args) - 1; i >= 0; i-- {
		j := l.eval(e.Args[i], cur).softly()
		out = choice(l.present(j), j.settled(), out)
	}
	return out
}

// sorted keeps a list as it is where CEL cannot sort yet: two sorted lists are
// then compared by what they hold.
func (l *lowering) sorted(j jval) jval {
	return j.over(func(j jval) jval {
		if list, ok := j.lit.([]any); ok && j.form == litForm {
			return litOf(sortLiterals(list))
		}
		s := l.elements2(j)
		if s == nil {
			return typeError("sort")
		}
		return choice(s.null(), typeError("sort"), streamOf(sortedStream{s}))
	})
}

func (l *lowering) typeName(j jval) jval {
	switch kindOf(j.typ()) {
	case schema.Bool, schema.Int, schema.Number, schema.String, schema.List, schema.Map, schema.Object:
		name := map[schema.Kind]string{schema.Bool: "boolean", schema.Int: "number", schema.Number: "number",
			schema.String: "string", schema.List: "array", schema.Map: "object", schema.Object: "object"}[kindOf(j.typ())]
		return choice(l.present(j), litOf(name), litOf("null"))
	}
	if j.form == litForm && j.lit == nil {
		return litOf("null")
	}
	panic(l.unsupported("the type of a value that is only known at run time"))
}

func (l *lowering) toNumber(j jval) jval {
	if j.form == litForm {
		if f, ok := parseNumber(j.lit); ok {
			return litOf(f)
		}
		return litOf(nil)
	}
	v, ok := l.expr(j.settled())
	if !ok {
		return litOf(nil)
	}
	found := l.present(j)
	switch kindOf(j.typ()) {
	case schema.Int, schema.Number:
		return j
	case schema.String:
		number := valOf(at(dyn(cel.Func("double", v)), &schema.Type{Kind: schema.Number}))
		return choice(cel.And(found, v.Matches(decimalText)), number, litOf(nil))
	}
	panic(l.unsupported("to_number of a value whose type is not known"))
}

func (l *lowering) extreme(name string, list jval) jval {
	v, ok := l.expr(list)
	elem := kindOf(list.typ().Elem)
	if !ok || elem != schema.Int && elem != schema.String {
		panic(l.refuse(diag.NoFunction, "the function %s of this list has no native form", name))
	}
	value := valOf(at(v.Call(name), list.typ().Elem))
	return choice(v.Size().Compare(">", cel.Int(0)), value, litOf(nil))
}
