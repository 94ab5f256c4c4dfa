// Package podsec lowers validate.podSecurity: the checks of the Pod Security Standards, less
// what a rule and its exceptions exclude.
//
//	podSecurity: {level: baseline, version: latest}
//
//	variables.violations.size() == 0, of a variable with the names of the violated controls
//
// In: a level, a version and exclusions. Out: a condition, and the variable for its message.
//
// What must hold: the checks are those of k8s.io/pod-security-admission in the version that
// the rule names; a property test holds them together.
//
// Start at podsecurity.go; check.go has the checks, exclude.go the exclusions.
package podsec
