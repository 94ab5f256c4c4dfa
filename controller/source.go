package controller

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// A policySource is a policy in the cluster, and what of it counts.
type policySource struct {
	ref        v1alpha1.PolicyReference
	generation int64
	mode       string
	badMode    string // what it says in place of a mode
	// policy is what counts, with the actions that its mode gives it: the object as
	// it is, or its last good version. It is nil where the mode is off.
	policy *policy.Policy
	// rehearsed is, in shadow, what counts with the actions as they are written.
	rehearsed *policy.Policy
	text      []byte // of what counts, as it is parsed
	// found is what parsing said of the object as it is, where that does not count,
	// and of what counts.
	found   diag.List
	lastOne bool // what counts is the last good version

	uninstalled bool // the definition of its kind was removed, and the policy with it

	kept    *v1alpha1.LastGood // the text for the next process, once it was asked for
	version string             // the resource version that was read
}

// text is what of an object means something: a policy of Kyverno's kind without what
// the API server and others wrote into it.
func sourceText(o *unstructured.Unstructured) []byte {
	meta := map[string]any{"name": o.GetName()}
	if o.GetNamespace() != "" {
		meta["namespace"] = o.GetNamespace()
	}
	annotations := o.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	for key, values := range map[string]map[string]string{"labels": o.GetLabels(), "annotations": annotations} {
		if len(values) > 0 {
			meta[key] = values
		}
	}
	apiVersion := o.GetAPIVersion()
	if strings.HasPrefix(apiVersion, v1alpha1.Group+"/") {
		apiVersion = v1alpha1.KyvernoAPIVersion(o.GetKind())
	}
	doc := map[string]any{"apiVersion": apiVersion, "kind": o.GetKind(), "metadata": meta}
	if spec, ok := o.Object["spec"]; ok {
		doc["spec"] = spec
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	return text
}

// referenceTo points at a policy.
func referenceTo(o *unstructured.Unstructured) v1alpha1.PolicyReference {
	return v1alpha1.PolicyReference{
		Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
	}
}

// modeOf is the mode of a policy: its own, or the given one. bad is what is there in
// place of a mode.
func modeOf(o *unstructured.Unstructured, otherwise string) (mode, bad string) {
	if o.GroupVersionKind().Group == v1alpha1.Group {
		otherwise = v1alpha1.ModeEnforce
	}
	return v1alpha1.ModeOf(o, otherwise)
}

// readSource makes a source of an object. before is what it was the last time, nil
// where it is new; then remembered is the text of the last good version, if any.
func readSource(o *unstructured.Unstructured, otherwise string, before *policySource, remembered func() []byte) *policySource {
	if before != nil && before.version == o.GetResourceVersion() {
		return before
	}
	s := &policySource{ref: referenceTo(o), generation: o.GetGeneration(), version: o.GetResourceVersion()}
	s.mode, s.badMode = modeOf(o, otherwise)
	if s.mode == v1alpha1.ModeOff {
		return s
	}
	s.text = sourceText(o)
	s.policy, s.found = parsePolicy(s.ref, s.text)
	if s.policy == nil || len(brokenRules(s.policy)) > 0 {
		s.fallBack(before, remembered)
	}
	s.act(before)
	return s
}

// fallBack takes the last good version, if the policy is worse than that.
func (s *policySource) fallBack(before *policySource, remembered func() []byte) {
	var text []byte
	if before != nil && before.text != nil {
		text = before.text
	} else if text = remembered(); text == nil {
		return
	}
	good, found := parsePolicy(s.ref, text)
	if good == nil || asGood(s.policy, good) {
		return
	}
	s.policy, s.text, s.found, s.lastOne = good, text, append(s.found, found...), true
}

// act gives the policy the actions of its mode: in shadow nothing is denied, and
// everything judged as it will be. Where nothing has changed, the
// policy is the one of before, by which others know what they made of it.
func (s *policySource) act(before *policySource) {
	if before != nil && before.policy != nil && before.mode == s.mode && string(before.text) == string(s.text) {
		s.policy, s.rehearsed = before.policy, before.rehearsed
		return
	}
	if s.policy != nil && s.mode == v1alpha1.ModeShadow {
		s.rehearsed, _ = parsePolicy(s.ref, s.text)
		s.policy.Rehearse()
	}
}

// remaining is what a Fallback is told of the policy, with no rules yet; false where
// it has nothing to do with it.
func (s *policySource) remaining() (RemainingPolicy, bool) {
	out := RemainingPolicy{Source: s.ref, Generation: s.generation, Policy: s.policy}
	switch {
	case s.policy == nil:
		return out, false
	case s.mode == v1alpha1.ModeShadow:
		out.Shadow, out.Policy = true, s.rehearsed
		return out, s.rehearsed != nil
	}
	return out, s.mode == v1alpha1.ModeEnforce
}

// parsePolicy reads a text that holds one policy; nil where there is none in it.
func parsePolicy(ref v1alpha1.PolicyReference, text []byte) (*policy.Policy, diag.List) {
	file, found := policy.Parse(translationName(ref), text)
	if len(file.Policies) != 1 {
		return nil, found
	}
	return file.Policies[0], found
}

// brokenRules are the names of the rules that nobody knows the meaning of, and an
// empty one where that is the whole policy.
func brokenRules(p *policy.Policy) []string {
	var out []string
	if p.Invalid {
		out = append(out, "")
	}
	for _, r := range p.Rules {
		if r.Invalid {
			out = append(out, r.Name)
		}
	}
	return out
}

// asGood tells that a version of a policy is no worse than the one before: nothing
// is broken in it that was not broken then.
func asGood(p, before *policy.Policy) bool {
	if p == nil {
		return false
	}
	known := brokenRules(before)
	return !slices.ContainsFunc(brokenRules(p), func(name string) bool { return !slices.Contains(known, name) })
}
