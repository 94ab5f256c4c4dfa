package cel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The functions, methods and macros of CEL, each with the release of Kubernetes
// that a policy needs to call it.

// FirstRelease is the first release on which a new policy may call the function, method
// or macro name with args arguments, a receiver not counted.
//
// A server checks what is new in a policy by the language of the release before
// it, so that a downgrade finds nothing it cannot read. Hence the releases are
// one later than those in which the API server learned a function. What a
// release of the CEL library brought along needs no such wait.
func FirstRelease(name string, args int) Release {
	switch name {
	case "all", "exists", "exists_one":
		if args == 3 { // with two variables
			return 33
		}
		return Oldest
	case "existsOne": // with one variable: brought along
		return 33
	case "transformList", "transformMap", "transformMapEntry":
		return 33
	case "first", "last", "unwrapOpt", "optional.unwrap": // brought along
		return 33
	case "ip", "isIP", "ip.isCanonical", "family", "isUnspecified", "isLoopback",
		"isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast",
		"cidr", "isCIDR", "containsIP", "containsCIDR", "masked", "prefixLength":
		return 31
	case "validate", "format.named", "format.dns1123Label", "format.dns1123Subdomain",
		"format.dns1035Label", "format.qualifiedName", "format.dns1123LabelPrefix",
		"format.dns1123SubdomainPrefix", "format.dns1035LabelPrefix", "format.labelValue",
		"format.uri", "format.uuid", "format.byte", "format.date", "format.datetime":
		return 32
	case "fieldSelector", "labelSelector":
		return 32
	case "semver", "isSemver", "major", "minor", "patch":
		return 34
	case "slice", "flatten", "sort", "sortBy", "distinct", "reverse", "lists.range":
		return 35
	case "jsonpatch.escapeKey": // in a MutatingAdmissionPolicy, which 1.34 has in a beta version
		return 34
	case "includes":
		return 38
	}
	if slices.Contains(Common(), name) {
		return Oldest
	}
	return Never
}

// Common are the functions, methods and macros that every supported release understands.
func Common() []string {
	return []string{
		// macros
		"has", "map", "filter", "optMap", "optFlatMap",
		// the language
		"size", "type", "dyn", "int", "uint", "double", "string", "bytes", "bool",
		"duration", "timestamp", "contains", "startsWith", "endsWith", "matches",
		"getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek",
		"getHours", "getMinutes", "getSeconds", "getMilliseconds",
		// optional values
		"optional.of", "optional.none", "optional.ofNonZeroValue",
		"or", "orValue", "value", "hasValue",
		// strings
		"charAt", "indexOf", "lastIndexOf", "lowerAscii", "upperAscii", "replace", "split",
		"substring", "trim", "join", "format", "strings.quote",
		// sets, lists, regexes
		"sets.contains", "sets.equivalent", "sets.intersects",
		"isSorted", "sum", "min", "max", "find", "findAll",
		// URLs
		"url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery",
		// quantities
		"quantity", "isQuantity", "sign", "isInteger", "asInteger", "asApproximateFloat",
		"add", "sub", "compareTo", "isGreaterThan", "isLessThan",
		// the authorizer
		"path", "group", "resource", "subresource", "namespace", "name", "check",
		"allowed", "reason", "error", "errored", "serviceAccount",
	}
}

// FirstRelease is the first release on which a new policy may have the expression v. It
// is Never when v calls a function that no API server has.
func (v Value) FirstRelease() Release {
	need := Oldest
	v.Calls(func(name string, args int) { need = max(need, FirstRelease(name, args)) })
	v.Walk(func(v Value) bool {
		if v.n.op == opStruct { // Object{...}, in a MutatingAdmissionPolicy
			need = max(need, 34)
		}
		return true
	})
	return need
}

// UnknownFunctions are the functions that v calls and no API server has, in order.
func (v Value) UnknownFunctions() []string {
	var names []string
	v.Calls(func(name string, args int) {
		if FirstRelease(name, args) == Never {
			names = append(names, name)
		}
	})
	return names
}

// qualified tells that name is a function with a dot in its name, and no method
// of a variable: one of the API server's, or of the libraries it leaves out.
func qualified(name string) bool {
	switch name {
	case "base64.encode", "base64.decode", "regex.replace", "regex.extract", "regex.extractAll",
		"math.greatest", "math.least", "math.ceil", "math.floor", "math.round", "math.trunc",
		"math.abs", "math.sign", "math.sqrt", "math.isInf", "math.isNaN", "math.isFinite",
		"math.bitAnd", "math.bitOr", "math.bitXor", "math.bitNot", "math.bitShiftLeft", "math.bitShiftRight":
		return true
	}
	return strings.Contains(name, ".") && FirstRelease(name, 0) != Never
}

// A Function is a function or method, by its name, which may be qualified.
type Function string

