package main

import (
	"io"
	"os"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report"
)

// printDiagnostics writes what matters at least as much as the detail wanted.
func (f convertFlags) printDiagnostics(w io.Writer, found diag.List, sources []input.Source, command string) error {
	detail := f.detail()
	var shown diag.List
	for _, d := range found {
		if d.Severity <= detail {
			shown = append(shown, d)
		}
	}
	return f.diagnosticText(w, sources, command).Write(w, shown)
}

// diagnosticText is how diagnostics about the sources are written to w.
func (f convertFlags) diagnosticText(w io.Writer, sources []input.Source, command string) diag.Text {
	text := map[string][]byte{}
	for _, s := range sources {
		text[s.Name] = s.Data
	}
	return diag.Text{
		Source:  func(file string) []byte { return text[file] },
		Colour:  wantsColour(w, f.noColor),
		Command: command,
	}
}

// wantsColour tells whether what is written to w may have colours.
func wantsColour(w io.Writer, noColor bool) bool {
	return !noColor && os.Getenv("NO_COLOR") == "" && isTerminal(w)
}

// inColour is w, with the words of tables painted where it may have colours.
func inColour(w io.Writer, noColor bool) io.Writer {
	if wantsColour(w, noColor) {
		return report.Coloured{Writer: w}
	}
	return w
}

// isTerminal tells whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (f convertFlags) detail() diag.Severity {
	switch {
	case f.quiet:
		return diag.Error
	case f.verbose:
		return diag.Note
	}
	return diag.Warning
}
