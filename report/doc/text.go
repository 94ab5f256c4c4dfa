package doc

import (
	"html"
	"strings"

	"github.com/kvap/kvap/diag"
)

// Names and messages are anybody's. Here is what each format makes of them, so that they
// neither steer a terminal, nor command the log of a build, nor are read as markup.

// inLines is a text of several lines as a terminal may have it.
func inLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = diag.Inert(lines[i])
	}
	return strings.Join(lines, "\n")
}

// inLine is a text on one line, as a terminal may have it.
func inLine(s string) string {
	for _, end := range []string{"\r\n", "\n", "\r"} {
		s = strings.ReplaceAll(s, end, " ")
	}
	return diag.Inert(s)
}

// tableCell makes s safe inside a table of Markdown.
func tableCell(s string) string { return strings.ReplaceAll(inline(s), "|", `\|`) }

// inline makes s one line that Markdown does not read as markup: a page for a review
// must load and link nothing of theirs.
func inline(s string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", `\`, `\\`,
		"](", `]\(`, "][", `]\[`, "]:", `]\:`).Replace(inLine(s))
}

// codeSpan makes s a piece of code in Markdown, whatever is in it.
func codeSpan(s string) string {
	s = inLine(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if fence == "`" {
		return fence + s + fence
	}
	return fence + " " + s + " " + fence
}

// inHTML is a text inside an element or an attribute.
func inHTML(s string) string { return html.EscapeString(inLines(s)) }

// githubData escapes what would end a workflow command, or begin another one.
func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\n", "%0A").Replace(inLines(s))
}

func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(s))
}

// OrDash is a cell that is never empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// maxMessage is how much of a message a table shows, in characters.
const maxMessage = 101

// FirstLine is the beginning of a message, for a table.
func FirstLine(s string) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if short := Cut(line, maxMessage); short != line || !more {
		return short
	}
	return line + " …"
}

// Cut is a text of at most so many characters, with a mark where it has more.
func Cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}
