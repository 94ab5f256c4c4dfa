// Package record keeps samples of admission requests in files, for kvap migrate
// compare.
//
// In come AdmissionReviews over HTTP, at any path. Out go JSON Lines in a folder, as
// kvap eval reads them, and the configuration that has an API server send them.
//
// What must hold:
//   - An answer never waits for a disk, nor for anybody: what cannot be taken at once
//     is dropped and counted. It always admits.
//   - No value of a Secret gets into a file, wherever in the request it stands, nor
//     does a field that was chosen to be masked. Equal values are masked to equal
//     words, so that an update which changes nothing still shows as one; the key of
//     the words is forgotten with the process.
//   - The files never take more than their size: the oldest go.
//   - What was taken is written before Close returns.
//
// It does not look at what it records, writes to no cluster, and knows nothing of
// policies.
//
// Start at Recorder (recorder.go); then mask.go, files.go and configuration.go.
package record
