package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/kvap/kvap/test/controlplane"
)

// Marks around the table in a document.
const (
	beginMark = "<!-- bench-scan: begin -->\n"
	endMark   = "<!-- bench-scan: end -->"
)

func (b *bench) render(rows []outcome) string {
	var out strings.Builder
	fmt.Fprintf(&out, "kube-apiserver %s, %d CPUs, everything on one machine. %d objects in %d namespaces, %d policies.\n\n", controlplane.Version(), runtime.NumCPU(), b.objects, b.namespaces, b.policies)
	out.WriteString("| what happens | until reports are in step | objects judged | lists, gets and watches of objects | other reads | reports written | other writes | memory of the controller, of that the program itself, its peak, and the peak of its heap |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		n, m := r.requests, r.memory
		fmt.Fprintf(&out, "| %s | %.1f s | %d | %d, %d, %d | %d | %d | %d | %d MiB (%d MiB, %d MiB, %d MiB) |\n",
			r.what, r.took.Seconds(), r.judged, n.pages, n.gets, n.watches, n.reads, n.reports, n.writes, m.now, m.program, m.peak, m.heap)
	}
	return out.String()
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
		return fmt.Errorf("%s has no marks of bench-scan", file)
	}
	return os.WriteFile(file, []byte(before+beginMark+table+endMark+after), 0o644) //nolint:gosec // a document
}
