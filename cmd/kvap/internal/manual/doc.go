// Package manual writes the manual pages of a program whose verbs are cobra commands.
//
// In: the root command. Out: a page in roff for it and for each verb that is not hidden, by its
// file name, such as kvap-convert.1.
//
// What must hold: the same commands give the same bytes; no text of a command is taken for roff.
//
// It writes no file. Start at Pages.
package manual
