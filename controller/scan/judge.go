package scan

import (
	"context"
	"slices"

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
	// Triggers has Look see objects, too, of which rules generate others.
	Triggers bool
}

// A World is what a rule can ask about besides the object.
type World = interp.World

// A Judge judges objects that are there.
type Judge struct {
	judges   *judge.Judges
	client   judge.Client
	excluded []string        // namespaces
	reached  map[string]bool // those among them that a rule names
}

// NewJudge makes a judge that knows some objects of the cluster: its Namespaces, and
// what rules look up.
func NewJudge(p Policies, known []map[string]any) (*Judge, error) {
	judges, err := judge.New(p.Compiled, p.Exceptions, judge.ClusterState{Objects: known, World: p.World})
	if err != nil {
		return nil, err
	}
	j := &Judge{judges: judges, client: judge.Client{Schemas: p.Schemas, Guess: true, Namespace: metav1.NamespaceDefault}, excluded: p.ExcludeNamespaces, reached: map[string]bool{}}
	for _, r := range p.Compiled.Rules {
		for _, ns := range r.Reaches {
			j.reached[ns] = true
		}
	}
	return j, nil
}

// excludes tells of a namespace that bindings leave out, and no rule names.
func (j *Judge) excludes(ns string) bool {
	return slices.Contains(j.excluded, ns) && !j.reached[ns]
}

// asks tells whether a rule is asked about the objects of a namespace.
func (j *Judge) asks(r *compile.Rule, ns string) bool {
	return scannable(r) && (!slices.Contains(j.excluded, ns) || slices.Contains(r.Reaches, ns))
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
	return slices.DeleteFunc(opinions, func(opinion judge.Opinion) bool { return !j.asks(opinion.Rule.Rule, o.GetNamespace()) }), err
}

// scannable tells whether a rule is asked about objects that are there: it validates,
// and its policy does not say otherwise.
func scannable(r *compile.Rule) bool {
	if r.Policy.Invalid || !r.Policy.Background {
		return false
	}
	return r.Policy.Validating != nil || r.Source != nil && !r.Source.Invalid && r.Source.Validate != nil
}

// resultOf is the result of a rule; "" where it has nothing to say. Of a native rule,
// violations are what the API server would deny. What passes a guard has not been
// judged there, so what passes and what is skipped is the interpreter's to say.
func resultOf(o judge.Opinion) string {
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
