package main

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report/doc"
)

// viewFlags say how much of what a run says is shown, and how.
type viewFlags struct{ quiet, verbose, noColor bool }

// add adds the flags, with what they mean to the verb; without -q where that is "".
func (f *viewFlags) add(fs *pflag.FlagSet, quiet, verbose string) {
	if quiet != "" {
		fs.BoolVarP(&f.quiet, "quiet", "q", false, quiet)
	}
	fs.BoolVarP(&f.verbose, "verbose", "v", false, verbose)
	fs.BoolVar(&f.noColor, "no-color", false, "no colours on a terminal; NO_COLOR does the same")
}

// checkView refuses flags that exclude each other.
func (f viewFlags) checkView() error {
	if f.quiet && f.verbose {
		return errors.New("-q and -v exclude each other")
	}
	return nil
}

// errorsOnly shows errors only, unless more is asked for.
func (f viewFlags) errorsOnly() viewFlags {
	f.quiet = !f.verbose
	return f
}

// say writes the diagnostics that matter at least as much as the detail wanted.
func (f viewFlags) say(cmd *cobra.Command, found diag.List, sources []input.Source) error {
	detail := f.detail()
	var shown diag.List
	for _, d := range found {
		if d.Severity <= detail {
			shown = append(shown, d)
		}
	}
	return exit.Runtime(f.text(cmd, cmd.ErrOrStderr(), sources).Write(cmd.ErrOrStderr(), shown))
}

// text is how diagnostics about the sources are written to w.
func (f viewFlags) text(cmd *cobra.Command, w io.Writer, sources []input.Source) diag.Text {
	text := map[string][]byte{}
	for _, s := range sources {
		text[s.Name] = s.Data
	}
	return diag.Text{
		Source:  func(file string) []byte { return text[file] },
		Colour:  f.wantsColour(w),
		Command: cmd.Root().DisplayName(),
	}
}

func (f viewFlags) detail() diag.Severity {
	switch {
	case f.quiet:
		return diag.Error
	case f.verbose:
		return diag.Note
	}
	return diag.Warning
}

// wantsColour tells whether what is written to w may have colours.
func (f viewFlags) wantsColour(w io.Writer) bool {
	return !f.noColor && os.Getenv("NO_COLOR") == "" && isTerminal(w)
}

// by says what makes a report. SOURCE_DATE_EPOCH gives its date where reports are compared.
func by(cmd *cobra.Command) doc.By {
	date := time.Now()
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		date = time.Unix(seconds, 0)
	}
	return doc.By{Version: command.Version(), Command: strings.Join(append([]string{cmd.Root().DisplayName()}, os.Args[1:]...), " "), Date: date}
}

// isTerminal tells whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	if o, ok := w.(*command.Output); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// writeDocument writes a report to w in one of its formats.
func (f viewFlags) writeDocument(cmd *cobra.Command, w io.Writer, format string, d doc.Document, sources []input.Source) error {
	return d.Write(w, doc.Options{Format: format, By: by(cmd), Text: f.text(cmd, w, sources)})
}

// readingAlerts are what reading the input said: what cannot be read, and what is passed over.
func readingAlerts(found diag.List) (out []doc.Alert) {
	const firstOfTranslation = diag.Code(200)
	for _, d := range found {
		if d.Severity == diag.Error || d.Code < firstOfTranslation {
			out = append(out, doc.Alert{Rule: d.Code.String(), Severity: d.Severity, Pos: d.Pos, Message: d.Message, Of: d.Path})
		}
	}
	return out
}
