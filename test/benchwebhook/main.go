package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A runBounds bounds a run.
type runBounds struct {
	requests int           // of each measurement
	limit    time.Duration // of each measurement
	pause    time.Duration // of a client that does not hurry
}

func main() {
	var p runBounds
	flag.IntVar(&p.requests, "requests", 20000, "how many requests a measurement has at most")
	flag.DurationVar(&p.limit, "time", 15*time.Second, "how long a measurement takes at most")
	flag.DurationVar(&p.pause, "pause", time.Second, "how long a client that does not hurry waits between requests")
	update := flag.String("update", "", "write the table into this document, between its marks")
	server := flag.Bool("serve", false, "be the server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := func() error { return measureAll(ctx, p, *update) }
	if *server {
		run = func() error { return serve(ctx) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "benchwebhook:", err)
		os.Exit(1)
	}
}

// A sample is what a measurement found.
type sample struct {
	clients   int
	pause     time.Duration
	times     []time.Duration // sorted
	took      time.Duration
	memory    int // bytes that the server holds
	processor time.Duration
}

func (s sample) percentile(p float64) time.Duration {
	return s.times[min(len(s.times)-1, int(p*float64(len(s.times))))]
}

func measureAll(ctx context.Context, p runBounds, update string) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	if _, err := s.drive(ctx, 50, 0, runBounds{requests: 2000, limit: p.limit}); err != nil { // the first requests compile
		return err
	}
	var samples []sample
	for _, pause := range []time.Duration{p.pause, 0} {
		for _, clients := range []int{100, 200, 500} {
			one, err := s.drive(ctx, clients, pause, p)
			if err != nil {
				return err
			}
			samples = append(samples, one)
			fmt.Fprintf(os.Stderr, "%d clients, pause %s: p50 %s, p99 %s\n", clients, pause, one.percentile(0.5), one.percentile(0.99))
		}
	}
	table := render(samples)
	if update == "" {
		fmt.Print(table)
		return nil
	}
	return insert(update, table)
}

// The marks between which a document has the table.
const (
	beginMark = "<!-- bench-webhook: begin -->\n"
	endMark   = "<!-- bench-webhook: end -->\n"
)

func render(samples []sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d CPUs, clients and server on one machine. 17 validate policies; a Deployment that meets 16 of them and is admitted.\n\n", runtime.NumCPU())
	b.WriteString("| clients | each sends | requests/s | p50 | p95 | p99 | longest | memory of the server | its processor time a request |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range samples {
		how := "when answered"
		if s.pause > 0 {
			how = s.pause.String() + " after it was answered"
		}
		n := len(s.times)
		fmt.Fprintf(&b, "| %d | %s | %.0f | %s | %s | %s | %s | %d MB | %s |\n", s.clients, how, float64(n)/s.took.Seconds(),
			ms(s.percentile(0.5)), ms(s.percentile(0.95)), ms(s.percentile(0.99)), ms(s.times[n-1]), s.memory>>20, ms(s.processor/time.Duration(n)))
	}
	return b.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

// insert puts the table between the marks of a document.
func insert(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no marks for the table", file)
	}
	return os.WriteFile(file, slices.Concat(before, []byte(beginMark), []byte(table), []byte(endMark), after), 0o644)
}
