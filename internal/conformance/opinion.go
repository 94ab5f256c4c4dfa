package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/policy"
)

// An opinion is what another engine says of a case: a status for each rule that
// it has something to say of, as the corpus records them.
type opinion interface {
	statuses(rc recordedCase) (map[string]string, error)
}

// An engine gives an opinion by one policy. Its statuses must be the recorded
// ones exactly, where the native form need only admit or deny.
type engine func(p *policy.Policy, exceptions []*policy.Exception, params []*unstructured.Unstructured) opinion

// hear compares an opinion with the recorded statuses of every case.
func (out *result) hear(o opinion, p *policy.Policy, mode string, cases []recordedCase, want func(recordedCase) map[string]string) {
	rules := policy.Expand(p)
	for _, rc := range cases {
		out.heard++
		got, err := o.statuses(rc)
		if err != nil {
			out.wrong = append(out.wrong, disagreement{id: rc.ID, mode: mode, engine: "interp", got: "unreadable", message: err.Error(), of: rc})
			continue
		}
		wrong := false
		for _, rule := range rules {
			w, g := orNone(want(rc)[rule.Name]), orNone(got[rule.Name])
			if w == g {
				continue
			}
			if excused(rule, rc, w, g) {
				continue
			}
			wrong = true
			out.wrong = append(out.wrong, disagreement{id: rc.ID, rule: rule.Name, mode: mode, engine: "interp", want: w, got: g, of: rc})
		}
		if !wrong {
			out.concur++
		}
	}
}

func orNone(status string) string {
	if status == "" {
		return "none"
	}
	return status
}
