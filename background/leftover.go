package background

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A leftover is what a rule that is gone may have left in the cluster.
type leftover struct {
	of    v1alpha1.PolicyReference
	rule  string
	kinds []Kind
}

// remember keeps what rules leave that are gone, or that make other objects now. Only
// who works keeps the latter: later, what the rule made since could not be told from
// what it made before, and would be let go of too.
func (w *Worker) remember(before, next *shelf) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, was := range before.policies {
		now := next.policies[key]
		if now == was {
			continue
		}
		for _, r := range was.Rules {
			if r.Invalid || r.Generate == nil {
				continue
			}
			at := ruleKey(key, r.Name)
			if now == nil || now.rule(r.Name) == nil {
				if kinds := kindsOf(r.Generate); r.Generate.Synchronize && !r.Generate.Orphan && len(kinds) > 0 {
					w.left[at] = leftover{was.Of, r.Name, kinds}
				}
			} else if g := now.rule(r.Name).Generate; w.running && g != nil && !now.rule(r.Name).Invalid && placeOf(r) != placeOf(now.rule(r.Name)) {
				w.moved[at] = append(w.moved[at], kindsOf(r.Generate)...)
			}
		}
	}
	for key, p := range next.policies {
		for _, r := range p.Rules {
			delete(w.left, ruleKey(key, r.Name))
		}
	}
}

// placeOf is which objects a rule makes, and of what, but not what is in them.
func placeOf(r *policy.Rule) string {
	var out bytes.Buffer
	for _, t := range targetsOf(r.Generate) {
		fmt.Fprintf(&out, "%q %q %q %q", t.APIVersion.Value, t.Kind.Value, t.Namespace.Value, t.Name.Value)
		if t.Clone != nil {
			fmt.Fprintf(&out, " of %q %q", t.Clone.Namespace.Value, t.Clone.Name.Value)
		}
		if l := t.CloneList; l != nil {
			fmt.Fprintf(&out, " of all in %q", l.Namespace.Value)
			for _, k := range l.Kinds {
				fmt.Fprintf(&out, " %q", k.Value)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// release lets go of what a rule has made that makes other objects now: they stay,
// and nobody looks after them.
func (w *Worker) release(ctx context.Context, p *held, rule string) error {
	at := ruleKey(keyOf(p.Of), rule)
	w.mu.Lock()
	kinds := slices.Clone(w.moved[at])
	w.mu.Unlock()
	own := interp.TargetSelector(p.Policy.Policy, rule, nil)
	gone := map[string]*string{}
	for key := range own {
		if key != "app.kubernetes.io/managed-by" {
			gone[key] = nil
		}
	}
	for _, k := range kinds {
		made, err := w.options.Cluster.List(ctx, k.APIVersion, k.Kind, scopeOf(p.Policy.Policy), labels.SelectorFromSet(own))
		if err != nil {
			return explained(err)
		}
		for _, object := range made {
			r := referenceOf(object)
			if err := w.options.Cluster.Label(ctx, interp.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, gone); err != nil {
				return explained(err)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.moved, at)
	return nil
}

// leftPolicy is the policy of a leftover's key, for notices.
func (w *Worker) leftPolicy(key string) v1alpha1.PolicyReference {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left[key].of
}

// doLeft has what a rule has left removed, if the rule is gone from the cluster, and
// not only from those that are served here: who turns a policy off keeps its objects.
// The work is written down first.
func (w *Worker) doLeft(ctx context.Context, key string) error {
	w.mu.Lock()
	l, ok := w.left[key]
	w.mu.Unlock()
	if !ok {
		return nil
	}
	there, err := w.hasRule(ctx, l.of, l.rule)
	if err != nil {
		return explained(err)
	}
	if !there {
		if err := w.options.Requests.Create(ctx, l.request()); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.left, key)
	return nil
}

// groupsLike are those of policies that may bear one name, and so the same labels on
// what they made: one that was adopted and its source.
func groupsLike(group string) []string {
	out := []string{"kyverno.io", v1alpha1.GroupVersion().Group}
	if !slices.Contains(out, group) {
		out = append(out, group)
	}
	return out
}

// hasRule tells whether the cluster has the policy, or one of its name in another
// group, with the rule. The labels of targets do not tell the two apart.
func (w *Worker) hasRule(ctx context.Context, of v1alpha1.PolicyReference, rule string) (bool, error) {
	for _, group := range groupsLike(of.Group) {
		one := of
		one.Group = group
		object, _, err := w.options.Cluster.Get(ctx, apiVersionOf(one), one.Kind, one.Namespace, one.Name)
		if err != nil && (group == of.Group || !apimeta.IsNoMatchError(err)) {
			return false, err
		}
		spec, _ := object["spec"].(map[string]any)
		rules, _ := spec["rules"].([]any)
		if slices.ContainsFunc(rules, func(r any) bool {
			m, _ := r.(map[string]any)
			return m["name"] == rule
		}) {
			return true, nil
		}
	}
	return false, nil
}

// apiVersionOf is the version in which policies of a group are read.
func apiVersionOf(r v1alpha1.PolicyReference) string {
	if r.Group == v1alpha1.GroupVersion().Group {
		return v1alpha1.GroupVersion().String()
	}
	return r.Group + "/v1"
}

// request is the leftover as work that outlives this process.
func (l leftover) request() *v1alpha1.GenerateRequest {
	out := &v1alpha1.GenerateRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "GenerateRequest"},
		Spec: v1alpha1.GenerateRequestSpec{Type: v1alpha1.GenerateObjects, Policy: l.of, Rule: l.rule, Delete: true, Trigger: v1alpha1.ObjectReference{
			APIVersion: apiVersionOf(l.of), Kind: l.of.Kind, Namespace: l.of.Namespace, Name: l.of.Name, UID: l.of.UID,
		}},
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s %s", keyOf(l.of), l.of.UID, l.rule)
	for _, k := range l.kinds {
		out.Spec.Kinds = append(out.Spec.Kinds, v1alpha1.KindReference(k))
		fmt.Fprintf(sum, " %s/%s", k.APIVersion, k.Kind)
	}
	out.Name = "gr-" + hex.EncodeToString(sum.Sum(nil)[:10])
	return out
}

// removeLeft removes what a rule has left, unless the rule is there again.
func (w *Worker) removeLeft(ctx context.Context, r *v1alpha1.GenerateRequest, p *held) outcome {
	there := p != nil && p.rule(r.Spec.Rule) != nil
	if !there {
		var err error
		if there, err = w.hasRule(ctx, r.Spec.Policy, r.Spec.Rule); err != nil {
			return failed(explained(err))
		}
	}
	if there {
		return skipped("the rule is there again")
	}
	of := &policy.Policy{Kind: r.Spec.Policy.Kind, Namespace: r.Spec.Policy.Namespace, Name: r.Spec.Policy.Name}
	kinds := make([]Kind, len(r.Spec.Kinds))
	for i, k := range r.Spec.Kinds {
		kinds[i] = Kind(k)
	}
	removed, err := w.removeAll(ctx, kinds, scopeOf(of), interp.TargetSelector(of, r.Spec.Rule, nil))
	if err != nil {
		return outcome{state: v1alpha1.GenerateFailed, err: err, message: err.Error(), resources: removed}
	}
	return outcome{state: v1alpha1.GenerateCompleted, resources: removed}
}
