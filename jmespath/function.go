package jmespath

import "slices"

// A Func is a function that an expression can call.
type Func int

// The functions: those of JMESPath first, then those that Kyverno adds. Its sum
// takes the place of JMESPath's own.
const (
	FuncUnknown Func = iota

	FuncAbs
	FuncAvg
	FuncCeil
	FuncContains
	FuncEndsWith
	FuncFloor
	FuncJoin
	FuncKeys
	FuncLength
	FuncMap
	FuncMax
	FuncMaxBy
	FuncMerge
	FuncMin
	FuncMinBy
	FuncNotNull
	FuncReverse
	FuncSort
	FuncSortBy
	FuncStartsWith
	FuncToArray
	FuncToNumber
	FuncToString
	FuncType
	FuncValues

	FuncAdd
	FuncBase64Decode
	FuncBase64Encode
	FuncCompare
	FuncDivide
	FuncEqualFold
	FuncImageNormalize
	FuncIsExternalURL
	FuncItems
	FuncLabelMatch
	FuncLookup
	FuncMD5
	FuncModulo
	FuncMultiply
	FuncObjectFromLists
	FuncParseJSON
	FuncParseYAML
	FuncPathCanonicalize
	FuncPatternMatch
	FuncRandom
	FuncRegexMatch
	FuncRegexReplaceAll
	FuncRegexReplaceAllLiteral
	FuncReplace
	FuncReplaceAll
	FuncRound
	FuncSemverCompare
	FuncSHA1
	FuncSHA256
	FuncSplit
	FuncSubtract
	FuncSum
	FuncTimeAdd
	FuncTimeAfter
	FuncTimeBefore
	FuncTimeBetween
	FuncTimeDiff
	FuncTimeNow
	FuncTimeNowUTC
	FuncTimeParse
	FuncTimeSince
	FuncTimeToCron
	FuncTimeTruncate
	FuncTimeUTC
	FuncToBoolean
	FuncToLower
	FuncToUpper
	FuncTrim
	FuncTrimPrefix
	FuncTruncate
	FuncX509Decode

	lastBuiltin = FuncValues
)

// Functions is every function.
func Functions() []Func {
	list := make([]Func, 0, FuncX509Decode)
	for f := FuncUnknown + 1; f <= FuncX509Decode; f++ {
		list = append(list, f)
	}
	return list
}

// FuncNamed is the function of a name, FuncUnknown where there is none.
func FuncNamed(name string) Func {
	return Func(max(0, slices.Index(functionNames(), name)))
}

// String is the name of the function.
func (f Func) String() string { return functionNames()[f] }

func functionNames() []string {
	return []string{
		FuncUnknown: "",

		FuncAbs:        "abs",
		FuncAvg:        "avg",
		FuncCeil:       "ceil",
		FuncContains:   "contains",
		FuncEndsWith:   "ends_with",
		FuncFloor:      "floor",
		FuncJoin:       "join",
		FuncKeys:       "keys",
		FuncLength:     "length",
		FuncMap:        "map",
		FuncMax:        "max",
		FuncMaxBy:      "max_by",
		FuncMerge:      "merge",
		FuncMin:        "min",
		FuncMinBy:      "min_by",
		FuncNotNull:    "not_null",
		FuncReverse:    "reverse",
		FuncSort:       "sort",
		FuncSortBy:     "sort_by",
		FuncStartsWith: "starts_with",
		FuncToArray:    "to_array",
		FuncToNumber:   "to_number",
		FuncToString:   "to_string",
		FuncType:       "type",
		FuncValues:     "values",

		FuncAdd:                    "add",
		FuncBase64Decode:           "base64_decode",
		FuncBase64Encode:           "base64_encode",
		FuncCompare:                "compare",
		FuncDivide:                 "divide",
		FuncEqualFold:              "equal_fold",
		FuncImageNormalize:         "image_normalize",
		FuncIsExternalURL:          "is_external_url",
		FuncItems:                  "items",
		FuncLabelMatch:             "label_match",
		FuncLookup:                 "lookup",
		FuncMD5:                    "md5",
		FuncModulo:                 "modulo",
		FuncMultiply:               "multiply",
		FuncObjectFromLists:        "object_from_lists",
		FuncParseJSON:              "parse_json",
		FuncParseYAML:              "parse_yaml",
		FuncPathCanonicalize:       "path_canonicalize",
		FuncPatternMatch:           "pattern_match",
		FuncRandom:                 "random",
		FuncRegexMatch:             "regex_match",
		FuncRegexReplaceAll:        "regex_replace_all",
		FuncRegexReplaceAllLiteral: "regex_replace_all_literal",
		FuncReplace:                "replace",
		FuncReplaceAll:             "replace_all",
		FuncRound:                  "round",
		FuncSemverCompare:          "semver_compare",
		FuncSHA1:                   "sha1",
		FuncSHA256:                 "sha256",
		FuncSplit:                  "split",
		FuncSubtract:               "subtract",
		FuncSum:                    "sum",
		FuncTimeAdd:                "time_add",
		FuncTimeAfter:              "time_after",
		FuncTimeBefore:             "time_before",
		FuncTimeBetween:            "time_between",
		FuncTimeDiff:               "time_diff",
		FuncTimeNow:                "time_now",
		FuncTimeNowUTC:             "time_now_utc",
		FuncTimeParse:              "time_parse",
		FuncTimeSince:              "time_since",
		FuncTimeToCron:             "time_to_cron",
		FuncTimeTruncate:           "time_truncate",
		FuncTimeUTC:                "time_utc",
		FuncToBoolean:              "to_boolean",
		FuncToLower:                "to_lower",
		FuncToUpper:                "to_upper",
		FuncTrim:                   "trim",
		FuncTrimPrefix:             "trim_prefix",
		FuncTruncate:               "truncate",
		FuncX509Decode:             "x509_decode",
	}
}
