package suite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/deviation"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// judge judges one resource by the rules that a row means.
func (r *run) judge(ctx context.Context, row Row, p *policy.Policy, o manifest.Object) []RowResult {
	base := RowResult{Resource: o.Title(), Kind: o.Kind()}
	refuse := func(format string, args ...any) []RowResult {
		base.Verdict, base.Reason = NotJudged, fmt.Sprintf(format, args...)
		return []RowResult{base}
	}
	s := r.session(p, o.Meta("name"))
	if s.err != nil {
		return refuse("%v", s.err)
	}
	request, err := r.request(s, p.Name, r.origin(p, row), row.Operation, o)
	if err == nil {
		request, err = r.mutated(ctx, request, o, nil)
	}
	if err == nil {
		request, err = r.pinned(ctx, request, p)
	}
	if err != nil {
		return refuse("%v", err)
	}
	opinions, err := s.judges.Judge(ctx, request)
	if err != nil {
		return refuse("%v", err)
	}
	var out []RowResult
	for _, op := range opinions {
		switch {
		case op.Rule.Source != nil && !row.means(op.Rule.Name):
			continue
		case says(op) == string(interp.None) && op.Rule.Rule.Policy.ImagePolicy() != nil:
			continue
		case op.Rule.Source == nil && op.Rule.Rule.Target != translate.Native: // nobody judges it
		case says(op) == string(interp.None) && op.Agree():
			continue
		}
		result := base
		r.weigh(&result, row, p, s, request, op)
		out = append(out, result)
	}
	if out == nil {
		base.unlooked(row.Expected())
		out = append(out, base)
	}
	return out
}

// unlooked is the verdict where no rule looked at the resource.
func (out *RowResult) unlooked(want string) {
	out.Verdict, out.Reason = Excluded, "no rule looks at the resource"
	if want == string(interp.Skip) {
		out.Verdict, out.Reason = Passed, "Excluded"
	}
}

// says is the status that is compared with what a row expects: the interpreter's.
func says(o judge.Opinion) string { return string(o.Kyverno) }

// statusOf is an outcome in the words of suites.
func statusOf(o apiserver.Outcome) string {
	switch o {
	case apiserver.Allow:
		return string(interp.Pass)
	case apiserver.Deny:
		return string(interp.Fail)
	case apiserver.Error:
		return string(interp.Error)
	}
	return string(interp.None)
}

// weigh holds both opinions to what the row expects.
func (r *run) weigh(out *RowResult, row Row, p *policy.Policy, s *session, request *judge.Request, o judge.Opinion) {
	out.Expected = row.Expected()
	out.Form, out.Message = o.Rule.Name, o.Message
	got := says(o)
	if string(o.Status) == row.Expected() { // the suite was written for kvap
		got = string(o.Status)
	}
	if got == string(interp.Fail) && p.Annotations["policies.kyverno.io/scored"] == "false" {
		got = "warn"
	}
	out.Interp = string(o.Status)
	if o.Code != 0 || o.Status == interp.Unknown || row.Expected() != string(interp.Error) && unanswered(o) {
		out.Verdict, out.Reason = NotJudged, o.Message
		return
	}
	why := r.notNative(s, o)
	if sub, _ := request.Admission()["subResource"].(string); why == "" && sub != "" && row.Operation == "" {
		why = "interpreter only: nobody creates the subresource " + sub
	}
	if lacks := request.Lacks(r.runner.Schemas); why == "" && lacks != "" && !nativeGives(row.Expected(), o.Native) {
		why = "interpreter only: " + lacks + " is missing, and no API server asks about such an object"
	}
	if why == "" {
		out.Native = string(o.Native)
	}
	out.compare(row.Expected(), got, why, o)
	if out.Verdict == Failed {
		out.excuse(o, request)
	}
}

// unanswered tells whether a ValidatingPolicy has no native form and errs: it asks
// a registry or a service, and nobody answers here.
func unanswered(o judge.Opinion) bool {
	return o.Rule.Source == nil && o.Rule.Rule.Target != translate.Native && o.Status == interp.Error
}

// compare holds what was said to what is wanted. Why is the reason for which the
// native policy was not asked.
func (out *RowResult) compare(want, got, why string, o judge.Opinion) {
	switch {
	case got != want:
		out.Verdict, out.Reason = Failed, fmt.Sprintf("Want %s, got %s", want, got)
	case why == "" && !nativeGives(want, o.Native):
		out.Verdict, out.Reason = Failed, fmt.Sprintf("Want %s, and the native policy says %s", want, o.Native)
		if o.NativeMessage != "" {
			out.Message = o.NativeMessage
		}
	case why != "":
		out.Verdict, out.Reason = Passed, "Ok ("+why+")"
	default:
		out.Verdict, out.Reason = Passed, "Ok"
	}
}

