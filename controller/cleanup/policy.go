package cleanup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A Policy is a cleanup policy in the cluster, read once.
type Policy struct {
	Ref        v1alpha1.PolicyReference
	Generation int64
	Mode       string
	badMode    string // what it says in place of a mode
	created    time.Time
	ranBefore  time.Time       // when Kyverno says that it ran
	cleanup    *policy.Cleanup // nil where it cannot be read
	why        string          // it cannot be read
	version    string          // the resource version that was read
}

// Read reads a policy. otherwise is the mode of one that names none.
func Read(o *unstructured.Unstructured, otherwise string) *Policy {
	p := &Policy{
		Ref: v1alpha1.PolicyReference{
			Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		},
		Generation: o.GetGeneration(), created: o.GetCreationTimestamp().Time, version: o.GetResourceVersion(),
	}
	p.Mode, p.badMode = v1alpha1.ModeOf(o, otherwise)
	if text, ok, _ := unstructured.NestedString(o.Object, "status", "lastExecutionTime"); ok {
		p.ranBefore, _ = time.Parse(time.RFC3339, text) // what is no time says nothing
	}
	meta := map[string]any{"name": o.GetName()}
	if o.GetNamespace() != "" {
		meta["namespace"] = o.GetNamespace()
	}
	data, err := json.Marshal(map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": meta, "spec": o.Object["spec"]})
	if err != nil {
		p.why = err.Error()
		return p
	}
	file, found := policy.Parse(p.StatusName(), data)
	if len(file.Cleanups) == 1 && !file.Cleanups[0].Invalid {
		p.cleanup = file.Cleanups[0]
		_, err := p.nextRun(p.created)
		if err == nil {
			err = interp.NewCleanup(p.cleanup, nil, &interp.Offline{}, interp.Limits{}).Broken()
		}
		if err != nil {
			p.cleanup, p.why = nil, err.Error()
		}
		return p
	}
	p.why = errorsIn(found)
	return p
}

// errorsIn are the errors of a list, in words.
func errorsIn(found diag.List) string {
	const few = 5
	var out []string
	for _, d := range found {
		switch {
		case d.Severity != diag.Error:
		case len(out) == few:
			return strings.Join(append(out, "and more"), "; ")
		default:
			out = append(out, strings.TrimPrefix(d.Path+": ", ": ")+d.Message+" ["+d.Code.String()+"]")
		}
	}
	return strings.Join(out, "; ")
}

// StatusName is the name of the policy's PolicyTranslation.
func (p *Policy) StatusName() string {
	parts := []string{p.Ref.Name}
	if p.Ref.Namespace != "" {
		parts = append(parts, p.Ref.Namespace)
	}
	for _, k := range Kinds() {
		if k.Kind == p.Ref.Kind {
			parts = append(parts, k.Plural, k.Group)
		}
	}
	name := strings.Join(parts, ".")
	const longest = 253
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := "-" + hex.EncodeToString(sum[:8])
	return strings.TrimRight(name[:longest-len(end)], "-.") + end
}

// next is when the policy is due, if it ran last at a time; zero for never. Kyverno's
// runs count where kvap has taken over, and not while it only looks on.
func (p *Policy) next(last time.Time) (time.Time, error) {
	from := p.created
	if last.After(from) {
		from = last
	}
	if p.Mode == v1alpha1.ModeEnforce && p.ranBefore.After(from) {
		from = p.ranBefore
	}
	return p.nextRun(from)
}

func (p *Policy) nextRun(after time.Time) (time.Time, error) {
	if p.cleanup.Deleting != nil {
		return interp.NextDeletion(p.cleanup.Schedule.Value, after)
	}
	return interp.NextRun(p.cleanup.Schedule.Value, after)
}

// runs tells whether the policy does anything.
func (p *Policy) runs() bool {
	return p.cleanup != nil && p.Mode != v1alpha1.ModeOff && p.badMode == ""
}

// whole tells whether the policy asks for more than metadata: match and exclude do
// not, and expressions in CEL may.
func (p *Policy) whole() bool { return p.cleanup.Conditions != nil || p.cleanup.Deleting != nil }

// kinds are the distinct kinds of match, in order.
func (p *Policy) kinds() []policy.KindSelector {
	var out []policy.KindSelector
	known := map[string]bool{}
	for _, f := range append(append([]*policy.Filter{}, p.cleanup.Match.Any...), p.cleanup.Match.All...) {
		for _, k := range f.Kinds {
			if s, ok := policy.ParseKind(k.Value); ok && !known[s.String()] {
				known[s.String()] = true
				out = append(out, s)
			}
		}
	}
	return out
}
