package apiserver

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// CEL's checker and the API server say some things in words only. All that hangs on
// these words is read here; TestWords has them say each.

// noOverload reads which function does not take what it is applied to, and the types
// of that.
func noOverload(message string) (function, arguments string, ok bool) {
	_, applied, ok := strings.Cut(message, "found no matching overload for '")
	if !ok {
		return "", "", false
	}
	function, arguments, ok = strings.Cut(applied, "' applied to '")
	return function, strings.TrimSuffix(arguments, "'"), ok
}

// FirstProblem is the first error of CEL's compiler in what an API server says of an
// expression: ERROR: <input>:1:12: undefined field 'x'
func FirstProblem(detail string) (p Problem, ok bool) {
	m := regexp.MustCompile(`ERROR: <input>:(\d+):(\d+): (.*)`).FindStringSubmatch(detail)
	if m == nil {
		return Problem{}, false
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	return problem(m[3], LineColumn{line, column}), true
}

// FirstMessage is that error on one line, with its place, or the whole of another text.
func FirstMessage(detail string) string {
	if p, ok := FirstProblem(detail); ok {
		detail = fmt.Sprintf("%d:%d: %s", p.Line, p.Col, p.Message)
	}
	return strings.Join(strings.Fields(detail), " ")
}

// WarnedKinds are the kinds that a warning of a policy's status is about: it has a part
// for each, which begins with apps/v1, Kind=Deployment:
func WarnedKinds(warning string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^(\S+, Kind=\w+):`).FindAllStringSubmatch(warning, -1) {
		out = append(out, m[1])
	}
	return out
}

// withoutClock removes the nanoseconds of the clock that the type checker puts
// behind the names of kinds to make them unique, for instance Pod177479118.
func withoutClock(text string) string {
	for _, m := range regexp.MustCompile(`Kind=(\w+)`).FindAllStringSubmatch(text, -1) {
		text = regexp.MustCompile(`\b`+m[1]+`\d+\b`).ReplaceAllString(text, m[1])
	}
	return text
}
