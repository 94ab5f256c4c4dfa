package cel

// A Function is a function or method, by its name, which may be qualified.
type Function string

// The functions that are called in what is built, and those of which something is
// known beyond their release and cost. What is parsed may call others.
const (
	FuncAdd                    Function = "add"
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
