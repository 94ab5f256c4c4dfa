package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/kvap/kvap/diag"
)

// WriteJUnit writes the form that build servers read: a suite for each object and one for
// the input, in which a finding at least as grave as a severity is a failure, and any other
// one is skipped. An object without findings passes.
func (c Check) WriteJUnit(w io.Writer, least diag.Severity) error {
	out := junitSuites{Name: "kvap check"}
	for _, o := range c.Objects {
		suite := junitSuite{Name: inXML(o.Kind + "/" + o.Name), File: inXML(o.File)}
		suite.findings(o.Findings, least)
		if len(suite.Cases) == 0 {
			suite.Tests++
			suite.Cases = append(suite.Cases, junitCase{Class: suite.Name, Name: "no findings", File: inXML(o.File), Line: o.Line})
		}
		out.add(suite)
	}
	if len(c.Diagnostics) > 0 {
		suite := junitSuite{Name: "input"}
		suite.findings(c.Diagnostics, least)
		out.add(suite)
	}
	return out.write(w)
}

// WriteJUnit writes the form that build servers read: a suite for each policy, in which
// a rule passes where it is native, and is skipped where it is not, or fails where that
// is asked for.
func (c Conversion) WriteJUnit(w io.Writer, strict bool) error {
	out := junitSuites{Name: "kvap convert"}
	for _, p := range c.Policies {
		suite := junitSuite{Name: inXML(p.Kind + "/" + p.title()), File: inXML(p.File)}
		for _, r := range p.Rules {
			suite.rule(p, r, strict)
		}
		out.add(suite)
	}
	return out.write(w)
}

func (s *junitSuite) rule(p Policy, r Rule, strict bool) {
	one := junitCase{Class: s.Name, Name: inXML(r.Name), File: inXML(p.File), Line: r.Line}
	s.Tests++
	message := &junitMessage{Message: inXML(codeTexts(r.Codes) + ": " + r.Reason)}
	switch {
	case r.Target == Native:
	case strict:
		s.Failures++
		one.Failure = message
	default:
		s.Skipped++
		one.Skipped = message
	}
	s.Cases = append(s.Cases, one)
}

func (s *junitSuite) findings(list []Finding, least diag.Severity) {
	for _, f := range list {
		one := junitCase{
			Class: s.Name, Name: inXML(strings.TrimSpace(f.Code.String() + " " + f.Field)), File: inXML(f.File), Line: f.Line,
		}
		s.Tests++
		switch {
		case f.Accepted != "":
			s.Skipped++
			one.Skipped = &junitMessage{Message: inXML("accepted: " + f.Message + " (" + f.Accepted + ")")}
		case f.Severity <= least:
			s.Failures++
			one.Failure = &junitMessage{inXML(f.Message), inXML(fmt.Sprintf("%s: %s\n%s", f.Pos(), f.Message, f.Expression))}
		default:
			s.Skipped++
			one.Skipped = &junitMessage{Message: inXML(f.Severity.String() + ": " + f.Message)}
		}
		s.Cases = append(s.Cases, one)
	}
}

func (out *junitSuites) add(s junitSuite) {
	out.Tests += s.Tests
	out.Failures += s.Failures
	out.Skipped += s.Skipped
	out.Suites = append(out.Suites, s)
}

func (out junitSuites) write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
