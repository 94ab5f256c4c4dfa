package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/cmd/kvap/internal/manual"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
)

// newManual is for those who package the program.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIR",
		Short:  "Write the manual pages into a folder",
		Args:   oneFolder,
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return exit.Runtime(err)
			}
			for _, p := range manual.Pages(cmd.Root(), "kvap "+command.Version()) {
				if err := os.WriteFile(filepath.Join(args[0], p.File), []byte(p.Text), 0o644); err != nil {
					return exit.Runtime(err)
				}
			}
			return nil
		},
	}
}

func oneFolder(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return fmt.Errorf("%s needs a DIR: the folder to write into", command.Typed(cmd))
	case 1:
		return nil
	}
	return fmt.Errorf("%s takes one DIR, and got %d", command.Typed(cmd), len(args))
}
