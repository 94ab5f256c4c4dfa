//go:build ignore

// Gen writes explain.go and docs/codes.md from the comments in codes.go.
package main

import (
	"log"
	"os"

	"github.com/kvap/kvap/diag/internal/gencodes"
)

func main() {
	src, err := os.ReadFile("codes.go")
	if err != nil {
		log.Fatal(err)
	}
	codes, err := gencodes.Parse(src)
	if err != nil {
		log.Fatal(err)
	}
	goText, err := gencodes.Go(codes)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("explain.go", goText, 0o644); err != nil {
		log.Fatal(err)
	}
	if err := os.MkdirAll("../docs", 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("../docs/codes.md", gencodes.Markdown(codes), 0o644); err != nil {
		log.Fatal(err)
	}
}
