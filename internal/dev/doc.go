// Package dev runs a control plane on this machine, with the controller and policies, and
// Kyverno or what stands in for it where that is asked for.
//
// In: Options: what runs, definitions and policies. Out: nothing but what is printed, until
// the context ends.
//
// What must hold: all of it ends with the context, and leaves nothing behind but a folder
// that was named. The controller is another user than the one at the terminal, for what
// it does itself triggers no rule. What stands in for Kyverno looks to the cluster as
// Kyverno does (package internal/standin), and judges as the interpreter does.
//
// Start at Run (dev.go).
package dev
