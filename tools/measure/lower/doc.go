// Command lower compiles sets of policies and prints each expression of what comes out, one
// in a line, with the place that it comes from. It is what package measure builds.
package main
