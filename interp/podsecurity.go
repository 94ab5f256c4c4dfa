package interp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/wildcard"
	"github.com/kvap/kvap/policy"
)

// A podResult is a check that a pod does not pass.
type podResult struct {
	check podCheck
	podViolation
}

// A selectedCheck is a check in the variant that a rule's version asks for.
type selectedCheck struct {
	podCheck
	run func(*pod) podViolation
}

// selectChecks picks what a rule's level and version ask for. Every level but
// baseline runs all checks, privileged too.
func selectChecks(rule *policy.PodSecurity) ([]selectedCheck, error) {
	version := api.LatestVersion()
	if rule.Version != "" {
		v, err := api.ParseVersion(rule.Version)
		if err != nil {
			return nil, fmt.Errorf("failed to parse the pod security version: %w", err)
		}
		version = v
	}
	var out []selectedCheck
	for _, c := range podChecks() {
		if rule.Level != string(api.LevelBaseline) || c.level == api.LevelBaseline {
			out = append(out, selectedCheck{c, c.variant(version)})
		}
	}
	return out, nil
}

func runChecks(checks []selectedCheck, p *pod) []podResult {
	var out []podResult
	for _, c := range checks {
		if v := c.run(p); v.reason != "" {
			out = append(out, podResult{c.podCheck, v})
		}
	}
	return out
}

// podOf finds the pod in an object. Of a CronJob, the metadata are those of the
// job, not of the pod.
func podOf(object map[string]any) (*pod, error) {
	var spec, meta []string
	switch object["kind"] {
	case "Pod":
		spec, meta = []string{"spec"}, []string{"metadata"}
	case "DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController":
		spec, meta = []string{"spec", "template", "spec"}, []string{"spec", "template", "metadata"}
	case "CronJob":
		spec, meta = []string{"spec", "jobTemplate", "spec", "template", "spec"}, []string{"spec", "jobTemplate", "metadata"}
	default:
		return nil, fmt.Errorf("could not find a pod in a %v", object["kind"])
	}
	p := &pod{}
	if err := decode(digMap(object, spec...), &p.spec); err != nil {
		return nil, err
	}
	return p, decode(digMap(object, meta...), &p.meta)
}

func decode(from map[string]any, into any) error {
	if from == nil {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, into); err != nil {
		return fmt.Errorf("the object does not have the form of its kind: %w", err)
	}
	return nil
}

// excludeViolations takes out what the exclusions cover, one after the other.
// Each works by running the checks on the part of the pod that it is about, and
// removing what is found there from the results.
func excludeViolations(results []podResult, excludes []policy.PodSecurityExclude, checks []selectedCheck, p *pod) []podResult {
	for _, e := range excludes {
		part := exclusionPod(e, p)
		for _, found := range runChecks(checks, part) {
			if found.check.control != e.ControlName {
				continue
			}
			for _, f := range found.fields {
				if covers(e, f) {
					results = removeField(results, found.check.id, f, len(e.Images) > 0)
				}
			}
		}
	}
	return results
}

// exclusionPod is the part of a pod that an exclusion is about: without images,
// the pod without its containers; with images, the containers that have one of
// them. Images are compared as written in the pod.
func exclusionPod(e policy.PodSecurityExclude, p *pod) *pod {
	part := &pod{meta: p.meta}
	if len(e.Images) == 0 {
		part.spec = p.spec
		part.spec.Containers = []corev1.Container{{Name: "fake"}}
		part.spec.InitContainers = nil
		part.spec.EphemeralContainers = nil
		return part
	}
	for _, c := range p.spec.InitContainers {
		if wildcard.Any(e.Images, c.Image) {
			part.spec.InitContainers = append(part.spec.InitContainers, c)
		}
	}
	for _, c := range p.spec.Containers {
		if wildcard.Any(e.Images, c.Image) {
			part.spec.Containers = append(part.spec.Containers, c)
		}
	}
	for _, c := range p.spec.EphemeralContainers {
		if wildcard.Any(e.Images, c.Image) {
			part.spec.EphemeralContainers = append(part.spec.EphemeralContainers, c)
		}
	}
	return part
}

// covers tells whether an exclusion names the field and all its bad values.
func covers(e policy.PodSecurityExclude, f fieldError) bool {
	if e.RestrictedField != "" && e.RestrictedField != withoutIndexes(f.field) {
		return false
	}
	if len(e.Values) == 0 {
		return true
	}
	return !slices.ContainsFunc(badValues(f.bad), func(v string) bool { return !wildcard.Any(e.Values, v) })
}

func badValues(bad any) []string {
	switch v := bad.(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case bool:
		return []string{strconv.FormatBool(v)}
	case int:
		return []string{strconv.Itoa(v)}
	case []string:
		return v
	}
	return nil
}

// withoutIndexes puts * for every run of digits, wherever it stands.
func withoutIndexes(field string) string {
	var b strings.Builder
	for i := 0; i < len(field); {
		if n := datum.CountDigits(field[i:]); n > 0 {
			b.WriteByte('*')
			i += n
			continue
		}
		b.WriteByte(field[i])
		i++
	}
	return b.String()
}

