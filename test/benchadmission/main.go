package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"

	"github.com/kvap/kvap/test/controlplane"
)

// A runBounds bounds a run.
type runBounds struct {
	rounds   int
	requests int     // of one worker, for latencies
	seconds  float64 // of each measurement of throughput
	workers  int

	profile, variant string // the file of a profile, and whose
}

func main() {
	var p runBounds
	flag.IntVar(&p.rounds, "rounds", 5, "how often each variant is measured")
	flag.IntVar(&p.requests, "requests", 200, "requests of the one worker in each round")
	flag.Float64Var(&p.seconds, "seconds", 3, "how long the workers work in each round")
	flag.IntVar(&p.workers, "workers", 8, "how many work at once")
	update := flag.String("update", "", "write the table into this document, between its marks")
	mutations := flag.Bool("mutations", false, "measure what changing Pods costs, by MutatingAdmissionPolicies and by the webhook")
	flag.StringVar(&p.profile, "profile", "", "only write a profile of the server's processors into this file, while all workers work")
	flag.StringVar(&p.variant, "variant", "--pack match --guard auto", "what judges the Pods while the profile is taken")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	measure := run
	if *mutations {
		measure = runMutations
	}
	if err := measure(ctx, p, *update); err != nil {
		fmt.Fprintln(os.Stderr, "benchadmission:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p runBounds, update string) (err error) {
	vs, err := variants()
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer plane.Stop() //nolint:errcheck // its data is in a temporary folder
	b, err := newBench(plane, p)
	if err != nil {
		return err
	}
	if p.profile != "" {
		return b.profile(ctx, vs, p.variant, p.profile)
	}
	if _, _, err := b.throughput(ctx, goodPod, http.StatusCreated); err != nil { // a server that has just begun is slow
		return err
	}
	results := make([][]sample, len(vs))
	for round := range p.rounds {
		for i := range vs {
			at := (i + round) % len(vs) // no variant is always first, or always after the same one
			s, err := b.measure(ctx, vs[at])
			if err != nil {
				return fmt.Errorf("%s: %w", vs[at].name, err)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d, %s: %s\n", round+1, p.rounds, vs[at].name, s)
			results[at] = append(results[at], s)
		}
	}
	table := render(vs, results, p)
	if update == "" {
		fmt.Print(table)
		return nil
	}
	return insert(update, "bench-admission", table)
}
