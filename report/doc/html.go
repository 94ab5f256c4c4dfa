package doc

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kvap/kvap/diag"
)

//go:embed page.css
var pageStyle string

// What the page has at most: it must stay a page, but a change request is read whole.
const (
	mostItems = 50      // of one kind
	mostRows  = 500     // of a table
	mostPairs = 4 << 20 // characters of sources and expressions
)

// A markup is HTML in the making. It is no template: a template may call any method, so
// a program that has one keeps every method that it knows of.
type markup struct {
	strings.Builder
	pairs int // characters of pairs so far
}

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

// page is one page of its own: it loads nothing.
func page(d Document, by By) string {
	m := &markup{}
	m.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n")
	m.put("<title>%v</title>\n<style>\n", d.Title)
	m.WriteString(pageStyle)
	m.put("</style>\n</head>\n<body>\n<h1>%v</h1>\n", d.Title)
	if by != (By{}) {
		m.put("<p class=\"soft\">kvap %v, %v: %v</p>\n", by.Version, by.Date.UTC().Format(time.RFC3339), by.Command)
	}
	m.section(d.Totals)
	m.put("<div class=\"cards\">\n")
	for _, s := range d.Shares {
		m.share(s)
	}
	m.put("</div>\n")
	for _, s := range d.of(HTML) {
		m.section(s)
	}
	m.put("</body>\n</html>\n")
	return m.String()
}

func (m *markup) section(s Section) {
	m.maybe("<h2>%v</h2>\n", s.Title)
	for _, p := range paragraphs(s.Text) {
		m.put("<p class=\"soft\">%v</p>\n", p)
	}
	m.table(s.Table)
	items := s.Items
	for _, a := range s.Alerts {
		if a.Accepted == "" {
			code, _ := diag.ParseCode(a.Rule)
			items = append(items, Item{Of: nonempty(a.Short), Text: a.Message, Place: placeOf(a), Group: code, Class: a.Severity.String(), Code: strings.Join(a.Excerpt, "\n")})
		}
	}
	switch {
	case s.Grouped:
		m.groups(items)
	case s.Numbered:
		m.put("<ol>\n")
		for _, i := range items {
			m.put("<li>%v</li>\n", strings.Join(append(slices.Clone(i.Of), i.Text), ": "))
		}
		m.put("</ol>\n")
	default:
		m.items(items)
	}
	for _, f := range s.Folds {
		m.fold(f)
	}
}

func placeOf(a Alert) string {
	if a.Releases == "" {
		return a.Pos.String()
	}
	return a.Pos.String() + " · in " + a.Releases
}

func nonempty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func (m *markup) share(s Share) {
	all := 0
	for _, b := range s.Bars {
		all += b.Count
	}
	m.put("<section class=\"card\"><p class=\"big\"><b>%v</b> of %v %v</p>\n", s.Bars[0].Count, all, s.What)
	m.bars(s.Bars)
	m.put("\n<ul class=\"legend\">")
	for _, b := range s.Bars {
		if b.Count > 0 {
			m.put("<li class=\"%v\">&#9632; %v %v</li>", b.Class, b.Count, b.Name)
		}
	}
	m.put("</ul>")
	m.maybe("\n<p class=\"soft\">%v</p>", s.Note)
	m.put("</section>\n")
}

// bars are the parts side by side.
func (m *markup) bars(bars []Bar) {
	var all, from float64
	var names []string
	for _, b := range bars {
		if all += float64(b.Count); b.Count > 0 && b.Name != "" {
			names = append(names, fmt.Sprint(b.Count, " ", b.Name))
		}
	}
	m.put("<svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%v\">", strings.Join(names, ", "))
	for _, b := range bars {
		if width := 100 * float64(b.Count) / max(all, 1); width > 0 {
			if b.Class != "" {
				m.put("<rect class=\"%v\" x=\"%v\" y=\"0\" width=\"%v\" height=\"6\"></rect>", b.Class, from, width)
			}
			from += width
		}
	}
	m.put("</svg>\n")
}

// table has its headings in the first row.
func (m *markup) table(rows [][]string) {
	if len(rows) < 2 {
		return
	}
	m.put("<div class=\"scroll\"><table>")
	for i, row := range rows[:min(len(rows), mostRows+1)] {
		m.put("<tr>")
		for column, text := range row {
			switch tone := toneOf(rows[0][column], text); {
			case i == 0 && text != "":
				m.put("<th>%v</th>", strings.ToUpper(text[:1])+text[1:])
			case tone != "":
				m.put("<td class=\"%v\">%v</td>", tone, text)
			default:
				m.put("<td>%v</td>", text)
			}
		}
		m.put("</tr>\n")
	}
	m.put("</table></div>\n")
	m.more(len(rows) - 1 - mostRows)
}

