package main

import (
	"fmt"
	"html"
	"strings"
)

const (
	columns    = 118         // as many as most terminals and pages have room for
	textWidth  = columns * 8 // of a monospaced font of 13 pixels
	lineHeight = 18
	margin     = 16
	titleBar   = 30
)

// svg draws a window with the command behind a prompt, and the lines below it.
func svg(command string, lines []string) []byte {
	width := textWidth + 2*margin
	height := titleBar + (len(lines)+1)*lineHeight + 2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "  <title>%s</title>\n", html.EscapeString(command))
	fmt.Fprintf(&b, `  <rect width="%d" height="%d" rx="8" fill="#161b22"/>`+"\n", width, height)
	for i, colour := range []string{"#ff5f56", "#ffbd2e", "#27c93f"} {
		fmt.Fprintf(&b, `  <circle cx="%d" cy="%d" r="5" fill="%s"/>`+"\n", margin+5+18*i, titleBar/2+2, colour)
	}
	b.WriteString(`  <g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" fill="#c9d1d9" xml:space="preserve" style="white-space:pre">` + "\n")
	y := titleBar + margin
	fmt.Fprintf(&b, `    <text x="%d" y="%d"><tspan fill="#7ee787">$</tspan> <tspan fill="#ffffff">%s</tspan></text>`+"\n", margin, y, html.EscapeString(command))
	for _, line := range lines {
		y += lineHeight
		fill := ""
		if heading(line) {
			fill = ` fill="#79c0ff"`
		}
		fmt.Fprintf(&b, `    <text x="%d" y="%d"%s>%s</text>`+"\n", margin, y, fill, html.EscapeString(cut(line)))
	}
	b.WriteString("  </g>\n</svg>\n")
	return []byte(b.String())
}

// heading is a line with the names of a table's columns.
func heading(line string) bool { return line != "" && line == strings.ToUpper(line) }

// cut shortens a line to what there is room for.
func cut(line string) string {
	if text := []rune(line); len(text) > columns {
		return string(text[:columns-1]) + "…"
	}
	return line
}
