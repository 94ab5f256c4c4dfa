package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kvap/kvap/test/controlplane"
)

// A row is what one step took.
type row struct {
	what   string
	took   time.Duration
	writes count
	memory memoryUse
}

// Marks around the table in a document.
const (
	beginMark = "<!-- bench-cluster: begin -->\n"
	endMark   = "<!-- bench-cluster: end -->"
)

func render(rows []row, cpus int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kube-apiserver %s, %d CPUs, everything on one machine.\n\n", controlplane.Version(), cpus)
	b.WriteString("| what happens | until all are enforced | writes of native objects | writes of statuses | other writes | memory of the controller, of that the program itself, and its peak |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %.1f s | %d | %d | %d | %d MiB (%d MiB, %d MiB) |\n", r.what, r.took.Seconds(), r.writes.natives, r.writes.statuses, r.writes.others, r.memory.now, r.memory.program, r.memory.peak)
	}
	return b.String()
}

// insert puts the table between the marks of a document.
func insert(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), beginMark)
	_, after, also := strings.Cut(rest, endMark)
	if !ok || !also {
		return fmt.Errorf("%s has no marks of bench-cluster", file)
	}
	return os.WriteFile(file, []byte(before+beginMark+table+endMark+after), 0o644) //nolint:gosec // a document
}
