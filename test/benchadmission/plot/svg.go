package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// The measures of the picture, in its own units.
const (
	width     = 760
	labels    = 250 // left of the bars
	values    = 60  // right of them
	top       = 64
	barHeight = 14
	rowHeight = 48
	foot      = 44
)

const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #1b1f24; } .head { font-weight: 600; font-size: 15px; } .soft { fill: #57606a; font-size: 12px; }
.admitted { fill: #0969da; } .denied { fill: #bf8700; } .grid { stroke: #d0d7de; } .spread { stroke: #1b1f24; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } .soft { fill: #9198a1; } .admitted { fill: #58a6ff; } .denied { fill: #d29922; }
.grid { stroke: #30363d; } .spread { stroke: #e6edf3; } }
</style>
`

// A canvas is a picture that is being drawn.
type canvas struct {
	bytes.Buffer
	scale float64 // units to a millisecond
}

// draw is the picture of the rows.
func draw(rows []row) []byte {
	most := 0.0
	for _, r := range rows {
		most = max(most, r.admitted.greatest, r.denied.greatest)
	}
	last := max(1, int(math.Ceil(most)))
	c := &canvas{scale: float64(width-labels-values) / float64(last)}
	height := top + rowHeight*len(rows) + foot
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(inWords(rows)))
	c.WriteString(style)
	c.text("head", 0, 18, "start", "What judging adds to a request: median, in milliseconds")
	c.legend()
	c.grid(last, height-foot)
	for i, r := range rows {
		y := top + rowHeight*i
		c.text("", labels-12, y+20, "end", r.name)
		c.text("soft", labels-12, y+35, "end", r.objects+" policy objects")
		c.bar("admitted", y+8, r.admitted)
		c.bar("denied", y+8+barHeight+2, r.denied)
	}
	c.text("soft", 0, height-6, "start", "Thin lines: the least and the greatest of the rounds. make bench-admission measures, make plot draws.")
	c.WriteString("</svg>\n")
	return c.Bytes()
}

// inWords is the picture for those who do not see it.
func inWords(rows []row) string {
	text := "What judging adds to a request, median in milliseconds, admitted and denied."
	for _, r := range rows {
		text += fmt.Sprintf(" %s: %.2f and %.2f.", r.name, r.admitted.median, r.denied.median)
	}
	return text
}

func (c *canvas) legend() {
	for i, name := range []string{"admitted", "denied"} {
		x := labels + 110*i
		fmt.Fprintf(c, `<rect class="%s" x="%d" y="34" width="12" height="12" rx="2"/>`+"\n", name, x)
		c.text("", x+18, 45, "start", name)
	}
}

// grid is a line and a number for each millisecond.
func (c *canvas) grid(last, bottom int) {
	for ms := 0; ms <= last; ms++ {
		x := c.x(float64(ms))
		fmt.Fprintf(c, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n", x, x, top, bottom)
		fmt.Fprintf(c, `<text class="soft" x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x, bottom+16, ms)
	}
}

// x is where a time is; what is below nothing is nothing.
func (c *canvas) x(ms float64) float64 { return labels + c.scale*max(0, ms) }

func (c *canvas) bar(class string, y int, s span) {
	fmt.Fprintf(c, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, labels, y, c.x(s.median)-labels, barHeight)
	middle := y + barHeight/2
	fmt.Fprintf(c, `<line class="spread" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n", c.x(s.least), c.x(s.greatest), middle, middle)
	fmt.Fprintf(c, `<text x="%.1f" y="%d">%.2f</text>`+"\n", c.x(s.greatest)+8, middle+5, s.median)
}

func (c *canvas) text(class string, x, y int, anchor, text string) {
	fmt.Fprintf(c, `<text class="%s" x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(text))
}
