package verify

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/schema"
)

// path walks from a type down to some place and gives the expression for it,
// from the type on, and the type there.
func (m *ruleMaker) path(t *schema.Type, depth int) (string, *schema.Type) {
	var b strings.Builder
	top := t == m.typ
	for range depth {
		switch t.Kind {
		case schema.Object:
			names := m.choosable(t, top && !m.inLoop)
			if len(names) == 0 {
				return b.String(), t
			}
			name := one(m.choice, names...)
			t = m.fieldType(t, name)
			b.WriteString("." + identifierOf(name))
		case schema.Map:
			b.WriteString("." + identifierOf(m.word("app", "tier", "app.kubernetes.io/name", "cpu", "memory")))
			t = t.Elem
		case schema.List:
			switch m.of(12) {
			case 0, 1, 2:
				b.WriteString("[]")
			case 3, 4, 5:
				b.WriteString("[*]")
			case 6, 7:
				b.WriteString("[0]")
			case 8:
				b.WriteString("[-1]")
			case 9:
				b.WriteString(m.word("[0:1]", "[1:]", "[:2]", "[::-1]", "[::2]"))
			default:
				b.WriteString("[?" + m.filter(t.Elem) + "]")
			}
			t = t.Elem
		default:
			return b.String(), t
		}
		top = false
		if b.Len() > 0 && m.percent(8) {
			break
		}
	}
	return b.String(), t
}

func identifierOf(name string) string {
	if identifier.FindString(name) == name {
		return name
	}
	return `"` + name + `"`
}

// filter is the condition of a filter on elements of a type.
func (m *ruleMaker) filter(t *schema.Type) string {
	path, at := m.path(t, 2)
	path = strings.TrimPrefix(path, ".")
	if path == "" {
		path = "@"
	}
	switch m.of(6) {
	case 4:
		return path
	case 5:
		return "!" + path
	}
	if at.Kind == schema.String {
		switch m.of(5) {
		case 3:
			return fmt.Sprintf("starts_with(%s, '%s')", path, m.word("a", "nginx", ""))
		case 4:
			return fmt.Sprintf("contains(%s, '%s')", path, m.word("a", ":", "b"))
		}
		return path + m.word(" == ", " != ") + m.literal(at)
	}
	return path + m.word(" == ", " != ", " > ", " <= ") + m.literal(at)
}

// literal is a literal near a type.
func (m *ruleMaker) literal(t *schema.Type) string {
	switch t.Kind {
	case schema.Bool:
		return m.word("`true`", "`false`", "'true'")
	case schema.Int, schema.Number:
		return m.word("`0`", "`5`", "`1`", "`100`", "'5'", "`null`")
	}
	return m.word("'abc'", "'a'", "''", "'web'", "`null`", "'nginx:latest'", "`5`", "`[]`", "`\"abc\"`", "`true`", "`{}`", "`[\"abc\"]`", "'1Gi'", "'5'")
}

// listPath is the path to a list of the object, and the type of its elements.
func (m *ruleMaker) listPath(t *schema.Type) (string, *schema.Type) {
	for range 12 {
		var b strings.Builder
		at := t
		for step := range 6 {
			if at.Kind == schema.List {
				return b.String(), at.Elem
			}
			if at.Kind != schema.Object {
				break
			}
			names := m.choosable(at, step == 0 && !m.inLoop)
			if len(names) == 0 {
				break
			}
			name := one(m.choice, names...)
			at = m.fieldType(at, name)
			b.WriteString("." + identifierOf(name))
		}
	}
	path, at := m.path(t, 3)
	return path, at
}

// place is an expression for a place of the request, and its type.
func (m *ruleMaker) place() (string, *schema.Type) {
	text := &schema.Type{Kind: schema.String}
	switch m.of(12) {
	case 10:
		return m.word("request.operation", "request.namespace", "request.name", "request.userInfo.username", "request.userInfo.groups", "request.object.metadata.name",
			"request.kind.kind", "serviceAccountName", "serviceAccountNamespace", "request.subResource", "request.dryRun", "request.userInfo.uid", "request.roles", "request.object.kind", "request.object.apiVersion", "request.resource.resource"), text
	case 11:
		if m.kind == "Pod" && m.percent(30) {
			return m.word("images.containers.*.registry", "images.containers.*.tag", "images.[initContainers, containers][].*.name[]", "images.containers.web.digest", "images.containers.*.path", "images.containers.*.reference"), &schema.Type{Kind: schema.List, Elem: text}
		}
		if m.inLoop {
			return m.word("elementIndex", "element", "element0", "elementIndex0", "request.object.metadata.name"), text
		}
		path, t := m.path(m.typ, 6)
		return "request.oldObject" + path, t
	}
	path, t := m.path(m.typ, 6)
	return m.root + path, t
}

// expression is a JMESPath expression.
func (m *ruleMaker) expression(depth int) string {
	if len(m.vars) > 0 && m.percent(15) {
		return one(m.choice, m.vars...)
	}
	place, t := m.place()
	if depth <= 0 || m.of(3) == 0 {
		return place
	}
	switch m.of(12) {
	case 0, 1, 2:
		return place + " || " + m.literal(t)
	case 3:
		return m.expression(depth-1) + m.word(" || ", " && ") + m.expression(depth-1)
	case 4:
		return m.word("!", "") + "(" + m.expression(depth-1) + ")"
	case 5:
		return place + m.word(" == ", " != ", " > ", " <= ", " < ", " >= ") + m.literal(t)
	case 6:
		return m.expression(depth-1) + " | " + m.tail(t)
	case 7:
		if t.Kind == schema.Object {
			names := m.choosable(t, false)
			if len(names) > 0 {
				a, b := identifierOf(one(m.choice, names...)), identifierOf(one(m.choice, names...))
				return place + one(m.choice, fmt.Sprintf(".[%s, %s]", a, b), fmt.Sprintf(".{a: %s, b: %s}", a, b), ".*", fmt.Sprintf(".{a: %s}.a", a), ".*[]")
			}
		}
	}
	return m.call(place, t, depth)
}

