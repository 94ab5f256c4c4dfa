// Package attempt makes requests to a real API server of the fixtures' cases. Like the
// tests that send them it carries the build tag e2e.
//
// In: a case of package fixtures. Out: an Attempt, which knows why it cannot be made, has
// a Store make what it starts from, and is sent, dry, as the case's user. And out come
// tables of fixtures whose policies may be in force together.
//
// What must hold: nothing but what a request starts from is ever stored.
//
// It does not say what the answer should be.
//
// Start at attempt.go, then Seat (seat.go).
package attempt
