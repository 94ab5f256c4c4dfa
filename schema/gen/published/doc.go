// Command published writes the embedded types of kinds that projects publish.
//
// What comes in: a folder with an index.json, and GROUP/PLURAL.yaml for each
// CustomResourceDefinition that the index lists. What goes out: data/published/kinds.txt
// with a line for each kind that is served, and GROUP.json.gz with the schemas of a group.
//
// A line of kinds.txt has nine words, with - for none: group, version, kind, plural, scope,
// subresources, project, its release, licence. The lines are sorted by group and kind; of a
// kind the newest version comes first. A line of GROUP.json is a schema with its name: that
// of a kind is VERSION.KIND, and one that occurs more than once is a number, to which the
// others refer. No schema refers to one in a later line.
//
// What must hold: the same folder gives the same bytes. Of a schema no more is kept than
// what a cluster that has another release of the project bears out: which fields there
// are, and of what type. Required fields, enumerations, bounds, formats, defaults and
// validation rules are left out on purpose.
//
// It does not: fetch anything, or run in any build.
//
// Start reading at main.go.
package main
