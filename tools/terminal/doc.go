// Terminal draws a picture of a terminal: a command, and what it printed.
//
// In: a script of cmd/kvap/testdata/script, whose tests hold that the command prints the text.
// Out: docs/plan.svg, which the README shows.
//
// What must hold: the same script gives the same bytes, and a test holds that docs/plan.svg is
// drawn from the script that is there. Lines that are too long for the picture end in a dot dot dot.
//
// It runs nothing. Start at main.go.
package main
