package jmespath

import "github.com/jmespath-community/go-jmespath/pkg/parsing"

// A Comparator compares two values.
type Comparator int

// The comparators.
const (
	Equal Comparator = iota
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
)

// String is the comparator as it is written.
func (c Comparator) String() string {
	return [...]string{Equal: "==", NotEqual: "!=", Less: "<", LessEqual: "<=", Greater: ">", GreaterEqual: ">="}[c]
}

func comparator(t parsing.TokType) Comparator {
	switch t {
	case parsing.TOKEQ:
		return Equal
	case parsing.TOKNE:
		return NotEqual
	case parsing.TOKLT:
		return Less
	case parsing.TOKLTE:
		return LessEqual
	case parsing.TOKGT:
		return Greater
	default:
		return GreaterEqual
	}
}
