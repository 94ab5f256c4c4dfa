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
	if f, ok := builtin(name); ok {
		return f, true
	}
	return added(name)
}

// Functions is every function of the language by name, those of JMESPath first,
// then those that Kyverno adds. Its sum takes the place of JMESPath's own.
func Functions() []Function {
	var list []Function
	for _, name := range []string{
		"abs", "avg", "ceil", "contains", "ends_with", "floor", "join", "keys", "length", "map", "max",
		"max_by", "merge", "min", "min_by", "not_null", "reverse", "sort", "sort_by", "starts_with",
		"to_array", "to_number", "to_string", "type", "values",

		"add", "base64_decode", "base64_encode", "compare", "divide", "equal_fold", "image_normalize",
		"is_external_url", "items", "label_match", "lookup", "md5", "modulo", "multiply",
		"object_from_lists", "parse_json", "parse_yaml", "path_canonicalize", "pattern_match", "random",
		"regex_match", "regex_replace_all", "regex_replace_all_literal", "replace", "replace_all",
		"round", "semver_compare", "sha1", "sha256", "split", "subtract", "sum", "time_add",
		"time_after", "time_before", "time_between", "time_diff", "time_now", "time_now_utc",
		"time_parse", "time_since", "time_to_cron", "time_truncate", "time_utc", "to_boolean",
		"to_lower", "to_upper", "trim", "trim_prefix", "truncate", "x509_decode",
	} {
		f, _ := LookupFunction(name)
		list = append(list, f)
	}
	return list
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

func builtin(name string) (Function, bool) {
	const (
		scalar = NumberType | StringType
		lists  = NumberList | StringList
	)
	switch name {
	case "abs":
		return function(name, NumberType, NumberType), true
	case "avg":
		return function(name, NumberType, NumberList), true
	case "ceil":
		return function(name, NumberType, NumberType), true
	case "contains":
		return function(name, BoolType, ListType|StringType, AnyType), true
	case "ends_with":
		return function(name, BoolType, StringType, StringType), true
	case "floor":
		return function(name, NumberType, NumberType), true
	case "join":
		return function(name, StringType, StringType, StringList), true
	case "keys":
		return function(name, ListType, ObjectType), true
	case "length":
		return function(name, NumberType, StringType|ListType|ObjectType), true
	case "map":
		return function(name, ListType, ExprType, ListType), true
	case "max":
		return function(name, scalar|NullType, lists), true
	case "max_by":
		return function(name, AnyType, ListType, ExprType), true
	case "merge":
		return variadic(name, ObjectType, ObjectType), true
	case "min":
		return function(name, scalar|NullType, lists), true
	case "min_by":
		return function(name, AnyType, ListType, ExprType), true
	case "not_null":
		return variadic(name, AnyType, AnyType), true
	case "reverse":
		return function(name, ListType|StringType, ListType|StringType), true
	case "sort":
		return function(name, ListType, lists), true
	case "sort_by":
		return function(name, ListType, ListType, ExprType), true
	case "starts_with":
		return function(name, BoolType, StringType, StringType), true
	case "to_array":
		return function(name, ListType, AnyType), true
	case "to_number":
		return function(name, NumberType|NullType, AnyType), true
	case "to_string":
		return function(name, StringType, AnyType), true
	case "type":
		return function(name, StringType, AnyType), true
	case "values":
		return function(name, ListType, ObjectType), true
	}
	return Function{}, false
}

func added(name string) (Function, bool) {
	const s, n = StringType, NumberType
	switch name {
	case "add":
		return function(name, s|n, AnyType, AnyType), true
	case "base64_decode":
		return function(name, s, s), true
	case "base64_encode":
		return function(name, s, s), true
	case "compare":
		return function(name, n, s, s), true
	case "divide":
		return function(name, s|n, AnyType, AnyType), true
	case "equal_fold":
		return function(name, BoolType, s, s), true
	case "image_normalize":
		return function(name, s, s), true
	case "is_external_url":
		return function(name, BoolType, s), true
	case "items":
		return function(name, ListType, ObjectType|ListType, s, s), true
	case "label_match":
		return function(name, BoolType, ObjectType, ObjectType), true
	case "lookup":
		return function(name, AnyType, ObjectType|ListType, s|n), true
	case "md5":
		return function(name, s, s), true
	case "modulo":
		return function(name, s|n, AnyType, AnyType), true
	case "multiply":
		return function(name, s|n, AnyType, AnyType), true
	case "object_from_lists":
		return function(name, ObjectType, ListType, ListType), true
	case "parse_json":
		return function(name, AnyType, s), true
	case "parse_yaml":
		return function(name, AnyType, s), true
	case "path_canonicalize":
		return function(name, s, s), true
	case "pattern_match":
		return function(name, BoolType, s, text), true
	case "random":
		return function(name, s, s), true
	case "regex_match":
		return function(name, BoolType, s, text), true
	case "regex_replace_all":
		return function(name, s, s, text, text), true
	case "regex_replace_all_literal":
		return function(name, s, s, text, text), true
	case "replace":
		return function(name, s, s, s, s, n), true
	case "replace_all":
		return function(name, s, s, s, s), true
	case "round":
		return function(name, n, n, n), true
	case "semver_compare":
		return function(name, BoolType, s, s), true
	case "sha1":
		return function(name, s, s), true
	case "sha256":
		return function(name, s, s), true
	case "split":
		return function(name, ListType, s, s), true
	case "subtract":
		return function(name, s|n, AnyType, AnyType), true
	case "sum":
		return function(name, AnyType, ListType), true
	case "time_add":
		return function(name, s, s, s), true
	case "time_after":
		return function(name, BoolType, s, s), true
	case "time_before":
		return function(name, BoolType, s, s), true
	case "time_between":
		return function(name, BoolType, s, s, s), true
	case "time_diff":
		return function(name, s, s, s), true
	case "time_now":
		return lax(name, s), true
	case "time_now_utc":
		return lax(name, s), true
	case "time_parse":
		return function(name, s, s, s), true
	case "time_since":
		return function(name, s, s, s, s), true
	case "time_to_cron":
		return function(name, s, s), true
	case "time_truncate":
		return function(name, s, s, s), true
	case "time_utc":
		return function(name, s, s), true
	case "to_boolean":
		return function(name, BoolType, s), true
	case "to_lower":
		return function(name, s, s), true
	case "to_upper":
		return function(name, s, s), true
	case "trim":
		return function(name, s, s, s), true
	case "trim_prefix":
		return function(name, s, s, s), true
	case "truncate":
		return function(name, s, s, n), true
	case "x509_decode":
		return function(name, ObjectType, s), true
	}
	return Function{}, false
}
