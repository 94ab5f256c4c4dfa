package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// overPayloads judges each JSON document of the suite, which is no Kubernetes object. Nothing
// of it happens at admission, so the interpreter decides alone.
func (r *run) overPayloads(row Row, judge func(document map[string]any) (interp.RuleResult, error)) (out []RowResult) {
	names := r.suite.payloads()
	if len(names) == 0 {
		return r.each(row, RowResult{Verdict: NotJudged, Reason: "the policy is for JSON documents (evaluation.mode: JSON), and the suite has no jsonPayload"})
	}
	for i, name := range names {
		if !r.meansPayload(row, name) {
			continue
		}
		one := RowResult{Resource: name}
		document, err := r.document(name, i)
		var got interp.RuleResult
		if err == nil {
			got, err = judge(document)
		}
		if err != nil {
			one.Verdict, one.Reason = NotJudged, err.Error()
		} else {
			one.alone(row.Expected(), got, "Ok (JSON document)")
		}
		out = append(out, one)
	}
	return out
}

// meansPayload tells whether a row is about a JSON document. Where it names none of the
// suite's it is about all, as on the Kyverno command line.
func (r *run) meansPayload(row Row, name string) bool {
	same := func(a, b string) bool { return strings.TrimPrefix(a, "./") == strings.TrimPrefix(b, "./") }
	named := func(payload string) bool {
		return slices.ContainsFunc(row.names(), func(wanted string) bool { return same(wanted, payload) })
	}
	return named(name) || !slices.ContainsFunc(r.suite.payloads(), named)
}

// alone holds what the interpreter says to what is wanted, where there is no native form.
func (out *RowResult) alone(want string, got interp.RuleResult, ok string) {
	out.Form, out.Interp, out.Message = got.Rule, string(got.Status), got.Message
	switch {
	case got.Code != 0:
		out.Verdict, out.Reason = NotJudged, got.Message
	case got.Status == interp.None:
		out.unlooked(want)
	case string(got.Status) != want:
		out.Verdict, out.Reason = Failed, fmt.Sprintf("Want %s, got %s", want, got.Status)
	default:
		out.Verdict, out.Reason = Passed, ok
	}
}

// payload judges a row of a policy for JSON documents.
func (r *run) payload(ctx context.Context, row Row, p *policy.Policy) []RowResult {
	in := interp.New([]*policy.Policy{p}, r.exceptions, r.world(r.objects), interp.Limits{})
	return r.overPayloads(row, func(document map[string]any) (interp.RuleResult, error) {
		got := interp.RuleResult{Status: interp.None}
		for _, res := range in.Judge(ctx, &interp.Request{Document: true, Admission: map[string]any{"operation": "CREATE", "object": document}}) {
			if got.Status == interp.None {
				got = res
			}
		}
		got.Rule = p.Name
		return got, nil
	})
}

// payloads are the files with JSON documents.
func (s *Suite) payloads() []string {
	if len(s.JSONPayloads) == 0 && s.JSONPayload != "" {
		return []string{s.JSONPayload}
	}
	return s.JSONPayloads
}

// document is one of the suite's payloads.
func (r *run) document(name string, i int) (map[string]any, error) {
	place := r.suite.place("jsonPayload", 0)
	if len(r.suite.JSONPayloads) > 0 {
		place = r.suite.place("jsonPayloads", i)
	}
	var all [][]byte
	found := r.suite.eachFile(name, place, func(_ string, data []byte) diag.List {
		texts, _ := manifest.Documents(data)
		all = append(all, texts...)
		return nil
	})
	switch {
	case len(found) > 0:
		return nil, errors.New(found[0].Message)
	case len(all) != 1:
		return nil, fmt.Errorf("%s has %d documents, and a JSON payload is one", name, len(all))
	}
	document, err := manifest.Map(all[0])
	if err != nil {
		return nil, fmt.Errorf("%s is no JSON object: %w", name, err)
	}
	return document, nil
}
