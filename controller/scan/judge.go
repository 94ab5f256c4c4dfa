package scan

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

// Policies are what objects are put before.
type Policies struct {
	Compiled   compile.Result
	Exceptions []*policy.Exception
	Schemas    *schema.Set
	// ExcludeNamespaces are those whose objects are not judged, but by rules that name them.
	ExcludeNamespaces []string
	// World is what rules look things up in that have no native form; nil knows what a
	// round has read before.
	World World
	// ForReports has those rules asked that reports tell of: also, of objects that were written since,
	// those with background: false; and none of policies whose label says so.
	ForReports bool
	// Mutations, beside ForReports, has rules asked that change objects: they pass where an object is as
	// they make it, and say nothing of others.
	Mutations bool
	// Since is when policies became what they are.
	Since map[*policy.Policy]time.Time
	// Triggers has Look see objects, too, of which rules generate others.
	Triggers bool
}

// A World is what a rule can ask about besides the object.
type World = interp.World

// A Judge judges objects that are there.
type Judge struct {
	policies Policies
	judges   *judge.Judges
	client   judge.Client
	asked    map[*compile.Rule]bool
	reached  map[string]bool // the namespaces that are left out, and that a rule names
}

// NewJudge makes a judge that knows some objects of the cluster: its Namespaces, and
// what rules look up.
func NewJudge(p Policies, known []map[string]any) (*Judge, error) {
	judges, err := judge.New(p.Compiled, p.Exceptions, judge.ClusterState{Objects: known, World: p.World})
	if err != nil {
		return nil, err
	}
	j := &Judge{
		policies: p, judges: judges, client: judge.Client{Schemas: p.Schemas, Guess: true, Namespace: metav1.NamespaceDefault},
		asked: map[*compile.Rule]bool{}, reached: map[string]bool{},
	}
	for _, r := range p.Compiled.Rules {
		j.asked[r] = p.asks(r)
		for _, ns := range r.Reaches {
			j.reached[ns] = true
		}
	}
	return j, nil
}

// excludes tells of a namespace that bindings leave out, and no rule names.
func (j *Judge) excludes(ns string) bool {
	return slices.Contains(j.policies.ExcludeNamespaces, ns) && !j.reached[ns]
}

// asks tells whether a rule is asked about an object of a namespace that was last written at a time.
func (j *Judge) asks(r *compile.Rule, ns string, written time.Time) bool {
	return j.asked[r] && (r.Policy.Background || j.policies.judged(r.Policy, written)) &&
		(!slices.Contains(j.policies.ExcludeNamespaces, ns) || slices.Contains(r.Reaches, ns))
}

// Object is what the policies say of an object in a namespace; nil is one of those that
// the judge knows, or none.
func (j *Judge) Object(ctx context.Context, o *unstructured.Unstructured, namespace map[string]any) (report.ScannedObject, error) {
	out := report.ScannedObject{
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()),
	}
	opinions, err := j.opinions(ctx, o, namespace)
	if err != nil {
		return out, err
	}
	for _, opinion := range opinions {
		if result := resultOf(opinion); result != "" {
			out.Results = append(out.Results, resultRow(opinion, result))
		}
	}
	return out, nil
}

// opinions are those of the rules that are asked about objects that are there.
func (j *Judge) opinions(ctx context.Context, o *unstructured.Unstructured, namespace map[string]any) ([]judge.Opinion, error) {
	written := WrittenAt(o)
	o.SetManagedFields(nil)
	data, found := j.client.Request(manifest.Object{Value: o.Object}, manifest.Object{})
	if found.HasErrors() {
		return nil, found.Sort()[0]
	}
	request, err := judge.NewRequest(data)
	if err != nil {
		return nil, err
	}
	request.Scan, request.Namespace = true, namespace
	opinions, err := j.judges.Judge(ctx, request)
	if err == nil && j.policies.Mutations {
		done := j.judges.Mutate(ctx, request, opinions)
		for i := range opinions {
			if m := opinions[i].Mutation; m != nil && !reflect.DeepEqual(m.Before, done.Before) {
				opinions[i].Mutation = nil // what it says is of what rules before it would make
			}
		}
	}
	return slices.DeleteFunc(opinions, func(opinion judge.Opinion) bool { return !j.asks(opinion.Rule.Rule, o.GetNamespace(), written) }), err
}

// scannable tells whether a rule is asked about objects whenever they were written: it validates,
// and its policy does not say otherwise.
func scannable(r *compile.Rule) bool { return validates(r) && r.Policy.Background }

func validates(r *compile.Rule) bool {
	return !r.Policy.Invalid && (r.Policy.Validating != nil || r.Source != nil && !r.Source.Invalid && r.Source.Validate != nil)
}

// resultOf is the result of a rule; "" where it has nothing to say. Of a native rule,
// violations are what the API server would deny. What passes a guard has not been
// judged there, so what passes and what is skipped is the interpreter's to say.
func resultOf(o judge.Opinion) string {
	if o.Rule.Rule.Mutates() {
		switch {
		case o.Mutation == nil:
			return ""
		case o.Mutation.Idle():
			return "pass"
		case o.Mutation.Status == interp.Skip && len(o.Mutation.Exceptions) > 0:
			return "skip"
		}
		return ""
	}
	switch {
	case o.Compared && o.Native == apiserver.Deny:
		return "fail"
	case o.Compared && (o.Native == apiserver.Error || o.Native == apiserver.Unknown), o.Status == interp.Unknown:
		return "error"
	case o.Code != 0: // the interpreter knows nothing of it
		return ""
	case o.Status == interp.Pass:
		return "pass"
	case o.Status == interp.Skip:
		return "skip"
	case o.Compared:
		return ""
	case o.Status == interp.Fail:
		return "fail"
	case o.Status == interp.Error:
		return "error"
	}
	return ""
}

// The annotations of a policy that go into its results.
const (
	scoredAnnotation   = "policies.kyverno.io/scored"
	categoryAnnotation = "policies.kyverno.io/category"
	severityAnnotation = "policies.kyverno.io/severity"
)

func resultRow(o judge.Opinion, result string) report.ScanResult {
	p := o.Rule.Rule.Policy
	row := report.ScanResult{
		Kind: p.Kind, Policy: o.Rule.Rule.PolicyName(), Rule: o.Rule.Name, Result: result, Message: o.Message,
		Category: p.Annotations[categoryAnnotation], Scored: p.Annotations[scoredAnnotation] != "false",
		Properties: o.Properties, Admission: !p.Background,
	}
	for _, e := range o.Exceptions {
		_, name, _ := strings.Cut(e, "/")
		row.Exceptions = append(row.Exceptions, name)
	}
	if o.Mutation != nil && o.Mutation.Idle() && len(o.Exceptions) == 0 {
		row.Message = "the object is as the rule makes it"
	}
	if o.Native == apiserver.Unknown || row.Message == "" && result != "pass" {
		row.Message = o.NativeMessage
	}
	switch s := p.Annotations[severityAnnotation]; s {
	case "critical", "high", "medium", "low", "info":
		row.Severity = s
	}
	if result == "fail" && !row.Scored {
		row.Result = "warn"
	}
	return row
}
