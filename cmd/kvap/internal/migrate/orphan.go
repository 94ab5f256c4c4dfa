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

// A generate rule that keeps what it makes in step takes it along when it goes, or its
// policy: Kyverno deletes every object that the rule has generated, and kvap would make it
// anew, as another. Under
//
//	generate: {synchronize: true, orphanDownstreamOnPolicyDelete: true}
//
// what it made stays, and whoever carries the rule on finds it by its labels, which are the
// same for Kyverno and kvap. Kyverno lets this field of a rule be changed.
const (
	orphanField = "orphanDownstreamOnPolicyDelete"
	syncField   = "synchronize"
)

// takenOver tells of a rule of which what it generated is to be kept from going with it.
func takenOver(r *policy.Rule) bool {
	return r.Generate != nil && r.Generate.Synchronize && (r.Generate.Orphan == nil || !*r.Generate.Orphan)
}

// eachGenerate calls do with every generate rule of a spec.
func eachGenerate(spec any, do func(name string, generate map[string]any)) {
	eachRule(spec, func(name string, rule map[string]any) {
		if generate, ok := rule["generate"].(map[string]any); ok {
			do(name, generate)
		}
	})
}

// orphan has Kyverno leave what the rules that are about to go from the source have
// generated; nil where it does. The next move is made from what the API server has stored.
func (w PolicyState) orphan(part string) (*Move, error) {
	if !CanCarry(w.Ref) {
		return nil, nil
	}
	o := w.Source.DeepCopy()
	marked := orphaned(o)
	var names []string
	eachGenerate(o.Object["spec"], func(name string, generate map[string]any) {
		if !w.stays(name) && generate[syncField] == true && generate[orphanField] != true {
			generate[orphanField] = true
			names = append(names, name)
		}
	})
	if len(names) > 0 && w.closed() { // nothing can be written into it; who carries nothing out takes nothing along
		if w.Kyverno.Yes {
			return nil, fmt.Errorf("Kyverno would delete what %s generated, and the API server takes no change of the policy that has it leave that: %s; "+ //nolint:staticcheck // a name
				"install Kyverno with features.blockLegacyPolicyAPIs.enabled=false, which lets the change pass, and try again",
				strings.Join(names, ", "), w.Closed)
		}
		return nil, nil
	}
	for _, name := range names {
		if slices.Contains(marked, name) {
			return nil, fmt.Errorf("Kyverno would delete what the rule %s has generated: %s: true was written into it, and is not there; Kyverno's definition "+ //nolint:staticcheck // a name
				"does not know it (before 1.12), or somebody took it out; kvap enforces the policy, and Kyverno too; go back with kvap migrate rollback %s", name, orphanField, w.Title())
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(append(marked, names...))
	if err != nil {
		panic(err) // they are texts
	}
	annotate(o, map[string]string{v1alpha1.OrphanedKey: string(data), v1alpha1.HistoryKey: w.history()})
	return &Move{Does: "have Kyverno leave what " + strings.Join(names, ", ") + " generated: " + orphanField + " is true", Part: part, Write: o}, nil
}

// TakesAlong are the rules of a policy whose objects Kyverno deletes with it.
func TakesAlong(policy *unstructured.Unstructured) (names []string) {
	if policy == nil {
		return nil
	}
	eachGenerate(policy.Object["spec"], func(name string, generate map[string]any) {
		if generate[syncField] == true && generate[orphanField] != true {
			names = append(names, name)
		}
	})
	return names
}

// orphaned are the rules in which a migration has written that what they generated stays.
func orphaned(o *unstructured.Unstructured) (names []string) {
	_ = json.Unmarshal([]byte(o.GetAnnotations()[v1alpha1.OrphanedKey]), &names) // what nobody can read says nothing
	return names
}

// unorphan takes out of a spec what a migration has written into its generate rules, and
// what says no more than the default does.
func unorphan(spec any, names []string) {
	eachGenerate(spec, func(name string, generate map[string]any) {
		if generate[orphanField] == false || slices.Contains(names, name) {
			delete(generate, orphanField)
		}
	})
}

// unorphaned is a policy with its generate rules as users wrote them.
func unorphaned(policy *unstructured.Unstructured) *unstructured.Unstructured {
	names := orphaned(policy)
	if len(names) == 0 {
		return policy
	}
	o := policy.DeepCopy()
	unorphan(o.Object["spec"], names)
	annotate(o, map[string]string{v1alpha1.OrphanedKey: ""})
	return o
}
