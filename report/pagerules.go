package report

func (m *markup) policies(v view) {
	if len(v.Policies) == 0 {
		return
	}
	m.put("<h2>Policies</h2>\n")
	if v.Unpaired {
		m.put("<p class=\"soft\">There are more rules than this page can show beside what they became.</p>\n")
	}
	for _, p := range v.Policies {
		m.put("<details><summary><strong>%v</strong> <span class=\"soft\">%v %v</span>\n", p.Title, p.Kind, p.File)
		m.bars(p.Share.Bars)
		m.put("</summary><div>\n")
		for _, r := range p.Rules {
			m.rule(r)
		}
		m.put("</div></details>\n")
	}
}

func (m *markup) rule(r shownRule) {
	m.put("<h3>%v <span class=\"tag %v\">%v</span> <span class=\"soft\">%v</span></h3>\n", r.Name, r.Target, r.Target, r.Codes)
	m.maybe("<p>%v</p>\n", r.Reason)
	if r.Pair == nil {
		return
	}
	m.put("<div class=\"pair\"><div><p class=\"soft\">%v</p><pre>", r.Pair.File)
	for _, l := range r.Pair.Source {
		m.put("<span class=\"l m%v\"><span class=\"n\">%v</span>%v</span>", l.Mark, l.Number, l.Text)
	}
	m.put("</pre></div>\n<div>")
	for _, e := range r.Pair.Expressions {
		m.put("<p class=\"soft\">%v %v</p><pre class=\"m%v\">%v</pre>", e.Object, e.Field, e.Mark, e.Text)
	}
	m.put("</div></div>\n")
}

func (m *markup) failed(v view) {
	if len(v.Failed) == 0 {
		return
	}
	m.put("<h2>What failed</h2>\n")
	for _, t := range v.Failed {
		m.put("<div class=\"item\"><p><span class=\"tag bad\">%v / %v</span> on %v: expected %v; %v</p>\n", t.Policy, t.Of, t.Resource, t.Expected, t.Reason)
		m.put("<p class=\"soft\">%v</p>", t.Place)
		if t.Difference != "" {
			m.put("<pre>%v</pre>", t.Difference)
		} else {
			m.maybe("<pre>%v</pre>", t.Message)
		}
		m.put("</div>\n")
	}
	if v.Unshown > 0 {
		m.put("<p class=\"soft\">%v more are in the suites below.</p>\n", v.Unshown)
	}
}

func (m *markup) suites(suites []shownSuite) {
	if len(suites) == 0 {
		return
	}
	m.put("<h2>Suites</h2>\n")
	for _, s := range suites {
		m.put("<details><summary><strong>%v</strong> <span class=\"soft\">%v of %v passed &middot; %v</span>\n", s.Name, s.Share.Good, s.Share.All, s.File)
		m.bars(s.Share.Bars)
		m.put("</summary><div class=\"scroll\"><table><tr><th>Policy</th><th>Rule</th><th>Resource</th><th>Expected</th><th>Result</th><th>Reason</th></tr>\n")
		for _, r := range s.Rows {
			m.put("<tr><td>%v</td><td>%v</td><td>%v</td><td>%v</td><td class=\"%v\">%v</td><td>%v</td></tr>\n", r.Policy, r.Of, r.Resource, r.Expected, r.Class, r.Word, r.Reason)
		}
		m.put("</table></div></details>\n")
	}
}
