// Package infiles has the steps of a migration for policies in files, and asks no cluster.
//
// In: compiled policies, which of them are meant, and the goal; or the sources themselves,
// to adopt. Out: what would be done, as the report's Handover, and kustomize components or
// changed files that do it.
//
// What must hold: a name that no policy has is an error, for what it was meant for would
// be left behind in silence. Adopting changes apiVersion in a file, and nothing else.
// Components of other policies, by earlier runs, stay in the folder.
//
// What a step does, package migrate says.
//
// Start at Steps (files.go).
package infiles
