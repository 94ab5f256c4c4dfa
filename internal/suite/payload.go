package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// payload judges a row of a policy for JSON documents: the suite's payload, which is
// no Kubernetes object. Nothing of it happens at admission, so the interpreter decides
// alone.
func (r *run) payload(ctx context.Context, row Row, p *policy.Policy) []Result {
	out := Result{Resource: r.suite.JSONPayload}
	document, err := r.document()
	if err == nil {
		p, err = forObjects(p)
	}
	if err != nil {
		return r.each(row, Result{Verdict: NotJudged, Reason: err.Error()})
	}
	in := interp.New([]*policy.Policy{p}, nil, r.world(r.objects), interp.Limits{})
	got := interp.RuleResult{Status: interp.None}
	for _, res := range in.Judge(ctx, &interp.Request{Admission: map[string]any{
		"operation": "CREATE", "kind": map[string]any{"group": "", "version": "v1", "kind": "Payload"},
		"resource": map[string]any{"group": "", "version": "v1", "resource": "payloads"}, "object": document,
	}}) {
		if got.Status == interp.None {
			got = res
		}
	}
	out.Form, out.Interp, out.Message = p.Name, string(got.Status), got.Message
	switch want := row.Expected(); {
	case got.Code != 0:
		out.Verdict, out.Reason = NotJudged, got.Message
	case got.Status == interp.None:
		out.unlooked(want)
	case string(got.Status) != want:
		out.Verdict, out.Reason = Failed, fmt.Sprintf("Want %s, got %s", want, got.Status)
	default:
		out.Verdict, out.Reason = Passed, "Ok (JSON document)"
	}
	return []Result{out}
}

// document is the suite's payload.
func (r *run) document() (map[string]any, error) {
	if r.suite.JSONPayload == "" {
		return nil, errors.New("the policy is for JSON documents (evaluation.mode: JSON), and the suite has no jsonPayload")
	}
	var document map[string]any
	var wrong error
	found := r.suite.eachFile(r.suite.JSONPayload, r.suite.place("jsonPayload", 0), func(_ string, data []byte) diag.List {
		text, err := yaml.YAMLToJSON(data)
		if err == nil {
			err = kjson.Unmarshal(text, &document)
		}
		wrong = err
		return nil
	})
	switch {
	case len(found) > 0:
		return nil, errors.New(found[0].Message)
	case wrong != nil:
		return nil, fmt.Errorf("%s is no JSON object: %w", r.suite.JSONPayload, wrong)
	}
	return document, nil
}

// forObjects is a policy for JSON documents as one that judges any object.
func forObjects(p *policy.Policy) (*policy.Policy, error) {
	source, _ := p.Source.Value().(map[string]any)
	spec, _ := source["spec"].(map[string]any)
	source, spec = maps.Clone(source), maps.Clone(spec)
	delete(spec, "evaluation")
	all := []any{"*"}
	spec["matchConstraints"] = map[string]any{"resourceRules": []any{
		map[string]any{"apiGroups": all, "apiVersions": all, "operations": all, "resources": all},
	}}
	source["spec"] = spec
	text, err := json.Marshal(source)
	if err != nil {
		return nil, err
	}
	f, _ := policy.Parse(p.Pos.File, text)
	if len(f.Policies) != 1 {
		return nil, errors.New("the policy cannot be read as one for objects")
	}
	return f.Policies[0], nil
}
