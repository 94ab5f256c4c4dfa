package interp

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	kvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/policy"
)

const (
	// CloneSourceLabel is on every object that is copied, with an empty value.
	CloneSourceLabel = "generate.kyverno.io/clone-source"
	// SourceUIDLabel is on every copy, with the UID of what it is a copy of.
	SourceUIDLabel = "generate.kyverno.io/source-uid"
)

const (
	managedByLabel  = "app.kubernetes.io/managed-by"
	managedBy       = "kyverno"
	generatePrefix  = "generate.kyverno.io/"
	policyNameLabel = generatePrefix + "policy-name"
)

// targetLabels lead from a generated object to its rule, its trigger and, of a copy,
// its source.
func targetLabels(r *rule, trigger, source map[string]any) map[string]string {
	out := TargetSelector(r.policy, r.Name, trigger)
	if source != nil {
		out[CloneSourceLabel] = ""
		addReference(out, "source", source)
	}
	return out
}

// TargetSelector are the labels by which the objects are found that a rule generated
// for a trigger, or for any, if that is nil. An empty rule means all of the policy.
// Kyverno leaves the rule out, and so deletes what others of the policy made. In its place a
// GeneratingPolicy has its kind: policies of all kinds may bear one name.
func TargetSelector(p *policy.Policy, rule string, trigger map[string]any) map[string]string {
	out := map[string]string{managedByLabel: managedBy, policyNameLabel: p.Name, generatePrefix + "policy-namespace": ""}
	if p.Namespaced() {
		out[generatePrefix+"policy-namespace"] = p.Namespace
	}
	if strings.HasSuffix(p.Kind, "GeneratingPolicy") {
		out[generatePrefix+"policy-kind"] = p.Kind
	} else if rule != "" {
		out[generatePrefix+"rule-name"] = rule
	}
	if trigger != nil {
		addReference(out, "trigger", trigger)
	}
	return out
}

// SourceSelector are the labels by which the copies of an object are found.
func SourceSelector(source map[string]any) map[string]string {
	out := map[string]string{managedByLabel: managedBy}
	addReference(out, "source", source)
	return out
}

// addReference adds the labels that name an object.
func addReference(labels map[string]string, what string, object map[string]any) {
	group, version, found := strings.Cut(digText(object, "apiVersion"), "/")
	if !found {
		group, version = "", group
	}
	for key, value := range map[string]string{
		"group": group, "version": version, "kind": digText(object, "kind"),
		"namespace": metaText(object, "namespace"), "uid": metaText(object, "uid"),
	} {
		labels[generatePrefix+what+"-"+key] = value
	}
}

// label adds labels to an object; they win over its own.
func label(object map[string]any, labels map[string]string) error {
	meta, _ := object["metadata"].(map[string]any)
	own, ok := meta["labels"].(map[string]any)
	if !ok {
		own = map[string]any{}
		meta["labels"] = own
	}
	for _, key := range datum.Keys(labels) {
		if bad := kvalidation.IsValidLabelValue(labels[key]); len(bad) > 0 {
			return fmt.Errorf("the label %s of a generated object cannot be %q: %s", key, labels[key], bad[0])
		}
		own[key] = labels[key]
	}
	return nil
}

// Over is what is to be written where an object of the name is there already; nil
// means nothing. A synchronized object takes the other's place, whoever made that; what a
// GeneratingPolicy wants, that of what it has made for the same trigger, synchronized or not.
func (g Generated) Over(live map[string]any) map[string]any {
	if live == nil {
		return g.Object
	}
	switch own := metaMap(live, "labels"); {
	case g.own == nil && !g.Synchronize:
		return nil
	case g.own != nil && !labels.SelectorFromSet(g.own).Matches(labels.Set(own)):
		return nil
	}
	object := maps.Clone(g.Object)
	meta := maps.Clone(digMap(object, "metadata"))
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(meta, key)
		if value, has := digMap(live, "metadata")[key]; has {
			meta[key] = value
		}
	}
	object["metadata"] = meta
	if sameObject(object, live) {
		return nil
	}
	return object
}
