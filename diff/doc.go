// Package diff looks for a request of which two sets of policies say different things.
//
// In: two sides, each of anything that kvap judges by (policies with their exceptions, native
// policies with bindings and params), and a budget. Out of Compare: for each pair of rules, or of
// policies where their rules have no pairs, the smallest request that was found to show a
// difference of each kind, with both answers; and the evidence, that is how many requests were
// tried, what each side said of them, and which questions of each side were seen both ways.
//
// What must hold: each side is judged as it is written, policies by the interpreter and native
// ones by the API server's own code; nothing is translated. A request is one that an API server
// could hand to admission, and both sides are asked about the same one, with the same objects to
// look up. The same seed gives the same. Whatever has no pair, or cannot be judged, is told.
//
// It does not prove anything: no difference found is evidence, not certainty. It asks nothing
// outside. Rules that generate, delete or verify images are compared as text alone.
//
// Start at compare.go; group.go has what a side consists of and pair.go what is held against
// what; panel.go asks a side about a request, and answer.go tells two answers apart.
package diff