// removeField takes one field error like f out of the results of a check; a
// check without any left is dropped.
func removeField(results []podResult, id string, f fieldError, byContainer bool) []podResult {
	r := slices.IndexFunc(results, func(r podResult) bool { return r.check.id == id })
	if r < 0 {
		return results
	}
	like := func(other fieldError) bool {
		return withoutIndexes(other.field) == withoutIndexes(f.field) &&
			(!byContainer || other.container == f.container)
	}
	i := slices.IndexFunc(results[r].fields, like)
	if i < 0 {
		return results
	}
	results[r].fields = slices.Delete(slices.Clone(results[r].fields), i, i+1)
	if len(results[r].fields) == 0 {
		return slices.Delete(results, r, r+1)
	}
	return results
}

// podSecurityFailure is the message of a rule that is not satisfied.
func podSecurityFailure(rule string, ps *policy.PodSecurity, results []podResult, kind string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Validation rule '%s' failed. It violates PodSecurity %q: ", rule, ps.Level+":"+ps.Version)
	for _, r := range results {
		fields := make([]string, len(r.fields))
		for i, f := range r.fields {
			fields[i] = f.text(kind)
		}
		fmt.Fprintf(&b, "(Forbidden reason: %s, field error list: [%s])", r.reason, strings.Join(fields, ", "))
	}
	return b.String()
}

// A violatedControl is how reports tell of a check that a pod does not pass. Its images are those of
// the containers that the check found, whatever is excluded of them.
type violatedControl struct {
	ID, Name string
	Images   []string
}

// podSecurityProperties are what reports tell of the results: which controls, and whose images.
func podSecurityProperties(ps *policy.PodSecurity, results, found []podResult, p *pod, registry string) map[string]string {
	ids, controls := make([]string, len(results)), make([]violatedControl, len(results))
	for i, r := range results {
		ids[i] = r.check.id
		controls[i] = violatedControl{ID: r.check.id, Name: r.check.control, Images: []string{}}
		all := found[slices.IndexFunc(found, func(f podResult) bool { return f.check.id == r.check.id })].fields
		for _, c := range p.containers() {
			if slices.ContainsFunc(all, func(f fieldError) bool { return f.container == c.Name }) {
				controls[i].Images = append(controls[i].Images, fullReference(c.Image, registry))
			}
		}
	}
	text, err := json.Marshal(controls)
	if err != nil { // texts can be written
		return nil
	}
	return map[string]string{"standard": ps.Level, "version": ps.Version, "controls": strings.Join(ids, ","), "controlsJSON": string(text)}
}

// fullReference is an image with the registry and the tag that it has by default.
func fullReference(name, registry string) string {
	i, err := parseImage(name, registry)
	if err != nil {
		return name
	}
	return i.reference()
}

// text is the error as Kyverno words it, with the path of the pod in an object of
// the kind.
func (f fieldError) text(kind string) string {
	field := f.field
	switch kind {
	case "Pod":
	case "CronJob":
		field = strings.ReplaceAll(field, "spec", "spec.jobTemplate.spec.template.spec")
	default:
		field = strings.ReplaceAll(field, "spec", "spec.template.spec")
	}
	field = strings.ReplaceAll(field, "metadata", "spec.template.metadata")
	switch {
	case f.required:
		return field + ": Required value"
	case f.bad == nil:
		return field + ": Forbidden"
	}
	return fmt.Sprintf("%s is forbidden, forbidden values found: %+v", field, f.bad)
}

// judgePodSecurity judges a podSecurity rule. Exceptions take the whole rule out,
// or, where they name controls, what violates these.
func (r *rule) judgePodSecurity(a *preparedRequest, excepted []*exception) verdict {
	if i := slices.IndexFunc(excepted, func(e *exception) bool { return len(e.PodSecurity) == 0 }); i >= 0 {
		return skipByExceptions(excepted)
	}
	if a.deletes() || a.object == nil {
		return none()
	}
	now := r.judgePod(a.object, excepted, a.limits.registry())
	if now.status != Fail || !r.allowsExisting(a) {
		return now
	}
	before := say(Skip, "the old object does not match")
	if r.oldApplies(a) {
		before = r.judgePod(a.old, excepted, a.limits.registry())
	}
	if before.status == Fail {
		return say(Skip, "skipping the rule evaluation as pre-existing violations are allowed")
	}
	return now
}

func (r *rule) judgePod(object map[string]any, excepted []*exception, registry string) verdict {
	ps := r.Validate.PodSecurity
	p, err := podOf(object)
	if err != nil {
		return say(Error, "%v", err)
	}
	checks, err := selectChecks(ps)
	if err != nil {
		return say(Error, "%v", err)
	}
	found := runChecks(checks, p)
	results := excludeViolations(slices.Clone(found), ps.Exclude, checks, p)
	if len(results) == 0 {
		return say(Pass, "Validation rule '%s' passed.", r.Name)
	}
	for _, e := range excepted {
		results = excludeViolations(results, e.PodSecurity, checks, p)
	}
	if len(results) == 0 {
		return skipByExceptions(excepted)
	}
	kind, _ := object["kind"].(string)
	return say(Fail, "%s", podSecurityFailure(r.Name, ps, results, kind)).with(podSecurityProperties(ps, results, found, p, registry))
}
