package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// A picture is what is drawn: a command of a script, and the file that its output is compared with.
type picture struct {
	script, command, output string
}

// plan is the picture of the README.
func plan() picture {
	return picture{"cmd/kvap/testdata/script/migrate-guide.txtar", "kvap migrate plan policies/ --resource objects.yaml", "plan.txt"}
}

func main() {
	to := flag.String("to", "docs/plan.svg", "the picture to write")
	flag.Parse()
	if err := run(*to); err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
		os.Exit(1)
	}
}

func run(to string) error {
	p := plan()
	data, err := os.ReadFile(p.script)
	if err != nil {
		return err
	}
	drawn, err := p.draw(txtar.Parse(data))
	if err != nil {
		return fmt.Errorf("%s: %w", p.script, err)
	}
	return os.WriteFile(to, drawn, 0o644)
}

// draw is the picture, of a script that runs the command and compares its output.
func (p picture) draw(script *txtar.Archive) ([]byte, error) {
	if want := "exec " + p.command + "\ncmp stdout " + p.output + "\n"; !strings.Contains(string(script.Comment), want) {
		return nil, fmt.Errorf("it has no %q", want)
	}
	for _, f := range script.Files {
		if f.Name == p.output {
			return svg(p.command, strings.Split(strings.TrimRight(string(f.Data), "\n"), "\n")), nil
		}
	}
	return nil, fmt.Errorf("it has no file %s", p.output)
}
