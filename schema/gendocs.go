//go:build ignore

// Gendocs writes docs/kinds.md from the table of published kinds.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/kvap/kvap/schema"
)

const head = `# Custom kinds that are known

Of these kinds kvap knows plural, scope and fields without --crds, as the projects publish them. A definition that is given
with --crds, or read from a cluster, comes first.

A cluster may have another release of a project, so only this is relied upon: a field that is published, and that an object
has, is of the published type. Required fields, enumerations, bounds, formats and the keys of lists are not: each field may be
missing, and a text may be any text. Fields that are not published are read as those of an unknown kind; a rule that names one
gets KV120. A rule that names a kind alone is on the groups and versions that are published, with --any-group on all, and gets KV325.

| kind | group and version | resource | scope | project | version | licence |
|---|---|---|---|---|---|---|
`

func main() {
	var out strings.Builder
	out.WriteString(head)
	for _, r := range schema.Published() {
		scope := "Cluster"
		if r.Namespaced {
			scope = "Namespaced"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s |\n", r.Kind, r.APIVersion(), r.Plural, scope, r.Project.Name, r.Project.Version, r.Project.License)
	}
	if err := os.WriteFile("docs/kinds.md", []byte(out.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}
