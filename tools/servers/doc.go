// Command servers builds the API server and what runs beside it, once, before the tests that
// start them: whoever runs the tests sees what takes the time, and their own time limits are
// theirs. Start at main.
//
// In: nothing but KVAP_KUBERNETES, another version. Out: the folder of the programs.
package main
