package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Page is a manual page of section 1.
type Page struct {
	File string
	Text string
}

// Pages are those of a command and of all below it. Source names the program and its version.
func Pages(root *cobra.Command, source string) (pages []Page) {
	pages = append(pages, page(root, source))
	for _, c := range root.Commands() {
		if !c.Hidden {
			pages = append(pages, Pages(c, source)...)
		}
	}
	return pages
}

// name is that of a command's page: its words with dashes between them.
func name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func page(c *cobra.Command, source string) Page {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"%s\" \"Manual of %s\"\n", strings.ToUpper(name(c)), source, c.Root().Name())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", text(name(c)), text(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", text(c.UseLine()))
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	paragraphs(&b, long)
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n" + text(c.Example) + "\n.fi\n")
	}
	options(&b, "OPTIONS", c.NonInheritedFlags())
	options(&b, "OPTIONS OF ALL VERBS", c.InheritedFlags())
	var others []string
	if c.HasParent() {
		others = append(others, name(c.Parent()))
	}
	for _, below := range c.Commands() {
		if !below.Hidden {
			others = append(others, name(below))
		}
	}
	if len(others) > 0 {
		b.WriteString(".SH SEE ALSO\n" + text(strings.Join(others, "(1), ")+"(1)") + "\n")
	}
	return Page{File: name(c) + ".1", Text: b.String()}
}

func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		word := "--" + f.Name
		if f.Shorthand != "" {
			word = "-" + f.Shorthand + ", " + word
		}
		if value != "" {
			word += " " + value
		}
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", text(word), text(usage))
	})
}

// paragraphs keeps lines that are indented as they are, and has others flow.
func paragraphs(b *strings.Builder, long string) {
	for i, p := range strings.Split(strings.TrimSpace(long), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(p, " ") || strings.HasPrefix(p, "\t") {
			p = ".nf\n" + text(p) + "\n.fi"
		} else {
			p = text(p)
		}
		b.WriteString(p + "\n")
	}
}

// text is none of roff's requests or escapes, whatever stands in it.
func text(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
