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

// Signature is what is known of f; of FuncUnknown, nothing.
func (f Func) Signature() Function {
	if f <= lastBuiltin {
		return builtin(f)
	}
	return added(f)
}

func function(result Type, params ...Type) Function {
	return Function{Params: params, Result: result}
}

func variadic(result Type, params ...Type) Function {
	return Function{Params: params, Result: result, Variadic: true}
}

func lax(result Type) Function { return Function{Result: result, Lax: true} }

// builtin is the functions of JMESPath.
func builtin(f Func) Function {
	const (
		scalar = NumberType | StringType
		lists  = NumberList | StringList
	)
	switch f {
	case FuncAbs:
		return function(NumberType, NumberType)
	case FuncAvg:
		return function(NumberType, NumberList)
	case FuncCeil:
		return function(NumberType, NumberType)
	case FuncContains:
		return function(BoolType, ListType|StringType, AnyType)
	case FuncEndsWith:
		return function(BoolType, StringType, StringType)
	case FuncFloor:
		return function(NumberType, NumberType)
	case FuncJoin:
		return function(StringType, StringType, StringList)
	case FuncKeys:
		return function(ListType, ObjectType)
	case FuncLength:
		return function(NumberType, StringType|ListType|ObjectType)
	case FuncMap:
		return function(ListType, ExprType, ListType)
	case FuncMax:
		return function(scalar|NullType, lists)
	case FuncMaxBy:
		return function(AnyType, ListType, ExprType)
	case FuncMerge:
		return variadic(ObjectType, ObjectType)
	case FuncMin:
		return function(scalar|NullType, lists)
	case FuncMinBy:
		return function(AnyType, ListType, ExprType)
	case FuncNotNull:
		return variadic(AnyType, AnyType)
	case FuncReverse:
		return function(ListType|StringType, ListType|StringType)
	case FuncSort:
		return function(ListType, lists)
	case FuncSortBy:
		return function(ListType, ListType, ExprType)
	case FuncStartsWith:
		return function(BoolType, StringType, StringType)
	case FuncToArray:
		return function(ListType, AnyType)
	case FuncToNumber:
		return function(NumberType|NullType, AnyType)
	case FuncToString:
		return function(StringType, AnyType)
	case FuncType:
		return function(StringType, AnyType)
	case FuncValues:
		return function(ListType, ObjectType)
	}
	return Function{}
}

// added is the functions that Kyverno adds.
func added(f Func) Function {
	const s, n = StringType, NumberType
	switch f {
	case FuncAdd:
		return function(s|n, AnyType, AnyType)
	case FuncBase64Decode:
		return function(s, s)
	case FuncBase64Encode:
		return function(s, s)
	case FuncCompare:
		return function(n, s, s)
	case FuncDivide:
		return function(s|n, AnyType, AnyType)
	case FuncEqualFold:
		return function(BoolType, s, s)
	case FuncImageNormalize:
		return function(s, s)
	case FuncIsExternalURL:
		return function(BoolType, s)
	case FuncItems:
		return function(ListType, ObjectType|ListType, s, s)
	case FuncLabelMatch:
		return function(BoolType, ObjectType, ObjectType)
	case FuncLookup:
		return function(AnyType, ObjectType|ListType, s|n)
	case FuncMD5:
		return function(s, s)
	case FuncModulo:
		return function(s|n, AnyType, AnyType)
	case FuncMultiply:
		return function(s|n, AnyType, AnyType)
	case FuncObjectFromLists:
		return function(ObjectType, ListType, ListType)
	case FuncParseJSON:
		return function(AnyType, s)
	case FuncParseYAML:
		return function(AnyType, s)
	case FuncPathCanonicalize:
		return function(s, s)
	case FuncPatternMatch:
		return function(BoolType, s, text)
	case FuncRandom:
		return function(s, s)
	case FuncRegexMatch:
		return function(BoolType, s, text)
	case FuncRegexReplaceAll:
		return function(s, s, text, text)
	case FuncRegexReplaceAllLiteral:
		return function(s, s, text, text)
	case FuncReplace:
		return function(s, s, s, s, n)
	case FuncReplaceAll:
		return function(s, s, s, s)
	case FuncRound:
		return function(n, n, n)
	case FuncSemverCompare:
		return function(BoolType, s, s)
	case FuncSHA1:
		return function(s, s)
	case FuncSHA256:
		return function(s, s)
	case FuncSplit:
		return function(ListType, s, s)
	case FuncSubtract:
		return function(s|n, AnyType, AnyType)
	case FuncSum:
		return function(AnyType, ListType)
	case FuncTimeAdd:
		return function(s, s, s)
	case FuncTimeAfter:
		return function(BoolType, s, s)
	case FuncTimeBefore:
		return function(BoolType, s, s)
	case FuncTimeBetween:
		return function(BoolType, s, s, s)
	case FuncTimeDiff:
		return function(s, s, s)
	case FuncTimeNow:
		return lax(s)
	case FuncTimeNowUTC:
		return lax(s)
	case FuncTimeParse:
		return function(s, s, s)
	case FuncTimeSince:
		return function(s, s, s, s)
	case FuncTimeToCron:
		return function(s, s)
	case FuncTimeTruncate:
		return function(s, s, s)
	case FuncTimeUTC:
		return function(s, s)
	case FuncToBoolean:
		return function(BoolType, s)
	case FuncToLower:
		return function(s, s)
	case FuncToUpper:
		return function(s, s)
	case FuncTrim:
		return function(s, s, s)
	case FuncTrimPrefix:
		return function(s, s, s)
	case FuncTruncate:
		return function(s, s, n)
	case FuncX509Decode:
		return function(ObjectType, s)
	}
	return Function{}
}
