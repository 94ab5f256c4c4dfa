package jmespath

import "strings"

// A Type is a set of JSON types that an argument or a result may have.
type Type uint16

// The types. NumberList and StringList are lists of nothing else; ExprType is an
// &expression.
const (
	NullType Type = 1 << iota
	BoolType
	NumberType
	StringType
	ListType
	ObjectType
	NumberList
	StringList
	ExprType

	AnyType = NullType | BoolType | NumberType | StringType | ListType | ObjectType
	text    = StringType | NumberType
)

// String lists the names of the types, joined by "or".
func (t Type) String() string {
	if t&AnyType == AnyType {
		return "any value"
	}
	names := [...]string{"null", "boolean", "number", "string", "list", "object", "list of numbers", "list of strings", "&expression"}
	var in []string
	for i, name := range names {
		if t&(1<<i) != 0 {
			in = append(in, name)
		}
	}
	return strings.Join(in, " or ")
}

// A Function is what can be known of a function without calling it.
type Function struct {
	Name   string
	Params []Type
	// Variadic functions take the last parameter any number of times more.
	Variadic bool
	// Lax functions take any arguments and ignore them.
	Lax    bool
	Result Type
}

// Accepts tells whether the function can be called with n arguments.
func (f Function) Accepts(n int) bool {
	return f.Lax || n == len(f.Params) || f.Variadic && n > len(f.Params)
}

// Param is the type of argument i; AnyType behind the last.
func (f Function) Param(i int) Type {
	switch {
	case i < len(f.Params):
		return f.Params[i]
	case f.Variadic:
		return f.Params[len(f.Params)-1]
	}
	return AnyType
}

// LookupFunction finds a function by its name.
func LookupFunction(name string) (Function, bool) {
	for _, f := range Functions() {
		if f.Name == name {
			return f, true
		}
	}
	return Function{}, false
}

// Functions is every function of the language, those of JMESPath first, each
// half by name. Kyverno's sum takes the place of JMESPath's own.
func Functions() []Function {
	return append(builtin(), added()...)
}

func function(name string, result Type, params ...Type) Function {
	return Function{Name: name, Params: params, Result: result}
}

func variadic(name string, result Type, params ...Type) Function {
	return Function{Name: name, Params: params, Result: result, Variadic: true}
}

func lax(name string, result Type) Function {
	return Function{Name: name, Result: result, Lax: true}
}

func builtin() []Function {
	const (
		scalar = NumberType | StringType
		lists  = NumberList | StringList
	)
	return []Function{
		function("abs", NumberType, NumberType),
		function("avg", NumberType, NumberList),
		function("ceil", NumberType, NumberType),
		function("contains", BoolType, ListType|StringType, AnyType),
		function("ends_with", BoolType, StringType, StringType),
		function("floor", NumberType, NumberType),
		function("join", StringType, StringType, StringList),
		function("keys", ListType, ObjectType),
		function("length", NumberType, StringType|ListType|ObjectType),
		function("map", ListType, ExprType, ListType),
		function("max", scalar|NullType, lists),
		function("max_by", AnyType, ListType, ExprType),
		variadic("merge", ObjectType, ObjectType),
		function("min", scalar|NullType, lists),
		function("min_by", AnyType, ListType, ExprType),
		variadic("not_null", AnyType, AnyType),
		function("reverse", ListType|StringType, ListType|StringType),
		function("sort", ListType, lists),
		function("sort_by", ListType, ListType, ExprType),
		function("starts_with", BoolType, StringType, StringType),
		function("to_array", ListType, AnyType),
		function("to_number", NumberType|NullType, AnyType),
		function("to_string", StringType, AnyType),
		function("type", StringType, AnyType),
		function("values", ListType, ObjectType),
	}
}

func added() []Function {
	const s, n = StringType, NumberType
	return []Function{
		function("add", s|n, AnyType, AnyType),
		function("base64_decode", s, s),
		function("base64_encode", s, s),
		function("compare", n, s, s),
		function("divide", s|n, AnyType, AnyType),
		function("equal_fold", BoolType, s, s),
		function("image_normalize", s, s),
		function("is_external_url", BoolType, s),
		function("items", ListType, ObjectType|ListType, s, s),
		function("label_match", BoolType, ObjectType, ObjectType),
		function("lookup", AnyType, ObjectType|ListType, s|n),
		function("md5", s, s),
		function("modulo", s|n, AnyType, AnyType),
		function("multiply", s|n, AnyType, AnyType),
		function("object_from_lists", ObjectType, ListType, ListType),
		function("parse_json", AnyType, s),
		function("parse_yaml", AnyType, s),
		function("path_canonicalize", s, s),
		function("pattern_match", BoolType, s, text),
		function("random", s, s),
		function("regex_match", BoolType, s, text),
		function("regex_replace_all", s, s, text, text),
		function("regex_replace_all_literal", s, s, text, text),
		function("replace", s, s, s, s, n),
		function("replace_all", s, s, s, s),
		function("round", n, n, n),
		function("semver_compare", BoolType, s, s),
		function("sha1", s, s),
		function("sha256", s, s),
		function("split", ListType, s, s),
		function("subtract", s|n, AnyType, AnyType),
		function("sum", AnyType, ListType),
		function("time_add", s, s, s),
		function("time_after", BoolType, s, s),
		function("time_before", BoolType, s, s),
		function("time_between", BoolType, s, s, s),
		function("time_diff", s, s, s),
		lax("time_now", s),
		lax("time_now_utc", s),
		function("time_parse", s, s, s),
		function("time_since", s, s, s, s),
		function("time_to_cron", s, s),
		function("time_truncate", s, s, s),
		function("time_utc", s, s),
		function("to_boolean", BoolType, s),
		function("to_lower", s, s),
		function("to_upper", s, s),
		function("trim", s, s, s),
		function("trim_prefix", s, s, s),
		function("truncate", s, s, n),
		function("x509_decode", ObjectType, s),
	}
}
