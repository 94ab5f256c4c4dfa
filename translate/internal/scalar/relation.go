package scalar

// A Relation compares two values, written as CEL and Kyverno's patterns do.
type Relation string

// The relations.
const (
	Equals       Relation = "=="
	Differs      Relation = "!="
	Less         Relation = "<"
	LessEqual    Relation = "<="
	Greater      Relation = ">"
	GreaterEqual Relation = ">="
)

// Holds tells whether the sign of a comparison satisfies the relation.
func (r Relation) Holds(sign int) bool {
	switch r {
	case Equals:
		return sign == 0
	case Differs:
		return sign != 0
	case Less:
		return sign < 0
	case LessEqual:
		return sign <= 0
	case Greater:
		return sign > 0
	case GreaterEqual:
		return sign >= 0
	}
	return false
}

// Mirrored is the relation of b to a, where r is that of a to b.
func (r Relation) Mirrored() Relation {
	switch r {
	case Less:
		return Greater
	case LessEqual:
		return GreaterEqual
	case Greater:
		return Less
	case GreaterEqual:
		return LessEqual
	}
	return r
}
