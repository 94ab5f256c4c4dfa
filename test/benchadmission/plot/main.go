package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	from := flag.String("from", "docs/performance.md", "the document with the table")
	to := flag.String("to", "docs/latency.svg", "the picture to write")
	flag.Parse()
	if err := run(*from, *to); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	document, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	rows, err := read(string(document))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, draw(rows), 0o644)
}
