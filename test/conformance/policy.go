package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A result is what became of one subject.
type result struct {
	name     string
	rules    []ruleForm
	classes  map[string]string
	cases    int // judgements: a case counts twice where it is judged as published and enforcing
	agree    int
	deviant  int // of those that agree, the ones that differ as the list of deviations says
	asked    int // cases that the interpreter was asked about
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
	engine         string // native or interp
	want, got      string
	message        string
	of             recordedCase
}

// examine judges every case of a subject: by the policy as published, and by it
// enforcing, where that may be another.
func examine(s recordedPolicy, c *compiler) (out result) {
	out.name = s.name()
	m, err := s.load()
	if err != nil {
		out.unjudged = err
		return out
	}
	out.classes = m.classes
	published := func(c recordedCase) map[string]string { return c.Verdicts }
	p, err := out.round(c, m, "published", published)
	if err == nil && m.classes != nil && !m.whole && !allEnforce(p) { // generated rules have one verdict, for the policy as it is
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
		out.rules = compiled.ruleForms()
	}
	out.refused = appendNew(out.refused, compiled.refused)
	out.warned = appendNew(out.warned, compiled.warned)
	r := round{out: out, judges: compiled.judges, mode: mode, whole: m.whole, native: compiled.anyNative(), interp: c.interp, schemas: c.options.Schemas}
	for _, rc := range m.cases {
		r.judge(rc, want(rc))
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

// A round is what the judges of a policy say of its cases, held to what is
// recorded. The native form need only admit or deny; the interpreter must give the
// recorded statuses exactly.
type round struct {
	out            *result
	judges         *judge.Judges
	mode           string
	whole          bool // one status is recorded for all forms
	native, interp bool // which judges are held to it
	schemas        *schema.Set
}

func (r round) judge(rc recordedCase, want map[string]string) {
	opinions, err := r.opinions(rc)
	if r.whole {
		opinions = gravest(opinions)
	}
	if r.native {
		r.out.cases++
		ok, deviant := r.hold("native", rc, want, opinions, err)
		r.out.agree += ok
		r.out.deviant += deviant
	}
	if r.interp {
		r.out.asked++
		ok, _ := r.hold("interp", rc, want, opinions, err)
		r.out.concur += ok
	}
}

func (r round) opinions(rc recordedCase) ([]judge.Opinion, error) {
	admission, err := interp.AdmissionOf(rc.Request)
	if err != nil {
		return nil, err
	}
	request := judge.Recorded(rc.Request, admission)
	request.NamespaceLabels, request.Roles, request.ClusterRoles = rc.NamespaceLabels, rc.Roles, rc.ClusterRoles
	return r.judges.Judge(context.Background(), request)
}

// incomplete tells of a request that no API server makes: its object lacks what validation
// insists on, and what the native form relies on.
func (r round) incomplete(rc recordedCase) bool {
	admission, err := interp.AdmissionOf(rc.Request)
	return err == nil && judge.Recorded(rc.Request, admission).Lacks(r.schemas) != ""
}

// hold holds one of the judges to a case: ok is 1 where nothing is wrong, and deviant
// is 1 where something differs as the list of deviations says.
func (r round) hold(engine string, rc recordedCase, want map[string]string, opinions []judge.Opinion, err error) (ok, deviant int) {
	if err != nil {
		r.out.wrong = append(r.out.wrong, disagreement{id: rc.ID, mode: r.mode, engine: engine, got: "unreadable", message: err.Error(), of: rc})
		return 0, 0
	}
	ok = 1
	for _, o := range opinions {
		name := o.Rule.Name
		if r.whole {
			name = o.Rule.Rule.Policy.Name
		}
		status := orNone(want[name])
		got, message, same := string(o.Kyverno), o.Message, status == string(o.Kyverno)
		if engine == "native" {
			got, message = string(o.Native), o.NativeMessage
			same = !isNative(o.Rule) || judge.Same(interp.Status(status), o.Native) || r.incomplete(rc)
		}
		switch {
		case same, got == string(interp.Unknown) && status == string(interp.Error): // what nobody gave, recorded where there was no cluster
		case engine == "native" && len(o.Deviations) > 0 && status == string(o.Kyverno) && judge.Same(o.Status, o.Native),
			excused(o.Rule.Source, rc, status, got):
			deviant = 1
		default:
			ok = 0
			r.out.wrong = append(r.out.wrong, disagreement{id: rc.ID, rule: o.Rule.Name, mode: r.mode, engine: engine, want: status, got: got, message: message, of: rc})
		}
	}
	return ok, deviant
}

// orNone is a recorded status.
func orNone(status string) string {
	switch status {
	case "":
		return string(interp.None)
	case "pass", "fail", "skip", "error", "none":
		return status
	}
	panic(fmt.Sprintf("the corpus has a status %q", status))
}
