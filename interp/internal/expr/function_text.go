package expr

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/wildcard"
	"github.com/kvap/kvap/jmespath"
)

// textFunction is the functions of strings.
func textFunction(f jmespath.Func) function {
	switch f {
	case jmespath.FuncBase64Decode:
		return parsing(decodeBase64)
	case jmespath.FuncBase64Encode:
		return onText(func(s string) any { return base64.StdEncoding.EncodeToString([]byte(s)) })
	case jmespath.FuncCompare:
		return onTexts(func(a, b string) any { return float64(strings.Compare(a, b)) })
	case jmespath.FuncEndsWith:
		return onTexts(strings.HasSuffix)
	case jmespath.FuncEqualFold:
		return onTexts(strings.EqualFold)
	case jmespath.FuncParseJSON:
		return parsing(parseJSON)
	case jmespath.FuncParseYAML:
		return parsing(parseYAML)
	case jmespath.FuncPathCanonicalize:
		return onText(func(s string) string { return path.Join(s) })
	case jmespath.FuncPatternMatch:
		return onScalars(func(_ *evaluator, s []string) (any, error) { return wildcard.Match(s[0], s[1]), nil })
	case jmespath.FuncRegexMatch:
		return onScalars(regexMatch)
	case jmespath.FuncRegexReplaceAll:
		return onScalars(regexReplace)
	case jmespath.FuncRegexReplaceAllLiteral:
		return onScalars(regexReplaceLiteral)
	case jmespath.FuncReplace:
		return func(_ *evaluator, args []any) (any, error) {
			return replace(args[0].(string), args[1].(string), args[2].(string), datum.Clamped(args[3]))
		}
	case jmespath.FuncReplaceAll:
		return parsing(func(s ...string) (any, error) { return replace(s[0], s[1], s[2], -1) })
	case jmespath.FuncSemverCompare:
		return parsing(semverCompare)
	case jmespath.FuncSplit:
		return onTexts(func(s, separator string) []any { return textList(strings.Split(s, separator)) })
	case jmespath.FuncStartsWith:
		return onTexts(strings.HasPrefix)
	case jmespath.FuncToBoolean:
		return parsing(toBoolean)
	case jmespath.FuncToLower:
		return onText(strings.ToLower)
	case jmespath.FuncToString:
		return toText
	case jmespath.FuncToUpper:
		return onText(strings.ToUpper)
	case jmespath.FuncTrim:
		return onTexts(strings.Trim)
	case jmespath.FuncTrimPrefix:
		return onTexts(strings.TrimPrefix)
	case jmespath.FuncTruncate:
		return truncate
	}
	return nil
}

func decodeBase64(s ...string) (any, error) {
	b, err := base64.StdEncoding.DecodeString(s[0])
	return string(b), err
}

func parseJSON(s ...string) (any, error) {
	var v any
	err := json.Unmarshal([]byte(s[0]), &v)
	return v, err
}

// maxYAMLSize bounds what is parsed: aliases multiply a text.
const maxYAMLSize = 1 << 20

func parseYAML(s ...string) (any, error) {
	if len(s[0]) > maxYAMLSize {
		return nil, fmt.Errorf("the text is longer than %d bytes", maxYAMLSize)
	}
	var v any
	err := yaml.Unmarshal([]byte(s[0]), &v)
	return v, err
}

// compileRegexp compiles a regular expression that any policy may have.
func compileRegexp(text string) (*regexp.Regexp, error) {
	if budget.OfRegexp(text) > budget.PerPolicy {
		return nil, errors.New("the regular expression is too large")
	}
	return regexp.Compile(text)
}

func regexMatch(_ *evaluator, s []string) (any, error) {
	re, err := compileRegexp(s[0])
	if err != nil {
		return nil, err
	}
	return re.MatchString(s[1]), nil
}

// regexReplace replaces each match, with $1 and the like expanded.
func regexReplace(_ *evaluator, s []string) (any, error) {
	re, err := compileRegexp(s[0])
	if err != nil {
		return nil, err
	}
	return replaceMatches(re, s[1], func(out []byte, match []int) []byte {
		return re.ExpandString(out, s[2], s[1], match)
	})
}

func regexReplaceLiteral(_ *evaluator, s []string) (any, error) {
	re, err := compileRegexp(s[0])
	if err != nil {
		return nil, err
	}
	return replaceMatches(re, s[1], func(out []byte, _ []int) []byte { return append(out, s[2]...) })
}

// maxMatches bounds how often a text is matched. Where a match is takes more room than
// what is matched.
const maxMatches = 200_000

// replaceMatches is the ReplaceAll of regexp with a bound on the result.
func replaceMatches(re *regexp.Regexp, text string, by func(out []byte, match []int) []byte) (any, error) {
	var out []byte
	at := 0
	matches := re.FindAllStringSubmatchIndex(text, maxMatches)
	for _, match := range matches {
		out = append(out, text[at:match[0]]...)
		out = by(out, match)
		at = match[1]
		if len(out) > maxTextSize {
			return nil, tooLong()
		}
	}
	if len(matches) == maxMatches {
		return nil, fmt.Errorf("there are %d matches or more", maxMatches)
	}
	return string(append(out, text[at:]...)), nil
}

// semverCompare tells whether a version is in a range. What is no version counts
// as 0.0.0.
func semverCompare(s ...string) (any, error) {
	version, err := semver.Parse(s[0])
	if err != nil {
		version = semver.Version{}
	}
	within, err := semver.ParseRange(s[1])
	if err != nil {
		return nil, err
	}
	return within(version), nil
}

func toBoolean(s ...string) (any, error) {
	switch strings.ToLower(s[0]) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, fmt.Errorf("%q is neither true nor false", s[0])
}

// toText is a string as it is, and the JSON text of anything else.
func toText(ev *evaluator, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		return s, nil
	}
	return ev.json(args[0])
}

// truncate cuts a text after a number of characters.
func truncate(_ *evaluator, args []any) (any, error) {
	text, n := args[0].(string), max(0, datum.Clamped(args[1]))
	for i := range text {
		if n == 0 {
			return text[:i], nil
		}
		n--
	}
	return text, nil
}