// The functions that are called in what is built, and those of which something is
// known beyond their release and cost. What is parsed may call others.
const (
	funcBind                   Function = "cel.bind" // of Kyverno's kinds of policies
	FuncAllowed                Function = "allowed"
	FuncAsApproximateFloat     Function = "asApproximateFloat"
	FuncBool                   Function = "bool"
	FuncCompareTo              Function = "compareTo"
	FuncContains               Function = "contains"
	FuncDouble                 Function = "double"
	FuncDuration               Function = "duration"
	FuncDyn                    Function = "dyn"
	FuncEscapeKey              Function = "jsonpatch.escapeKey"
	FuncEndsWith               Function = "endsWith"
	FuncFind                   Function = "find"
	FuncFindAll                Function = "findAll"
	FuncFirst                  Function = "first"
	FuncFlatten                Function = "flatten"
	FuncHasValue               Function = "hasValue"
	FuncIndexOf                Function = "indexOf"
	FuncInt                    Function = "int"
	FuncIsCIDR                 Function = "isCIDR"
	FuncIsGreaterThan          Function = "isGreaterThan"
	FuncIsIP                   Function = "isIP"
	FuncIsLessThan             Function = "isLessThan"
	FuncIsQuantity             Function = "isQuantity"
	FuncIsSemver               Function = "isSemver"
	FuncIsURL                  Function = "isURL"
	FuncJoin                   Function = "join"
	FuncLast                   Function = "last"
	FuncLastIndexOf            Function = "lastIndexOf"
	FuncLowerASCII             Function = "lowerAscii"
	FuncMatches                Function = "matches"
	FuncMax                    Function = "max"
	FuncMin                    Function = "min"
	FuncOptionalNone           Function = "optional.none"
	FuncOptionalOf             Function = "optional.of"
	FuncOptionalOfNonZeroValue Function = "optional.ofNonZeroValue"
	FuncOptionalUnwrap         Function = "optional.unwrap"
	FuncOr                     Function = "or"
	FuncOrValue                Function = "orValue"
	FuncQuantity               Function = "quantity"
	FuncReplace                Function = "replace"
	FuncSemver                 Function = "semver"
	FuncSetsContains           Function = "sets.contains"
	FuncSetsEquivalent         Function = "sets.equivalent"
	FuncSetsIntersects         Function = "sets.intersects"
	FuncSign                   Function = "sign"
	FuncSize                   Function = "size"
	FuncSort                   Function = "sort"
	FuncSplit                  Function = "split"
	FuncStartsWith             Function = "startsWith"
	FuncString                 Function = "string"
	FuncSubstring              Function = "substring"
	FuncSum                    Function = "sum"
	FuncTrim                   Function = "trim"
	FuncType                   Function = "type"
	FuncUint                   Function = "uint"
	FuncUnwrapOpt              Function = "unwrapOpt"
	FuncUpperASCII             Function = "upperAscii"
	FuncValidate               Function = "validate"
	FuncValue                  Function = "value"

	noFunction Function = ""
)

// function is the function or method that n calls; none where it calls none.
func (n *node) function() Function {
	if n.op != opCall && n.op != opMember {
		return noFunction
	}
	return Function(n.name)
}

// A Release is a minor release of Kubernetes: 34 is 1.34. The zero Release is
// older than all.
type Release int

// The releases that have ValidatingAdmissionPolicy in v1 and that kvap knows.
const (
	Oldest Release = 30
	Latest Release = 37
)

// Default is the oldest release that upstream still maintains: what it takes,
// every maintained release takes.
const Default Release = 34

// Never is newer than every release: no API server has the feature.
const Never Release = 1 << 30

// Supported are the releases kvap compiles for, the oldest first.
func Supported() []Release {
	var rs []Release
	for r := Oldest; r <= Latest; r++ {
		rs = append(rs, r)
	}
	return rs
}

// ParseRelease reads 1.34 and v1.34, and with a patch level or build, as a server
// states its version: v1.34.2+k3s1.
func ParseRelease(s string) (Release, error) {
	major, rest, ok := strings.Cut(strings.TrimPrefix(s, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	minor = strings.TrimSuffix(minor, "+") // some providers state 34+
	m, err := strconv.Atoi(minor)
	if !ok || major != "1" || err != nil || m < 0 || minor[0] == '+' {
		return 0, fmt.Errorf("%q is no Kubernetes release; write it as 1.%d", s, Latest)
	}
	return Release(m), nil
}

// String is 1.34, for instance.
func (r Release) String() string {
	if r >= Never {
		return "never"
	}
	return "1." + strconv.Itoa(int(r))
}

// Compare is negative when r is older than s, zero when it is the same.
func (r Release) Compare(s Release) int { return int(r) - int(s) }

// Supports tells that a policy that needs what need states can be created on r.
func (r Release) Supports(need Release) bool { return need <= r }

// IsSupported tells that kvap compiles for r.
func (r Release) IsSupported() bool { return Oldest <= r && r <= Latest }
