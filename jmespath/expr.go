package jmespath

import "github.com/kvap/kvap/diag"

// An Op is the kind of an Expr.
type Op int

// The operations. L, R and C are Args[0], Args[1] and Args[2].
const (
	Current         Op = iota // @
	Field                     // Name, or Dynamic where the name holds a variable
	Sub                       // L.R
	Index                     // L[Num]
	Slice                     // L[Start:Stop:Step]; always the L of a Projection
	Flatten                   // L[]; always the L of a Projection
	Projection                // L[*].R: R of each element of the list L, nulls dropped
	ValueProjection           // L.*.R
	Filter                    // L[?C].R
	MultiList                 // [Args...]
	MultiHash                 // {Keys[i]: Args[i]}
	Pipe                      // L | R
	Or                        // L || R
	And                       // L && R
	Not                       // !L
	Compare                   // L Comparator R
	Literal                   // Value: nil, bool, float64, string, []any, map[string]any
	RawString                 // Text: a '...' string that holds variables (others are Literals)
	Call                      // Func(Args...); where there is no such function, Name says what was meant
	ExpRef                    // &L, only as an argument
)

// An Expr is a JMESPath expression with its place. Where a projection has no
// right side, R is Current.
type Expr struct {
	Op         Op
	Pos        diag.Pos
	Name       string
	Func       Func
	Comparator Comparator
	Keys       []string
	Args       []*Expr
	Num        int
	Start      *int
	Stop       *int
	Step       *int
	Value      any
	Text       *Template // of a RawString, and of a Literal that is the value of a variable (ParseField)
	Dynamic    *Template // of a Field whose quoted name holds variables
}

// A Template is a string of the source split at its variables.
type Template struct {
	Pos   diag.Pos
	Text  string // as written
	Parts []Part
}

// A Part is a piece of literal text (with \{{ unescaped), a variable, or a
// reference.
type Part struct {
	Text string
	Var  *Variable
	Ref  *Reference
}

// A Variable is one {{ }}.
type Variable struct {
	Pos     diag.Pos
	Raw     string // the body, trimmed
	Shallow bool   // {{- }}
	// Expr is nil when the body holds inner variables at a place where only the
	// text that they give can be parsed; Body is then the template of the body.
	Expr *Expr
	Body *Template
}

// A Reference is a $(...): an optional operator and a path.
type Reference struct {
	Pos      diag.Pos
	Operator string
	Path     string
}