func (m *markup) more(n int) {
	if n > 0 {
		m.put("<p class=\"soft\">%v more are left out here; the other formats have them.</p>\n", n)
	}
}

// groups are the items of each code and class, the gravest first, then the most.
func (m *markup) groups(items []Item) {
	type coded struct {
		Item
		items []Item
	}
	var groups []*coded
	at := map[[2]string]*coded{}
	for _, i := range items {
		key := [2]string{i.Group.String(), i.Class}
		if at[key] == nil {
			at[key] = &coded{Item: i}
			groups = append(groups, at[key])
		}
		at[key].items = append(at[key].items, i)
	}
	slices.SortStableFunc(groups, func(a, b *coded) int {
		gravest := []string{diag.Error.String(), diag.Warning.String(), diag.Note.String()}
		return cmp.Or(slices.Index(gravest, a.Class)-slices.Index(gravest, b.Class), len(b.items)-len(a.items))
	})
	for _, g := range groups {
		open, code, title := "", "", "without a code"
		if g.Class == diag.Error.String() {
			open = " open"
		}
		if g.Group != 0 {
			code = g.Group.String()
			_, title = diag.Title(g.Group)
		}
		m.put("<details"+open+"><summary><span class=\"tag %v\">%v</span> %v &times; %v</summary><div>\n", g.Class, code, len(g.items), title)
		if g.Group != 0 {
			m.maybe("<p class=\"soft\">%v</p>\n", diag.Remedy(g.Group))
		}
		m.items(g.items)
		m.put("</div></details>\n")
	}
}

func (m *markup) items(items []Item) {
	for _, i := range items[:min(len(items), mostItems)] {
		m.item(i)
	}
	m.more(len(items) - mostItems)
}

func (m *markup) item(i Item) {
	m.put("<div class=\"item\"><p>")
	if len(i.Of) > 0 {
		m.put("<strong>%v</strong> ", strings.Join(i.Of, " / "))
	}
	if i.Tag != "" {
		m.put("<span class=\"tag %v\">%v</span> ", i.Class, i.Tag)
	}
	m.put("%v</p>\n", i.Text)
	if len(i.Bars) > 0 {
		m.bars(i.Bars)
	}
	m.maybe("<p class=\"soft\">%v</p>\n", i.Place)
	m.maybe("<pre>%v\n</pre>", i.Code)
	for _, one := range i.Items {
		m.item(one)
	}
	m.put("</div>\n")
}

func (m *markup) fold(f Fold) {
	m.put("<details><summary><strong>%v</strong> <span class=\"soft\">%v</span>\n", f.Title, f.Note)
	m.bars(f.Bars)
	m.put("</summary><div>\n")
	m.table(f.Table)
	for _, p := range f.Pairs {
		m.pair(p)
	}
	m.put("</div></details>\n")
}

// pair writes a rule, and beside it what it became, while there is room.
func (m *markup) pair(p Pair) {
	m.put("<h3>%v <span class=\"tag %v\">%v</span> <span class=\"soft\">%v</span></h3>\n", p.Rule, p.Target, p.Target, p.Codes)
	m.maybe("<p>%v</p>\n", p.Reason)
	if len(p.Expressions) == 0 {
		return
	}
	for _, l := range p.Source {
		m.pairs += len(l.Text)
	}
	for _, e := range p.Expressions {
		m.pairs += len(e.Text)
	}
	if m.pairs > mostPairs {
		m.put("<p class=\"soft\">There are more rules than this page can show beside what they became.</p>\n")
		return
	}
	m.put("<div class=\"pair\"><div><p class=\"soft\">%v</p><pre>", p.File)
	for _, l := range p.Source {
		m.put("<span class=\"l m%v\"><span class=\"n\">%v</span>%v</span>", l.Mark, l.Number, l.Text)
	}
	m.put("</pre></div>\n<div>")
	for _, e := range p.Expressions {
		m.put("<p class=\"soft\">%v %v</p><pre class=\"m%v\">%v</pre>", e.Object, e.Field, e.Mark, e.Text)
	}
	m.put("</div></div>\n")
}
