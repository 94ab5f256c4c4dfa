// Package manifest reads the objects that users write beside their policies:
// resources to judge, ConfigMaps, namespaces.
//
// In comes the text of a file, YAML of several documents or JSON; out go the
// objects as Go data, each with its place, and diagnostics for what is no object.
//
// What must hold: a document that cannot be read costs nothing but itself. Values
// have the types that kubectl sends: YAML 1.1 words such as yes are bools, integers
// are int64. Lists, as kubectl prints them, count as their items.
//
// It neither knows kinds nor validates objects.
//
// Start at Read.
package manifest
