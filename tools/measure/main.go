package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// page is where the tables are written.
const page = "docs/core.md"

func main() {
	corpus := flag.String("corpus", "../shared/corpus", "the folder of the corpus")
	update := flag.Bool("update", false, "write the table into "+page)
	list := flag.Bool("list", false, "with reach: list the functions that nothing real reaches")
	only := flag.String("only", "", "with worth: only mechanisms that have this in their names")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Arg(0), *corpus, choices{*update, *list, *only}); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// choices are those of a run.
type choices struct {
	update, list bool
	only         string
}

func run(ctx context.Context, what, corpus string, c choices) error {
	sets, err := setsOf(corpus)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "measure")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // it is in the folder for temporary files
	switch what {
	case "reach":
		return reach(ctx, sets, scratch, c)
	case "worth":
		return worth(ctx, sets, scratch, c)
	}
	return errors.New("say reach or worth")
}

// A set is policies that are counted together.
type set struct {
	name  string
	paths []string
}

// setsOf are the sets, those first that say most of what users have.
func setsOf(corpus string) ([]set, error) {
	sets := []set{
		{"public", []string{"policies", "mutate", "generate", "cleanup", "validatingpolicy", "mutatingpolicy"}},
		{"organisations", []string{"realworld"}},
		{"tests", []string{"conformance", "cli"}},
	}
	for _, s := range sets {
		for i, path := range s.paths {
			s.paths[i] = filepath.Join(corpus, path)
			if _, err := os.Stat(s.paths[i]); err != nil {
				return nil, err
			}
		}
	}
	return append(sets, set{"fixtures", []string{"fixtures"}}), nil
}

// build builds package lower.
func build(ctx context.Context, program string, flags ...string) error {
	args := slices.Concat([]string{"build", "-o", program}, flags, []string{"./tools/measure/lower"})
	return execute(exec.CommandContext(ctx, "go", args...))
}

// execute runs a command, which prints nothing that matters where it succeeds.
func execute(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// write prints a table, or writes it between the marks that name it.
func write(name, table string, update bool) error {
	if !update {
		fmt.Print(table)
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no marks of %s", page, name)
	}
	return os.WriteFile(page, []byte(before+begin+table+end+after), 0o644)
}
