package evidence

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
)

// A Making finds what generate rules want of an object that is there. Kyverno has made that
// already, so both can be held against each other:
//
//	generate: {kind: ConfigMap, name: defaults, namespace: "{{request.object.metadata.name}}", data: …}
//
// wants of the Namespace shop the ConfigMap shop/defaults, with Kyverno's labels; and, where it
// is kept in step, with what data says.
type Making struct {
	Engine  *interp.Interpreter
	Objects interp.ObjectReader // of the cluster
}

// A made is what became of one object that a rule wants.
type made struct {
	place    int
	unknown  string // why nothing follows from it
	expected string // how it differs from what is wanted; empty where it does not
	found    string
}

func generates(f *compile.Form) bool { return f.Rule.Type() == "generate" }

// of is what generate rules want of the object of a request, and what is there.
func (m *Making) of(ctx context.Context, rows []*row, request *judge.Request) (out []made) {
	for place, r := range rows {
		if !generates(r.form) {
			continue
		}
		g := m.Engine.Generate(ctx, &interp.Request{
			Admission: request.Admission(), NamespaceLabels: request.NamespaceLabels, Roles: request.Roles, ClusterRoles: request.ClusterRoles,
		}, r.form.Rule.PolicyName(), r.form.Name, m.Objects)
		switch {
		case g == nil || g.Status == interp.None || g.Status == interp.Skip || g.Status == interp.Fail:
			continue
		case g.Status == interp.Error:
			out = append(out, made{place: place, unknown: "what the rule wants is not known: " + g.Message})
			continue
		}
		for i := range g.Targets {
			one := m.compare(ctx, &g.Targets[i])
			one.place = place
			out = append(out, one)
		}
	}
	return out
}

// compare holds an object that is wanted against the one that is there.
func (m *Making) compare(ctx context.Context, want *interp.Generated) made {
	live, found, err := m.Objects.Get(ctx, want.APIVersion, want.Kind, want.Namespace, want.Name)
	switch {
	case err != nil:
		return made{unknown: "what it has generated cannot be read: " + err.Error()}
	case !found:
		return made{unknown: "what it wants is not there: Kyverno has not generated it, as for what was there before the rule"}
	case (&unstructured.Unstructured{Object: live}).GetLabels()["app.kubernetes.io/managed-by"] != "kyverno":
		return made{unknown: "an object of that name is there that nobody has generated"}
	case !want.Synchronize:
		return made{}
	}
	object := map[string]any{}
	for key, value := range want.Object {
		if key != "metadata" && key != "stringData" { // whose labels each writes anew, and which nobody can read
			object[key] = value
		}
	}
	if at := missing(object, live, nil); at != nil {
		return made{
			expected: fmt.Sprintf("%s is %v", strings.Join(at.path, "."), at.want),
			found:    fmt.Sprintf("%s/%s: %s is %v", want.Kind, strings.TrimPrefix(want.Namespace+"/"+want.Name, "/"), strings.Join(at.path, "."), at.have),
		}
	}
	return made{}
}

// A difference is where an object lacks what is wanted.
type difference struct {
	path       []string
	want, have any
}

// missing is the first place where an object has not what another wants. What it has beside,
// as the API server's defaults, does not matter, nor how a quantity is written.
func missing(want, have any, at []string) *difference {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok && len(w) > 0 {
			return &difference{at, want, have}
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if d := missing(w[key], h[key], append(slices.Clip(at), key)); d != nil {
				return d
			}
		}
		return nil
	case []any:
		h, ok := have.([]any)
		if len(w) != len(h) || !ok && len(w) > 0 {
			return &difference{at, want, have}
		}
		for i := range w {
			if d := missing(w[i], h[i], append(slices.Clip(at), fmt.Sprint(i))); d != nil {
				return d
			}
		}
		return nil
	case nil:
		return nil
	}
	if a, b := fmt.Sprint(want), fmt.Sprint(have); a != b {
		x, errX := resource.ParseQuantity(a)
		y, errY := resource.ParseQuantity(b)
		if errX != nil || errY != nil || x.Cmp(y) != 0 {
			return &difference{at, want, have}
		}
	}
	return nil
}

// noteMade writes down what became of what rules want of one object.
func (l *Ledger) noteMade(j judged) {
	for _, one := range j.made {
		t := l.rows[one.place].of(j.Source)
		switch {
		case one.unknown != "":
			t.cannotTell(one.unknown)
		case one.expected == "":
			t.agree(true)
		default:
			t.disagree(true, func() report.Disagreement {
				return report.Disagreement{Subject: j.Subject, At: j.At, Sides: []report.Voice{
					{Who: "Kyverno's rule, interpreted", Says: "generates", Message: one.expected}, {Who: "Kyverno", Says: "generated", Message: one.found},
				}}
			})
		}
	}
}
