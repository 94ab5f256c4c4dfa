package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kvap/kvap/test/controlplane"
)

// marksOf are those between which a document has a table of the Kubernetes that runs.
func marksOf(table string) (begin, end string) {
	mark := "<!-- " + table + "-" + controlplane.Version()
	return mark + ": begin -->\n", mark + ": end -->\n"
}

// render writes a row for each variant. What is compared with nothing is compared
// with the nothing of the same round.
func render(vs []variant, results [][]sample, p runBounds) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kube-apiserver %s, %d CPUs, everything on one machine; %d interleaved rounds of %d requests by one worker and\n"+
		"%g s of %d workers, each for a Pod that is admitted and one that is denied. Medians, and in brackets the least and the\ngreatest of the rounds.\n\n",
		controlplane.Version(), runtime.NumCPU(), p.rounds, p.requests, p.seconds, p.workers)
	b.WriteString("| what judges the Pod | policy objects that it meets | p50 added, 1 worker | p95 added | share of the bare throughput | processor time of the server | throughput, to the first row | p50 added, denied | share of the throughput, denied |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	bare, unguarded := results[0], results[1]
	for i, v := range vs[1:] {
		ss := results[i+1]
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", v.name, v.policies(),
			spread(ss, bare, added(func(s sample) time.Duration { return s.good })),
			spread(ss, bare, added(func(s sample) time.Duration { return s.good95 })),
			spread(ss, bare, share(func(s sample) float64 { return s.perSecond })),
			spread(ss, bare, share(func(s sample) float64 { return float64(s.work) })),
			spread(ss, unguarded, times(func(s sample) float64 { return s.perSecond })),
			spread(ss, bare, added(func(s sample) time.Duration { return s.bad })),
			spread(ss, bare, share(func(s sample) float64 { return s.badPerSecond })))
	}
	fmt.Fprintf(&b, "\nThe bare server: p50 %s, p95 %s; %s.\n",
		absolute(bare, func(s sample) float64 { return float64(s.good) / 1e6 }, "%.2f", " ms"),
		absolute(bare, func(s sample) float64 { return float64(s.good95) / 1e6 }, "%.2f", " ms"),
		absolute(bare, func(s sample) float64 { return s.perSecond }, "%.0f", " requests/s"))
	return b.String()
}

// A comparison is a figure of a sample beside that of another one of its round.
type comparison struct {
	of           func(s, other sample) float64
	format, unit string
}

func added(d func(sample) time.Duration) comparison {
	return comparison{func(s, other sample) float64 { return float64(d(s)-d(other)) / 1e6 }, "%.2f", " ms"}
}

func share(f func(sample) float64) comparison {
	return comparison{func(s, other sample) float64 { return 100 * f(s) / f(other) }, "%.0f", " %"}
}

func times(f func(sample) float64) comparison {
	return comparison{func(s, other sample) float64 { return f(s) / f(other) }, "%.1f", "×"}
}

func spread(ss, others []sample, c comparison) string {
	values := make([]float64, len(ss))
	for i := range ss {
		values[i] = c.of(ss[i], others[i])
	}
	return medianOf(values, c.format, c.unit)
}

func absolute(ss []sample, of func(sample) float64, format, unit string) string {
	var values []float64
	for _, s := range ss {
		values = append(values, of(s))
	}
	return medianOf(values, format, unit)
}

// medianOf is a median with the least and the greatest value behind it.
func medianOf(values []float64, format, unit string) string {
	slices.Sort(values)
	text := func(v float64) string { return fmt.Sprintf(format, v) }
	return fmt.Sprintf("%s%s (%s to %s)", text(values[len(values)/2]), unit, text(values[0]), text(values[len(values)-1]))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

// insert puts the table between its marks in a document.
func insert(file, name, table string) error {
	begin, end := marksOf(name)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no mark %s", file, begin)
	}
	return os.WriteFile(file, slices.Concat(before, []byte(begin), []byte(table), []byte(end), after), 0o644)
}
