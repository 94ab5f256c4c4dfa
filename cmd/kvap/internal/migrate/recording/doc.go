// Package recording has an API server send the requests that policies are about to a
// webhook of its own, for as long as a recording runs.
//
// In: a Connection, Options, and the policies. Out: the requests go to a record.Recorder,
// which keeps a sample of them.
//
// What must hold: every request is admitted, and API servers go on without an answer. The
// configuration is there before the first request and gone after the last, however the
// run ends; where the process is killed, TakeAway takes it away.
//
// Start at New (recording.go).
package recording
