// Package command is what kvap's programs share: how one runs, flags that are read the same
// way everywhere, and the version.
//
// In: a root command and the surroundings of a process. Out: an exit code of package exit;
// what is wrong on standard error, with where help is.
//
// What must hold: there is no state outside of commands; a flag that several programs have
// takes the same words and refuses the others with the same text.
//
// It knows no verb. Start at Run (run.go).
package command
