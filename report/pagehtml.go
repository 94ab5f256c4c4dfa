package report

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed page.css
var pageStyle string

// A markup is HTML in the making. It is no template: a template may call any method, so
// a program that has one keeps every method that it knows of.
type markup struct{ strings.Builder }

// put writes a format, which is HTML, with values, which are text.
func (m *markup) put(format string, values ...any) {
	for i, v := range values {
		values[i] = inHTML(fmt.Sprint(v))
	}
	fmt.Fprintf(m, format, values...)
}

// maybe puts a text where there is one.
func (m *markup) maybe(format, text string) {
	if text != "" {
		m.put(format, text)
	}
}

// WriteHTML writes the page.
func (p Page) WriteHTML(w io.Writer) error {
	m := &markup{}
	m.page(p.view())
	_, err := io.WriteString(w, m.String())
	return err
}

func (m *markup) page(v view) {
	m.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n")
	m.put("<title>%v</title>\n<style>\n", v.Title)
	m.WriteString(pageStyle)
	m.put("</style>\n</head>\n<body>\n<h1>%v</h1>\n", v.Title)
	m.maybe("<p class=\"soft\">%v</p>\n", v.By)
	m.cards(v)
	for _, t := range v.Tables {
		m.planned(t)
	}
	m.findings(v)
	m.releases(v.Releases)
	m.costs(v.Costs)
	m.policies(v)
	m.failed(v)
	m.suites(v.Suites)
	m.put("</body>\n</html>\n")
}

// cards are the shares, side by side.
func (m *markup) cards(v view) {
	m.put("<div class=\"cards\">\n")
	for _, s := range []*share{v.Rules, v.Found, v.Budget, v.Passed} {
		if s == nil {
			continue
		}
		m.put("<section class=\"card\">")
		m.share(s)
		if d := v.Dearest; s == v.Budget && d != nil {
			m.put("\n<p class=\"soft\">Dearest: %v %v, measured %v of %v</p>", d.Object, d.Field, d.Measured, d.Limit)
		}
		m.put("</section>\n")
	}
	m.put("</div>\n")
}

func (m *markup) share(s *share) {
	m.put("<p class=\"big\"><b>%v</b> of %v %v</p>\n", s.Good, s.All, s.What)
	m.bars(s.Bars)
	m.put("\n<ul class=\"legend\">")
	for _, b := range s.Bars {
		m.put("<li class=\"%v\">&#9632; %v %v</li>", b.Class, b.Count, b.Name)
	}
	m.put("</ul>")
	m.maybe("\n<p class=\"soft\">%v</p>", s.Note)
}

func (m *markup) bars(bars []bar) {
	var names []string
	for _, b := range bars {
		names = append(names, fmt.Sprint(b.Count, " ", b.Name))
	}
	m.put("<svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%v\">", strings.Join(names, ", "))
	for _, b := range bars {
		m.put("<rect class=\"%v\" x=\"%v\" y=\"0\" width=\"%v\" height=\"6\"></rect>", b.Class, b.From, b.Width)
	}
	m.put("</svg>")
}

func (m *markup) planned(t shownTable) {
	m.put("<h2>%v</h2>\n<p class=\"soft\">%v</p>\n", t.Title, t.Note)
	if len(t.Rows) > 0 {
		m.table(t.Rows)
	}
	m.more(t.More)
}

// table has its headings in the first row.
func (m *markup) table(rows [][]string) {
	m.put("<div class=\"scroll\"><table>")
	for i, row := range rows {
		cell := "<td>%v</td>"
		if i == 0 {
			cell = "<th>%v</th>"
		}
		m.put("<tr>")
		for _, text := range row {
			m.put(cell, text)
		}
		m.put("</tr>\n")
	}
	m.put("</table></div>\n")
}

func (m *markup) more(n int) {
	if n > 0 {
		m.put("<p class=\"soft\">%v more are left out here; the other formats have them.</p>\n", n)
	}
}

func (m *markup) findings(v view) {
	if len(v.Behind) > 0 {
		m.put("<h2>What stays behind, and why</h2>\n")
		m.groups(v.Behind)
	}
	if !v.Known {
		return
	}
	m.put("<h2>What is dangerous</h2>\n")
	m.groups(v.Findings)
	if len(v.Findings) == 0 {
		m.put("<p>Nothing: no errors and no warnings.</p>\n")
	}
	if v.Notes > 0 {
		m.put("<p class=\"soft\">%v left out here; the other formats have them.</p>\n", Count(v.Notes, "note is", "notes are"))
	}
}

func (m *markup) groups(gs []codeGroup) {
	for _, g := range gs {
		open := ""
		if g.Open {
			open = " open"
		}
		m.put("<details%v><summary><span class=\"tag %v\">%v</span> %v &times; %v</summary><div>\n", open, g.Class, g.Code, g.Count, g.Title)
		m.maybe("<p class=\"soft\">%v</p>\n", g.Remedy)
		for _, i := range g.Items {
			m.item(i)
		}
		m.more(g.More())
		m.put("</div></details>\n")
	}
}

func (m *markup) item(i item) {
	m.put("<div class=\"item\">")
	m.maybe("<p>%v</p>", i.Message)
	m.put("\n<p class=\"soft\">")
	m.maybe("%v &middot; ", i.Of)
	m.put("%v", i.Place)
	m.maybe(" &middot; in %v", i.Releases)
	m.put("</p>")
	if len(i.Expression) > 0 {
		m.put("<pre>%v\n</pre>", strings.Join(i.Expression, "\n"))
	}
	m.put("</div>\n")
}

func (m *markup) releases(rows [][]string) {
	if len(rows) > 0 {
		m.put("<h2>By release of Kubernetes</h2>\n")
		m.table(rows)
	}
}

func (m *markup) costs(cs []costBar) {
	if len(cs) == 0 {
		return
	}
	m.put("<h2>What it costs per request</h2>\n<p class=\"soft\">Estimated for large objects, and measured on generated ones by the API server's own counter, " +
		"which stops at the limit. The dearest come first.</p>\n")
	for _, c := range cs {
		m.put("<div class=\"cost\"><p>%v <code>%v</code></p>", c.Object, c.Field)
		m.put("<svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%v of %v\">", c.Estimate, c.Limit)
		m.put("<rect class=\"%v\" x=\"0\" y=\"0\" width=\"%v\" height=\"6\"></rect></svg>\n", c.Class, c.Percent)
		m.put("<p class=\"soft\">by estimate up to %v, measured %v, limit %v", c.Estimate, c.Measured, c.Limit)
		m.maybe(", safe %v", c.Safe)
		m.put("</p></div>\n")
	}
}
