package cel

// MaxSize is how many nodes a tree may have. The API server takes expressions of
// 100,000 characters, and few nodes print as less than one.
const MaxSize = 150_000

// TooLarge is what building a larger tree panics with. A tree may share its parts,
// so that one of billions of nodes takes a few; whoever would walk it next would
// never come to an end. The one who lowers a rule recovers, and refuses the rule.
type TooLarge struct{}

// Error says what became too large.
func (TooLarge) Error() string { return "the expression has too many parts" }

// Nodes is how many nodes v has; none where it is not an expression.
func (v Value) Nodes() int {
	if v.n == nil {
		return 0
	}
	return v.n.size
}
