package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap"
)

// A destination is where the objects of a conversion go.
type destination struct {
	dir    string // "" for standard output
	format string // yaml where empty, or json
	silent bool   // nowhere
	prune  bool   // what an earlier run wrote into the folder goes
}

// write writes the objects, and says what it did to a folder.
func (d destination) write(stdout io.Writer, done *compilation) (said string, err error) {
	switch {
	case d.silent:
		return "", nil
	case d.dir != "":
		return d.writeFolder(done)
	}
	data, err := d.marshal(done.all())
	if err != nil {
		return "", err
	}
	_, err = stdout.Write(data)
	return "", err
}

func (d destination) marshal(objects []any) ([]byte, error) {
	if d.format == "json" {
		return vap.MarshalJSON(objects...)
	}
	return vap.Marshal(objects...)
}

// writeFolder writes a file for each policy that has native objects, and one in
// remainder/ for each that has rules left.
func (d destination) writeFolder(done *compilation) (said string, err error) {
	to, err := openFolder(d.dir)
	if err != nil {
		return "", err
	}
	defer to.close()
	if err := d.writeFiles(to, done); err != nil {
		return "", err
	}
	said = fmt.Sprintf("wrote %s to %s\n", countFiles(len(to.written)), d.dir)
	switch {
	case d.prune && done.found.HasErrors(): // whose policies are not gone
		said += "nothing was removed, for some of the input could not be read\n"
	case d.prune:
		removed, kept, err := to.prune()
		if err != nil {
			return said, err
		}
		said += fmt.Sprintf("removed %s of policies that are gone\n", countFiles(removed))
		for _, name := range kept {
			said += name + " was changed since it was written, and stays\n"
		}
	}
	return said, to.finish()
}

func countFiles(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

func (d destination) writeFiles(to *folder, done *compilation) error {
	names := fileNames(done.policies)
	for _, group := range done.byPolicy() {
		name := names[group.policy]
		if group.policy == nil { // a file of its own
			name = group.objects[0].Policy.Name
		}
		var objects []any
		for _, o := range group.objects {
			objects = append(objects, o.All()...)
		}
		data, err := d.marshal(objects)
		if err != nil {
			return err
		}
		if err := to.write(name+d.extension(), data); err != nil {
			return err
		}
	}
	return writeRemainder(to, done, names)
}

// writeRemainder writes the policies of the rules that stay behind, and the
// exceptions from them.
func writeRemainder(to *folder, done *compilation, names map[*policy.Policy]string) error {
	var remaining []*policy.Policy
	rules := done.rulesOf()
	for _, p := range done.policies {
		data := remainder(p, rules[p])
		if data == nil {
			continue
		}
		remaining = append(remaining, p)
		if err := to.write("remainder/"+names[p]+".yaml", data); err != nil {
			return err
		}
	}
	for _, e := range done.exceptionsFrom(remaining) {
		name := "exception." + e.Namespace + "." + e.Name + ".yaml"
		if err := to.write("remainder/"+name, policy.Marshal(appliable(e.Source))); err != nil {
			return err
		}
	}
	return nil
}

func (d destination) extension() string {
	if d.format == "json" {
		return ".json"
	}
	return ".yaml"
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return plainPathError(err)
	}
	return plainPathError(os.WriteFile(path, data, 0o644))
}

// fileNames gives each policy a name for its files: its own, with the namespace
// in front, and with its kind and a number behind where the name is taken.
func fileNames(policies []*policy.Policy) map[*policy.Policy]string {
	names := map[*policy.Policy]string{}
	taken := map[string]bool{}
	for _, p := range policies {
		base := p.Name
		if p.Namespaced() {
			base = p.Namespace + "." + p.Name
		}
		name := base
		for n := 1; taken[name]; n++ {
			name = base + "." + strings.ToLower(p.Kind)
			if n > 1 {
				name += fmt.Sprintf("-%d", n)
			}
		}
		taken[name] = true
		names[p] = name
	}
	return names
}

func reportFormats() []string {
	return []string{"text", "json", "markdown", "sarif", "junit", "github", "html"}
}

func (f convertFlags) writeReport(cmd *cobra.Command, c report.Conversion, pairs func() []report.Pair) error {
	if f.report == "" {
		return nil
	}
	var b strings.Builder
	var err error
	switch f.reportFormat() {
	case "json":
		err = c.WriteJSON(&b)
	case "markdown":
		err = c.WriteMarkdown(&b)
	case "sarif", "github":
		err = writeAlerts(&b, f.reportFormat(), c)
	case "junit":
		err = c.WriteJUnit(&b, f.strict)
	case "html":
		err = report.Page{Title: "kvap convert", Conversion: &c, Pairs: pairs()}.WriteHTML(&b)
	default:
		err = c.WriteText(&b)
	}
	if err != nil {
		return err
	}
	if f.report == "-" {
		_, err = io.WriteString(cmd.OutOrStdout(), b.String())
		return err
	}
	if err := writeFile(f.report, []byte(b.String())); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// overwritten is the source that a file to write is, by this name or another.
func overwritten(file string, sources []source) string {
	to, err := os.Stat(file)
	if err != nil || !to.Mode().IsRegular() {
		return ""
	}
	for _, s := range sources {
		if from, err := os.Stat(s.name); err == nil && os.SameFile(from, to) {
			return s.name
		}
	}
	return ""
}

func (f convertFlags) reportFormat() string {
	if f.reportForm != "" {
		return f.reportForm
	}
	switch strings.ToLower(filepath.Ext(f.report)) {
	case ".json":
		return "json"
	case ".md":
		return "markdown"
	case ".sarif":
		return "sarif"
	case ".xml":
		return "junit"
	case ".html":
		return "html"
	}
	return "text"
}
