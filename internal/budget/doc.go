// Package budget counts the steps that a policy costs those who read it, and stops them
// where it costs too much.
//
// In: a number of steps, and a function that says whether somebody still wants the
// result; and the text of CEL and of regular expressions, which other people's compilers
// take without a bound. Out: nothing while there are steps left; a panic with TooLarge or
// Stopped otherwise, which whoever made the budget recovers. Texts and CheckValue are for
// evaluating.
//
// What must hold: steps are counted and not timed, so that the same policy comes to the
// same end on every machine. A step is a node of a tree, an alternative of a type, a byte
// of the policy, or 64 bytes of a text that comes of it. A node of CEL and an instruction
// of a regular expression are more, since more is made of them. Steps are about as much
// memory everywhere, and only roughly as much time.
//
// It does not know what is done with the steps, and compiles nothing.
//
// Start at Budget, then source.go; text.go and value.go are about what is made of an object.
package budget
