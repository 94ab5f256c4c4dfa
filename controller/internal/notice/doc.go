// Package notice tells users by Events about policies and objects.
//
// In: whom an Event is about, its type, reason, action and note. Out: Events of
// events.k8s.io, which client-go puts together into a series where they repeat.
//
// What must hold: a note is as long as the API server takes it; no one who tells waits
// for the API server.
//
// Start at Recorder (recorder.go).
package notice