// tail is what follows a pipe.
func (m *ruleMaker) tail(t *schema.Type) string {
	return one(m.choice, "@", "length(@)", "[0]", "to_string(@)", "type(@)", "not_null(@, 'abc')", "@ == "+m.literal(t), "[]", "sort(@)", "keys(@)", "[*]", "{a: @}", "[@]", "a", "reverse(@)", "length(@ || `[]`)", "to_array(@)", "values(@)")
}

// call calls a function on something that suits it more or less.
func (m *ruleMaker) call(x string, t *schema.Type, depth int) string {
	if m.percent(30) {
		x = x + " || " + m.literal(t)
	}
	lit := func() string { return m.literal(&schema.Type{Kind: schema.String}) }
	switch t.Kind {
	case schema.List:
		return one(m.choice, "length("+x+")", "contains("+x+", "+m.literal(t.Elem)+")", "sort("+x+")", "join('-', "+x+")", "reverse("+x+")", "max("+x+")", "min("+x+")", "sum("+x+")",
			"to_string("+x+")", "not_null("+x+", `[]`)", "map(&to_string(@), "+x+")", "sort_by("+x+", &name)", "max_by("+x+", &name).name", "type("+x+")", "length("+x+"[?@ == "+m.literal(t.Elem)+"])", "to_array("+x+")", "avg("+x+")", "lookup("+x+", `0`)")
	case schema.Object, schema.Map:
		return one(m.choice, "keys("+x+")", "values("+x+")", "length("+x+")", "items("+x+", 'key', 'value')", "items("+x+", 'key', 'value')[*].key", "contains(keys("+x+"), 'app')", "merge("+x+", `{\"app\": \"z\"}`)", "to_string("+x+")",
			"lookup("+x+", 'app')", "label_match(`{\"app\": \"abc\"}`, "+x+")", "type("+x+")", "not_null("+x+", `{}`)", "items("+x+", 'k', 'v')[?v == 'abc'].k", "items("+x+", 'k', 'v')[?starts_with(k, 'a')]", "keys("+x+")[?starts_with(@, 'a')]", "length(keys("+x+"))", "sort(keys("+x+"))[0]")
	case schema.Int, schema.Number, schema.IntOrString:
		return one(m.choice, "to_string("+x+")", "add("+x+", `1`)", "subtract("+x+", `1`)", "multiply("+x+", `2`)", "divide("+x+", `2`)", "modulo("+x+", `2`)", "abs("+x+")", "ceil("+x+")", "floor("+x+")", "max([`1`, "+x+"])",
			"round("+x+", `1`)", "type("+x+")", "to_number("+x+")", "sum([`1`, "+x+"])", "not_null("+x+", `0`)")
	}
	if t.Format == schema.Quantity || t.Format == schema.Duration {
		return one(m.choice, "add("+x+", '1Gi')", "subtract("+x+", '1')", "divide("+x+", '500m')", "multiply("+x+", `2`)", "modulo("+x+", '2')", "to_number("+x+")", "to_string("+x+")", "divide("+x+", `2`)", "add("+x+", '1h')")
	}
	return one(m.choice, "length("+x+")", "starts_with("+x+", 'a')", "ends_with("+x+", 'c')", "contains("+x+", "+lit()+")", "to_upper("+x+")", "to_lower("+x+")", "split("+x+", '-')", "split("+x+", ':')[0]", "split("+x+", ':')[-1]", "split("+x+", '/')[-1]", "replace_all("+x+", 'a', 'b')", "replace("+x+", 'a', 'b', `1`)",
		"regex_match('^a.*', "+x+")", "regex_match('[0-9]+', "+x+")", "pattern_match('a*', "+x+")", "trim("+x+", 'a')", "truncate("+x+", `2`)", "to_number("+x+")", "to_string("+x+")", "equal_fold("+x+", 'ABC')", "semver_compare("+x+", '>=1.0.0')", "parse_json("+x+")", "base64_encode("+x+")", "base64_decode("+x+")",
		"regex_replace_all('[a-b]', "+x+", 'x$0')", "regex_replace_all_literal('b', "+x+", 'x')", "to_boolean("+x+")", "trim_prefix("+x+", 'a')", "not_null("+x+", 'abc')", "type("+x+")", "reverse("+x+")", "compare("+x+", 'abc')", "join('-', ["+x+", 'a'])", "parse_yaml("+x+")", "path_canonicalize("+x+")", "time_after("+x+", '2024-01-01T00:00:00Z')", "divide("+x+", '1')", "image_normalize("+x+")", "sha256("+x+")", "to_array("+x+")[0]",
		"length(split("+x+", '-'))", "contains(['abc', 'web'], "+x+")", "add("+x+", '1')", "time_add("+x+", '1h')", "object_from_lists(['a'], ["+x+"])", "max(['b', "+x+"])", "[ "+x+", 'a' ]", "{a: "+x+"}")
}
