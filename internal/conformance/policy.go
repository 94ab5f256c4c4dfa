package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// A result is what became of one subject.
type result struct {
	name     string
	rules    []ruleForm
	classes  map[string]string
	cases    int // judgements: a case counts twice where it is judged as published and enforcing
	agree    int
	deviant  int // of those that agree, the ones that differ as the list of deviations says
	heard    int // cases that a second engine was asked about
	concur   int // of those, the ones on which it says what is recorded
	wrong    []disagreement
	refused  []string
	warned   []string
	unjudged error // why nothing could be judged
}

func (out result) native() (n int) {
	for _, rule := range out.rules {
		if rule.native {
			n++
		}
	}
	return n
}

// A disagreement is one rule on one case.
type disagreement struct {
	id, rule, mode string // mode is published or enforcing
	engine         string // native, or the engine of an opinion
	want, got      string
	message        string
	of             recordedCase
}

// examine judges every case of a subject: by the policy as published, and by it
// enforcing, where that may be another.
func examine(s subject, c *compiler) (out result) {
	out.name = s.name()
	m, err := s.load()
	if err != nil {
		out.unjudged = err
		return out
	}
	out.classes = m.classes
	published := func(c recordedCase) map[string]string { return c.Verdicts }
	p, err := out.round(c, m, "published", published)
	if err == nil && m.classes != nil && !allEnforce(p) { // generated rules have one verdict, for the policy as it is
		m.source, err = enforcing(m.source)
		if err == nil {
			_, err = out.round(c, m, "enforcing", recordedCase.enforced)
		}
	}
	out.unjudged = err
	return out
}

// round judges every case by one form of the policy.
func (out *result) round(c *compiler, m material, mode string, want func(recordedCase) map[string]string) (*policy.Policy, error) {
	compiled, err := c.compile(m)
	if err != nil {
		return nil, err
	}
	if out.rules == nil {
		out.rules = compiled.rules
	}
	out.refused = appendNew(out.refused, compiled.refused)
	out.warned = appendNew(out.warned, compiled.warned)
	if compiled.anyNative() {
		out.judge(compiled, mode, m.cases, want)
	}
	if compiled.opinion != nil {
		out.hear(compiled.opinion, compiled.policy, mode, m.cases, want)
	}
	return compiled.policy, nil
}

func appendNew(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func allEnforce(p *policy.Policy) bool {
	if len(p.Overrides) > 0 {
		return false
	}
	for _, r := range p.Rules {
		if r.Validate == nil {
			continue
		}
		action := r.Validate.Action
		if action == "" {
			action = p.Action
		}
		if action != policy.Enforce || len(r.Validate.Overrides) > 0 {
			return false
		}
	}
	return true
}

func (out *result) judge(c *compiled, mode string, cases []recordedCase, want func(recordedCase) map[string]string) {
	for _, rc := range cases {
		out.cases++
		got, err := c.outcomes(rc)
		if err != nil {
			out.wrong = append(out.wrong, disagreement{id: rc.ID, mode: mode, engine: "native", got: "unreadable", message: err.Error(), of: rc})
			continue
		}
		wrong, deviant := compare(c, mode, rc, want(rc), got)
		if len(wrong) == 0 {
			out.agree++
		}
		if deviant {
			out.deviant++
		}
		out.wrong = append(out.wrong, wrong...)
	}
}

// An outcome is what the native form of a rule says.
type outcome struct {
	vap.Outcome
	message string
}

// outcomes are those of the rules, over all policies and bindings made from them.
func (c *compiled) outcomes(rc recordedCase) (map[string]outcome, error) {
	verdicts, err := c.judge.Review(context.Background(), rc.Request, rc.NamespaceLabels)
	if err != nil {
		return nil, err
	}
	out := map[string]outcome{}
	for _, v := range verdicts {
		translation := c.members[v.Policy]
		for i, r := range v.Members(translation) {
			name := translation.Members[i].Rule
			if graver(r.Outcome, out[name].Outcome) {
				out[name] = outcome{r.Outcome, r.Message}
			}
		}
	}
	return out, nil
}

// graver orders outcomes: what does not match, allows, errs, denies.
func graver(a, b vap.Outcome) bool {
	order := []vap.Outcome{"", vap.NoMatch, vap.Allow, vap.Error, vap.Deny}
	return slices.Index(order, a) > slices.Index(order, b)
}

// compare holds each native rule to its recorded status. A rule that has none
// must admit.
func compare(c *compiled, mode string, rc recordedCase, want map[string]string, got map[string]outcome) (wrong []disagreement, deviant bool) {
	for _, rule := range c.rules {
		if !rule.native {
			continue
		}
		o := got[rule.name]
		status := want[rule.name]
		if agrees(status, o.Outcome) {
			continue
		}
		text := string(o.Outcome)
		if text == "" {
			text = string(vap.NoMatch)
		}
		if excused(rule.source, rc, orNone(status), text) {
			deviant = true
			continue
		}
		wrong = append(wrong, disagreement{id: rc.ID, rule: rule.name, mode: mode, engine: "native", want: orNone(status), got: text, message: o.message, of: rc})
	}
	return wrong, deviant
}

// agrees tells whether an outcome is what the recorded status asks for.
func agrees(status string, o vap.Outcome) bool {
	switch status {
	case "fail":
		return o == vap.Deny
	case "error":
		return o == vap.Deny || o == vap.Error
	case "pass", "skip", "none", "":
		return o != vap.Deny && o != vap.Error
	}
	panic(fmt.Sprintf("the corpus has a status %q", status))
}
