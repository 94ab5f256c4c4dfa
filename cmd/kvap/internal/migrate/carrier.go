package migrate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// kyvernoGroup is that of the kinds that kvap.dev has too.
const kyvernoGroup = "kyverno.io"

// CanCarry tells whether kvap.dev has a kind for the policies of a kind.
func CanCarry(ref v1alpha1.PolicyReference) bool {
	switch ref.Kind {
	case "ClusterPolicy", "Policy":
		return ref.Group == kyvernoGroup
	case "ValidatingPolicy", "NamespacedValidatingPolicy":
		return ref.Group == ExceptingGroup
	}
	return false
}

// carrier is the policy of kvap.dev that takes the place of the source, in a mode: the
// same spec, without the rules that stay.
func (w PolicyState) carrier(mode string) (*unstructured.Unstructured, error) {
	if !CanCarry(w.Ref) {
		return nil, fmt.Errorf("kvap.dev has no kind that a %s of %s could become; leave it as it is, with admission off", w.Ref.Kind, w.Ref.Group)
	}
	from := w.Source
	if from == nil || KyvernoHasRest(from) {
		kept, err := restored(w.status().Original)
		if err != nil {
			return nil, err
		}
		from = kept
	}
	o := asMade(from)
	if spec, ok := specAsWritten(o.Object).(map[string]any); ok {
		o.Object["spec"] = spec
	}
	if len(w.Staying) > 0 {
		some, err := someRules(o, func(name string) bool { return !w.stays(name) })
		if err != nil {
			return nil, err
		}
		o = some
	}
	o.SetAPIVersion(v1alpha1.GroupVersion().String())
	disown(o)
	annotate(o, map[string]string{
		v1alpha1.ModeKey: mode, v1alpha1.HistoryKey: w.history(), v1alpha1.KyvernoKey: "", v1alpha1.OrphanedKey: "", lastApplied: "",
	})
	return o, nil
}

func (w PolicyState) stays(rule string) bool { return slices.Contains(w.Staying, rule) }

// PoliciesOf is what kvap reads in an object: one policy, or none.
func PoliciesOf(o *unstructured.Unstructured) []*policy.Policy {
	data, err := json.Marshal(o.Object)
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	f, _ := policy.Parse(o.GetName(), data)
	return f.Policies
}

func policyOf(o *unstructured.Unstructured) (*policy.Policy, error) {
	found := PoliciesOf(o)
	if len(found) != 1 {
		return nil, fmt.Errorf("the policy cannot be read; kvap status says why")
	}
	return found[0], nil
}

// someRules is a policy with only some of its rules, which judge every request as
// they do in the whole policy.
func someRules(o *unstructured.Unstructured, keep func(name string) bool) (*unstructured.Unstructured, error) {
	p, err := policyOf(asMade(o))
	if err != nil {
		return nil, err
	}
	if p.ApplyOne {
		return nil, fmt.Errorf("it applies only the first rule that matches (applyRules: One), so its rules cannot be told apart; rewrite it, or leave it with Kyverno")
	}
	node := p.Only(func(r *policy.Rule) bool { return keep(p.Rules[r.Index].Name) })
	if node == nil {
		return nil, fmt.Errorf("no rule of it would be left; leave it with Kyverno")
	}
	return ObjectOf(node), nil
}

// ObjectOf is a policy as an object.
func ObjectOf(source *policy.Node) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	data, err := json.Marshal(source.Value())
	if err == nil {
		err = json.Unmarshal(data, &o.Object)
	}
	if err != nil {
		panic(err) // it came from YAML
	}
	return o
}

// Lost are the rules that the record has and nobody carries out.
func (w PolicyState) Lost() (names []string) {
	if w.Source != nil || w.Carrier == nil || w.status().Original == nil || w.Stage() == v1alpha1.StageShadow {
		return nil
	}
	original, err := restored(w.status().Original)
	if err != nil {
		return nil
	}
	has := RuleNames(w.Carrier)
	for _, name := range RuleNames(original) {
		if !slices.Contains(has, name) {
			names = append(names, name)
		}
	}
	return names
}

// objectTitle is what kubectl calls the policy of a group: Kyverno's or kvap's.
func (w PolicyState) objectTitle(group string) string {
	title := strings.TrimSuffix(strings.ToLower(w.Ref.Kind), "y") + "ies." + group + " " + w.Ref.Name
	if w.Ref.Namespace != "" {
		title += " -n " + w.Ref.Namespace
	}
	return title
}
