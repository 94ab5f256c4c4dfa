package controller

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/scan"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// A policySource is a policy in the cluster, and what of it counts.
type policySource struct {
	ref        v1alpha1.PolicyReference
	generation int64
	digest     string // of what it says, whether that counts or not
	mode       string
	badMode    string // what it says in place of a mode
	// policy is what counts, with the actions that its mode gives it: the object as
	// it is, or its last good version. It is nil where the mode is off.
	policy *policy.Policy
	// since is when the object came to say what it says.
	since time.Time
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
	// otherwise is the mode that it was read with, where it says none.
	otherwise string
}

// SourceText is what of an object means something: a policy of Kyverno's kind without what
// the API server and others wrote into it.
func SourceText(o *unstructured.Unstructured) []byte {
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

// readSource makes a source of an object, in a mode where it says none. before is what it was the last time, nil
// where it is new; then remembered is the text of the last good version, if any.
func readSource(o *unstructured.Unstructured, otherwise string, before *policySource, remembered func() []byte) *policySource {
	if before != nil && before.otherwise == otherwise && before.says(o) {
		before.version = o.GetResourceVersion()
		return before
	}
	text := SourceText(o)
	s := &policySource{ref: referenceTo(o), generation: o.GetGeneration(), digest: hashOf(string(text)), version: o.GetResourceVersion(), otherwise: otherwise}
	if s.ref.Group == v1alpha1.Group {
		otherwise = v1alpha1.ModeEnforce
	}
	s.mode, s.badMode = v1alpha1.ModeOf(o, otherwise)
	if s.mode == v1alpha1.ModeOff {
		return s
	}
	s.text, s.since = text, scan.WrittenAt(o)
	if before != nil && bytes.Equal(before.text, text) {
		s.since = before.since
	}
	s.policy, s.found = parsePolicy(s.ref, s.text)
	if s.policy == nil || len(brokenRules(s.policy)) > 0 {
		s.fallBack(before, remembered)
	}
	s.act(before)
	return s
}

// says reports whether an object says what it said when it was read, whatever its status is by now.
func (s *policySource) says(o *unstructured.Unstructured) bool {
	return s.version == o.GetResourceVersion() ||
		!s.uninstalled && s.generation == o.GetGeneration() && versionOf(o) == sourceVersion{s.ref.UID, s.digest}
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
	file, found := policy.Parse(TranslationName(ref), text)
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

// A sourceKind is a kind of objects that the controller reads, where its definition
// is in the cluster.
type sourceKind struct {
	group, kind, plural string
	versions            []string // the one to watch first
	namespaced          bool
	exception           bool
}

// sourceKinds are all kinds of policies and exceptions, in the order in which their
// policies are compiled.
func sourceKinds() []sourceKind {
	return []sourceKind{
		{group: "kyverno.io", kind: "ClusterPolicy", plural: "clusterpolicies", versions: []string{"v1", "v2beta1"}},
		{group: "kyverno.io", kind: "Policy", plural: "policies", versions: []string{"v1", "v2beta1"}, namespaced: true},
		{group: "policies.kyverno.io", kind: "ValidatingPolicy", plural: "validatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}},
		{group: "policies.kyverno.io", kind: "NamespacedValidatingPolicy", plural: "namespacedvalidatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true},
		{group: "policies.kyverno.io", kind: "MutatingPolicy", plural: "mutatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}},
		{group: "policies.kyverno.io", kind: "NamespacedMutatingPolicy", plural: "namespacedmutatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true},
		{group: "policies.kyverno.io", kind: "GeneratingPolicy", plural: "generatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}},
		{group: "policies.kyverno.io", kind: "NamespacedGeneratingPolicy", plural: "namespacedgeneratingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true},
		{group: "policies.kyverno.io", kind: "ImageValidatingPolicy", plural: "imagevalidatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}},
		{group: "policies.kyverno.io", kind: "NamespacedImageValidatingPolicy", plural: "namespacedimagevalidatingpolicies", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true},
		{group: v1alpha1.Group, kind: "ClusterPolicy", plural: "clusterpolicies", versions: []string{v1alpha1.Version}},
		{group: v1alpha1.Group, kind: "Policy", plural: "policies", versions: []string{v1alpha1.Version}, namespaced: true},
		{group: v1alpha1.Group, kind: "ValidatingPolicy", plural: "validatingpolicies", versions: []string{v1alpha1.Version}},
		{group: v1alpha1.Group, kind: "NamespacedValidatingPolicy", plural: "namespacedvalidatingpolicies", versions: []string{v1alpha1.Version}, namespaced: true},
		{group: "kyverno.io", kind: "PolicyException", plural: "policyexceptions", versions: []string{"v2", "v2beta1"}, namespaced: true, exception: true},
		{group: "policies.kyverno.io", kind: "PolicyException", plural: "policyexceptions", versions: []string{"v1", "v1beta1", "v1alpha1"}, namespaced: true, exception: true},
	}
}

// sourceKindOf is the kind of a name; false where there is none.
func sourceKindOf(group, kind string) (sourceKind, bool) {
	for _, k := range sourceKinds() {
		if k.group == group && k.kind == kind {
			return k, true
		}
	}
	return sourceKind{}, false
}

// definition is the name of the kind's CustomResourceDefinition.
func (k sourceKind) definition() string { return k.plural + "." + k.group }

func (k sourceKind) at(version string) apischema.GroupVersionKind {
	return apischema.GroupVersionKind{Group: k.group, Version: version, Kind: k.kind}
}

// TranslationName is the name of the PolicyTranslation of a policy, and of its Migration. Namespaces have
// no dots, and the plural tells kinds with and without namespaces apart, so no two
// policies share one.
func TranslationName(r v1alpha1.PolicyReference) string {
	plural := strings.ToLower(r.Kind)
	if k, ok := sourceKindOf(r.Group, r.Kind); ok {
		plural = k.plural
	}
	parts := []string{r.Name, plural, r.Group}
	if r.Namespace != "" {
		parts = []string{r.Name, r.Namespace, plural, r.Group}
	}
	return shortName(strings.Join(parts, "."))
}

// A ForeignKind is a kind that the controller reads and that is not kvap's own.
type ForeignKind struct {
	apischema.GroupVersionKind
	// Older are the versions that are read beside.
	Older      []string
	Plural     string
	Namespaced bool
}

// ForeignKinds are all kinds of Kyverno that the controller reads.
func ForeignKinds() []ForeignKind {
	var out []ForeignKind
	for _, k := range sourceKinds() {
		if k.group != v1alpha1.Group {
			out = append(out, ForeignKind{k.at(k.versions[0]), k.versions[1:], k.plural, k.namespaced})
		}
	}
	return out
}

// Reads tells whether the controller reads objects of a kind.
func Reads(gvk apischema.GroupVersionKind) bool {
	k, ok := sourceKindOf(gvk.Group, gvk.Kind)
	return ok && slices.Contains(k.versions, gvk.Version)
}

// What a PolicyTranslation holds at most: etcd takes some 1.5 MB, in which the text of
// a policy would be there a second time.
const (
	plainText = 32 << 10  // a text up to which it is kept as it is, for people to read
	maxPacked = 256 << 10 // of a text that is packed
	maxStatus = 768 << 10 // of a status
	maxText   = 8 << 20   // of a text that comes out of what is packed
)

// lastGood keeps what counts of a policy for the next process; without the text where
// that is too large.
func (s *policySource) lastGood() *v1alpha1.LastGood {
	if s.text == nil || s.policy == nil || s.policy.Invalid {
		return nil
	}
	if s.kept != nil {
		return s.kept
	}
	s.kept = &v1alpha1.LastGood{Digest: hashOf(string(s.text))}
	if len(s.text) <= plainText {
		s.kept.Policy = string(s.text)
	} else if packed := pack(s.text); len(packed) <= maxPacked {
		s.kept.Packed = packed
	}
	return s.kept
}

// isKept tells that the text is there, as it is or packed.
func isKept(l *v1alpha1.LastGood) bool { return l == nil || l.Policy != "" || len(l.Packed) > 0 }

func pack(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text) // into memory
	_ = w.Close()
	return out.Bytes()
}

// textOf is the text of a last good version; nil where it was not kept.
func textOf(l *v1alpha1.LastGood) ([]byte, error) {
	switch {
	case l == nil, l.Policy == "" && len(l.Packed) == 0:
		return nil, nil
	case l.Policy != "":
		return []byte(l.Policy), nil
	}
	r, err := gzip.NewReader(bytes.NewReader(l.Packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxText))
}

// fitted is a status that the API server takes: of a policy with very many rules the
// first ones have a row.
func fitted(s v1alpha1.PolicyTranslationStatus) v1alpha1.PolicyTranslationStatus {
	if len(asJSON(s)) <= maxStatus {
		return s
	}
	rows := s.Rules
	s.Rules = nil
	for i := range rows {
		rows[i].Warnings = nil
	}
	left := maxStatus - len(asJSON(s))
	for i := range rows {
		if left -= len(asJSON(rows[i])) + 1; left < 0 {
			s.RulesLeftOut = int32(len(rows) - i)
			break
		}
		s.Rules = append(s.Rules, rows[i])
	}
	return s
}
