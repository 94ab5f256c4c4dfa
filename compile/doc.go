// Package compile turns policies into checked objects, in one call.
//
// In come policies, exceptions, what reading them said, and the choices of the
// translation and of the output. Out come a list of all rules, each with where it
// is judged, why, and where in the objects it is; the objects; and diagnostics.
//
// What must hold: an API server of the release takes every object. A rule of which
// a check refuses a part goes to the webhook with the code of the check, whole, and
// the others of its pack keep their object; an object of which a check refuses the
// guard loses only that. A rule for the webhook is in no object;
// a native one is in at least one, or has a code that says why it needs none. What
// goes wrong in one policy is that policy's diagnostic and changes nothing else:
// a panic goes no further. The same input gives the same result, although policies,
// their rules and the kinds that these match are lowered, and objects emitted and
// checked, on every core; and with a Cache the same as without.
//
// It does not read files, and it decides nothing about the translation.
//
// Start at Policies (compile.go).
package compile