// excuse recognises a deviation from Kyverno that is there on purpose.
func (out *RowResult) excuse(o judge.Opinion, request *judge.Request) {
	if len(o.Deviations) > 0 && string(o.Kyverno) == out.Expected && judge.Same(o.Status, o.Native) {
		out.deviates(o.Deviations[0], deviation.Reason(o.Deviations[0]))
		return
	}
	said := string(o.Status)
	if out.Native != "" {
		said = out.Native
	}
	admission := request.Admission()
	operation, _ := admission["operation"].(string)
	if l, ok := deviation.Of(deviation.Difference{
		Rule: o.Rule.Source, Operation: operation, Object: admission["object"], Before: admission["oldObject"], Want: out.Expected, Said: said,
	}); ok {
		out.deviates(l.Number, l.Reason)
	}
}

func (out *RowResult) deviates(number int, why string) {
	out.Verdict, out.Reason = Deviates, fmt.Sprintf("%s; kvap differs (deviation %d: %s)", out.Reason, number, why)
}

// nativeGives tells whether an outcome is what a result asks for.
func nativeGives(want string, o apiserver.Outcome) bool {
	switch want {
	case "fail", "warn":
		return o == apiserver.Deny
	case "error":
		return o == apiserver.Deny || o == apiserver.Error
	}
	return o == apiserver.Allow || o == apiserver.NoMatch
}

// notNative is why the native policy was not asked; empty if it was.
func (r *run) notNative(s *session, o judge.Opinion) string {
	written := o.Rule.Rule
	switch names := s.replaced[written.Name()]; {
	case s.targets[o.Rule.Name] != translate.Native:
		return "webhook"
	case len(names) > 0:
		return "interpreter only: mocked " + strings.Join(names, ", ")
	case written.Source != nil && r.user == nil && matchesUsers(written.Source.Match):
		return "interpreter only: the rule matches users, and the suite names none"
	case o.Native == apiserver.Unknown:
		return "interpreter only: " + o.NativeMessage
	}
	return ""
}

// matchesUsers tells whether a block looks at the user. Without a user, Kyverno
// passes over what match says of users; an API server always has one.
func matchesUsers(m *policy.MatchBlock) bool {
	return slices.ContainsFunc(m.Filters(), func(f *policy.Filter) bool {
		return len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) > 0
	})
}

// request is the resource as a request with the values that are mocked for it and
// a rule.
func (r *run) request(s *session, policyName, rule, operation string, o manifest.Object) (*judge.Request, error) {
	shared := r.values.forResource(policyName, o.Meta("name"))
	client := r.client()
	if op, ok := shared["request.operation"].(string); ok && op != "" {
		client.Operation = op
	}
	if operation != "" { // what the row says wins
		client.Operation = operation
	}
	admission, found := client.Request(o, o) // an update changes nothing
	r.found = append(r.found, notes(found)...)
	if admission == nil {
		return nil, found[len(found)-1]
	}
	admission = r.below(admission)
	values := s.requests[rule]
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if at := splitPath(name); at[0] == "request" && len(at) > 1 {
			admission = put(admission, at[1:], values[name])
		}
	}
	if r.user != nil && r.user.UserInfo != nil {
		admission = put(admission, []string{"userInfo"}, r.user.UserInfo)
	}
	admission = actAs(admission, values)
	request, err := judge.NewRequest(admission)
	if err != nil {
		return nil, err
	}
	if r.user != nil {
		request.Roles, request.ClusterRoles = r.user.Roles, r.user.ClusterRoles
	}
	namespace, _ := admission["namespace"].(string)
	if labels, ok := r.values.labels(namespace); ok {
		request.NamespaceLabels = labels
	}
	return request, nil
}

// below is a request on a subresource, where the values say that the object's kind is
// that of one.
func (r *run) below(admission map[string]any) map[string]any {
	kind, _ := admission["kind"].(map[string]any)
	group, _ := kind["group"].(string)
	name, _ := kind["kind"].(string)
	parent, sub, ok := r.values.subresource(group, name)
	if !ok {
		return admission
	}
	resource := map[string]any{"group": parent.Group, "version": parent.Version, "resource": parent.Name}
	admission = put(admission, []string{"resource"}, resource)
	admission = put(admission, []string{"requestResource"}, resource)
	admission = put(admission, []string{"subResource"}, sub)
	return put(admission, []string{"requestSubResource"}, sub)
}

// notes are what is no error, for those who want to know it all: suites are full of
// custom kinds.
func notes(found diag.List) (out diag.List) {
	for _, d := range found {
		if d.Severity != diag.Error {
			d.Severity = diag.Note
			out = append(out, d)
		}
	}
	return out
}

// origin is the rule as written that a row is about.
func (r *run) origin(p *policy.Policy, row Row) string {
	for _, rule := range policy.Expand(p) {
		if row.means(rule.Name) && rule.Origin != "" {
			return rule.Origin
		}
	}
	return row.Rule
}

// actAs gives the request the service account that the values mock.
func actAs(admission, values map[string]any) map[string]any {
	name, _ := values["serviceAccountName"].(string)
	if name == "" {
		return admission
	}
	namespace, _ := values["serviceAccountNamespace"].(string)
	if namespace == "" {
		namespace = "default"
	}
	return put(admission, []string{"userInfo", "username"}, "system:serviceaccount:"+namespace+":"+name)
}
