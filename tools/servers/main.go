package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kvap/kvap/test/controlplane"
)

func main() {
	folder, err := controlplane.Build(context.Background(), os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(folder)
}
