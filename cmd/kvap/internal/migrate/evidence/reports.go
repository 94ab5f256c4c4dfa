package evidence

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap/apiserver"
)

// A Register is what Kyverno's reports say, by object.
type Register map[reportedObject]map[ruleName]reportedResult

// A reportedObject is an object as a report names it.
type reportedObject struct{ group, kind, namespace, name string }

// A ruleName is a rule as Kyverno reports it.
type ruleName struct{ policy, rule string }

// A reportedResult is what Kyverno reported of one rule on one object.
type reportedResult struct {
	result, message string
	at              time.Time // zero where the report does not say
}

// Reported are the results for one object, and when the object changed last.
type Reported struct {
	results map[ruleName]reportedResult
	changed time.Time
}

// ReportKinds are the kinds of reports that are read, each with its group and the
// versions, the preferred one first.
func ReportKinds() [][]string {
	return [][]string{
		{"wgpolicyk8s.io", "PolicyReport", "v1alpha2"},
		{"wgpolicyk8s.io", "ClusterPolicyReport", "v1alpha2"},
		{"openreports.io", "Report", "v1alpha1"},
		{"openreports.io", "ClusterReport", "v1alpha1"},
	}
}

// IsReport tells whether an object is for Register.Add.
func IsReport(o map[string]any) bool {
	u := unstructured.Unstructured{Object: o}
	gvk := u.GroupVersionKind()
	return slices.ContainsFunc(ReportKinds(), func(k []string) bool { return k[0] == gvk.Group && k[1] == gvk.Kind })
}

// Add takes a report in. Results that are not Kyverno's are passed over: kvap writes
// reports too, and so do others.
func (r Register) Add(o map[string]any) {
	results, _, _ := unstructured.NestedSlice(o, "results")
	scope, _, _ := unstructured.NestedMap(o, "scope")
	namespace := (&unstructured.Unstructured{Object: o}).GetNamespace()
	for _, one := range results {
		row, ok := one.(map[string]any)
		if !ok || !slices.Contains([]string{"kyverno", "Kyverno", "KyvernoValidatingPolicy", "KyvernoMutatingPolicy", ""}, stringField(row, "source")) {
			continue
		}
		named := false // by the result itself, as in reports of older releases
		for _, key := range []string{"resources", "subjects"} {
			list, _ := row[key].([]any)
			for _, one := range list {
				if object, ok := one.(map[string]any); ok {
					r.add(object, namespace, row)
					named = true
				}
			}
		}
		if !named && scope != nil {
			r.add(scope, namespace, row)
		}
	}
}

func (r Register) add(object map[string]any, namespace string, row map[string]any) {
	gv, _ := apischema.ParseGroupVersion(stringField(object, "apiVersion"))
	about := reportedObject{gv.Group, stringField(object, "kind"), stringField(object, "namespace"), stringField(object, "name")}
	if about.namespace == "" {
		about.namespace = namespace // of the report, which lies with its object
	}
	result := reportedResult{result: stringField(row, "result"), message: cmp.Or(stringField(row, "message"), stringField(row, "description"))}
	if seconds, ok, _ := unstructured.NestedInt64(row, "timestamp", "seconds"); ok {
		result.at = time.Unix(seconds, 0)
	}
	if r[about] == nil {
		r[about] = map[ruleName]reportedResult{}
	}
	name := ruleName{stringField(row, "policy"), stringField(row, "rule")}
	if have, ok := r[about][name]; !ok || !result.at.Before(have.at) {
		r[about][name] = result
	}
}

func stringField(o map[string]any, key string) string {
	s, _ := o[key].(string)
	return s
}

// Of is what is reported of an object, nil where nothing is.
func (r Register) Of(o *unstructured.Unstructured) *Reported {
	gvk := o.GroupVersionKind()
	results := r[reportedObject{gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()}]
	if results == nil {
		return nil
	}
	return &Reported{results: results, changed: LastWritten(o)}
}

// LastWritten is when something other than the status of an object was written last, as far as
// its managed fields tell; zero where they do not.
func LastWritten(o metav1.Object) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// noteReported holds what takes Kyverno's place against Kyverno's own report.
func (l *Ledger) noteReported(place int, j judged, o judge.Opinion) {
	r := l.rows[place]
	name := ruleName{r.form.Rule.PolicyName(), r.form.Name}
	result, reported := j.Reported.results[name]
	if p := r.form.Rule.Policy; !reported && p.InCEL() {
		result, reported = j.Reported.results[ruleName{r.form.Rule.PolicyName(), ""}]
	}
	ours := verdictOf(o)
	t := r.of(Reports)
	switch {
	case !reported && (ours == "allow" || !r.form.Rule.Policy.Background):
		return // nobody finds a violation, or it is not a matter of reports
	case !reported && !j.Reported.knows(name.policy):
		t.cannotTell("the report of the object says nothing of the policy yet")
	case !r.form.Rule.Policy.Background:
		t.cannotTell("the report of a policy with background: false is about a request that is not known")
	case reported && !result.at.IsZero() && result.at.Before(j.Reported.changed):
		t.cannotTell("the report is older than the object")
	case o.Code != 0 && !o.Compared:
		t.cannotTell("the interpreter does not know the rule")
	case o.LeftOut && o.Native == apiserver.NoMatch:
		t.cannotTell("the bindings leave out the namespace")
	case o.Native == apiserver.Unknown, o.Status == interp.Unknown:
		t.cannotTell(o.Message)
	case judge.Lacks(o, l.Known):
		t.cannotTell(notAtHand)
	case matches(result.result, ours):
		t.agree(ours != "allow")
	case o.Kyverno != o.Status && matches(result.result, verdict(o.Kyverno)):
		t.cannotTell("kvap differs from Kyverno here on purpose")
	default:
		t.disagree(true, func() report.Disagreement {
			theirs := report.Voice{Who: "Kyverno's report", Says: result.result, Message: result.message}
			if !reported {
				theirs.Says = "nothing of this rule"
			}
			return report.Disagreement{Subject: j.Subject, At: j.At, Sides: []report.Voice{replacement(o), theirs}, Request: line(j.request)}
		})
	}
}

// knows tells whether the object was put before a policy at all.
func (r *Reported) knows(policyName string) bool {
	for name := range r.results {
		if name.policy == policyName {
			return true
		}
	}
	return false
}

// verdictOf is the verdict of what takes Kyverno's place: allow, deny or error.
func verdictOf(o judge.Opinion) string {
	if !o.Compared {
		return verdict(o.Status)
	}
	switch o.Native {
	case apiserver.Deny:
		return "deny"
	case apiserver.Error:
		return "error"
	}
	return "allow"
}

func verdict(s interp.Status) string {
	switch s {
	case interp.Fail:
		return "deny"
	case interp.Error:
		return "error"
	}
	return "allow"
}

// replacement is what takes Kyverno's place.
func replacement(o judge.Opinion) report.Voice {
	if o.Compared {
		return native(o)
	}
	return report.Voice{Who: "kvap's webhook", Says: string(o.Status), Message: o.Message}
}

// matches tells whether a result of a report is the same verdict. What is not scored
// is reported as a warning.
func matches(result, ours string) bool {
	switch result {
	case "fail", "warn":
		return ours == "deny"
	case "error":
		return ours == "deny" || ours == "error"
	}
	return ours == "allow"
}
