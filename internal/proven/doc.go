// Package proven has what joins the interpreter, which asks who signed images, with package
// images, which proves it.
//
// In: an attestor as the interpreter has it; a folder with what registries would say.
// Out: the verifier for the attestor; an interp.Registry that answers from the folder.
//
// What must hold: nothing here decides on a signature, and nothing is read from a network.
//
// Start at verifier.go; recorded.go is for the command line.
package proven
