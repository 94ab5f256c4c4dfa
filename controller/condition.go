package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// A conditionSet sets the conditions of one policy. The tree is: Ready, which is true where
// all the others are, in the order in which they are set.
type conditionSet struct{ conditions []metav1.Condition }

// maxMessage is about half of what the API server takes as a message.
const maxMessage = 16 << 10

func (m *conditionSet) set(condition string, status metav1.ConditionStatus, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	m.conditions = append(m.conditions, metav1.Condition{Type: condition, Status: status, Reason: reason, Message: message})
}

// ready follows from the others: the first that is false, else the first that is
// unknown, says why it is not true.
func (m *conditionSet) ready() {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		i := slices.IndexFunc(m.conditions, func(c metav1.Condition) bool { return c.Status == status })
		if i < 0 {
			continue
		}
		why := m.conditions[i]
		m.set(v1alpha1.ConditionReady, status, why.Reason, "%s: %s", why.Type, why.Message)
		if stalls(why) {
			m.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, why.Reason, "%s: %s", why.Type, why.Message)
		}
		return
	}
	m.set(v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready", "every rule is where it should be")
}

// stalls tells of a condition that waiting does not end: somebody has to change the policy, or
// how the controller runs. A ConfigMap, a kind or a permission may come with the policy, a
// moment later.
func stalls(c metav1.Condition) bool {
	switch c.Type {
	case v1alpha1.ConditionCompiled, v1alpha1.ConditionTypeChecked:
		return c.Status == metav1.ConditionFalse
	}
	return c.Status == metav1.ConditionFalse && slices.Contains(stallingReasons(), c.Reason)
}

func stallingReasons() []string {
	return []string{reasonNameTaken, reasonRefused, reasonNoWebhook, reasonLeftOut, reasonNotCarriedOut, ReasonRegistryNotAllowed}
}

// withTimes gives conditions the times of their last transitions.
func withTimes(now metav1.Time, before, conditions []metav1.Condition) []metav1.Condition {
	for i := range conditions {
		c := &conditions[i]
		c.LastTransitionTime = now
		if old := meta.FindStatusCondition(before, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return conditions
}

// Served is which kinds a cluster serves: those of its release and of its definitions, and
// beside them, where one is asked for that is not among them, those that it tells of.
type served struct {
	schemas *schema.Set
	ask     func() ([]*metav1.APIResourceList, error) // once; nil where nobody can be asked
	// late are the groups and versions of kinds that are defined and not served yet.
	late []string
}

// has tells that the cluster serves a kind that a rule names, or may do so: some groups
// cannot be asked for while what serves them is away.
func (s *served) has(text string) bool {
	k, ok := policy.ParseKind(text)
	if !ok {
		return false
	}
	return k.Kind == "*" || s.knows(s.schemas.Resources(k.Group, k.Version, k.Kind), k.Group, k.Version,
		func(r metav1.APIResource) bool { return policy.Wildcard(k.Kind, r.Kind) })
}

// hasResource is has for what a ValidatingPolicy names.
func (s *served) hasResource(group, version, resource string) bool {
	resource, _, _ = strings.Cut(resource, "/")
	var defined []schema.Resource
	if r, ok := s.schemas.ByResource(group, version, resource); ok {
		defined = append(defined, r)
	}
	return resource == "*" || s.knows(defined, group, version, func(r metav1.APIResource) bool { return r.Name == resource })
}

// knows tells that one of some resources is built in, or that the cluster tells of one. What
// is defined is served a moment later.
func (s *served) knows(defined []schema.Resource, group, version string, is func(metav1.APIResource) bool) bool {
	custom := false
	for _, r := range defined {
		switch {
		case r.Guessed:
		case !s.schemas.Custom(r.GVK):
			return true
		default:
			custom = true
		}
	}
	if custom && s.ask == nil || s.tells(group, version, is) {
		return true
	}
	if custom {
		s.late = append(s.late, group+"/"+version)
	}
	return false
}

func (s *served) tells(group, version string, is func(metav1.APIResource) bool) bool {
	if s.ask == nil {
		return false
	}
	lists, err := s.ask()
	for _, list := range lists {
		of, err := apischema.ParseGroupVersion(list.GroupVersion)
		if err == nil && policy.Wildcard(group, of.Group) && policy.Wildcard(version, of.Version) && slices.ContainsFunc(list.APIResources, is) {
			return true
		}
	}
	var failed *discovery.ErrGroupDiscoveryFailed
	if !errors.As(err, &failed) {
		return err != nil
	}
	for of := range failed.Groups {
		if policy.Wildcard(group, of.Group) {
			return true
		}
	}
	return false
}

// kindsOf are the kinds that a rule matches, and those of them that the cluster does not
// serve.
func (s *served) kindsOf(r *compile.Rule) (all int, missing []string) {
	note := func(name string, there bool) {
		if all++; !there && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if constraints := r.Policy.MatchConstraints(); constraints != nil {
		for _, c := range constraints.Rules {
			for _, resource := range c.Resources {
				note(resource, slices.ContainsFunc(c.Groups, func(group string) bool {
					return slices.ContainsFunc(c.Versions, func(version string) bool { return s.hasResource(group, version, resource) })
				}))
			}
		}
	}
	if r.Source == nil {
		return all, missing
	}
	for _, f := range r.Source.Match.Filters() {
		for _, k := range f.Kinds {
			note(k.Value, s.has(k.Value))
		}
	}
	return all, missing
}

// kindsServed is false where a rule is about no kind that the cluster serves: it judges
// nothing, be it that its kind is misspelt, or defined later.
func (o *passResult) kindsServed(m *conditionSet, rules []*compile.Rule) {
	s := o.served
	if s == nil {
		s = &served{schemas: o.schemas}
	}
	some := ""
	for _, r := range rules {
		all, missing := s.kindsOf(r)
		if len(missing) == 0 {
			continue
		}
		text := fmt.Sprintf("the cluster serves no kind %s, which rule %s matches", strings.Join(missing, ", "), r.Name())
		if all == len(missing) {
			m.set(v1alpha1.ConditionKindsServed, metav1.ConditionFalse, "NotServed", "%s: it judges nothing until the kind is defined; see that it is spelt right", text)
			return
		}
		some = cmp.Or(some, text)
	}
	if some != "" {
		m.set(v1alpha1.ConditionKindsServed, metav1.ConditionTrue, "SomeNotServed", "%s, beside others", some)
		return
	}
	m.set(v1alpha1.ConditionKindsServed, metav1.ConditionTrue, "Served", "the cluster serves all kinds that the rules match")
}

// typeWarnings are what the API server's type checker says of a policy, by the rule
// that it is about, as policy/rule. checked is false where it has not looked at the
// policy as it is now.
func typeWarnings(p *nativePolicy, schemas *schema.Set) (warnings map[string][]v1alpha1.RuleWarning, checked bool) {
	warnings = map[string][]v1alpha1.RuleWarning{}
	if p.Status.ObservedGeneration != p.Generation || p.Status.TypeChecking == nil {
		return warnings, false
	}
	source, ok, err := vap.TranslationOf(p.Annotations)
	if !ok || err != nil || len(p.Status.TypeChecking.ExpressionWarnings) == 0 {
		return warnings, true
	}
	known := falseAlarms(p, schemas)
	for _, w := range p.Status.TypeChecking.ExpressionWarnings {
		var i int
		if n, _ := fmt.Sscanf(w.FieldRef, "spec.validations[%d]", &i); n != 1 || i < 0 || i >= len(source.Validations) {
			continue
		}
		from := source.Validations[i]
		for _, i := range from.Members() {
			member := source.Members[i]
			rule := member.Policy + "/" + member.Rule
			warnings[rule] = append(warnings[rule], v1alpha1.RuleWarning{
				Object: p.Name, FieldRef: w.FieldRef, Warning: strings.TrimSpace(w.Warning), Known: known[w.FieldRef],
				Rule: member.Rule, Path: from.Path,
			})
		}
	}
	return warnings, true
}

// falseAlarms are the fields of a policy of which a cluster's type checker complains
// and need not: with the types that values have at run time there is nothing to say.
func falseAlarms(p *nativePolicy, schemas *schema.Set) map[string]bool {
	out := map[string]bool{}
	for _, w := range apiserver.TypeCheck(p, schemas.StatusResolver(), schemas.RESTMapper()) {
		out[w.Field] = true
	}
	for _, w := range apiserver.TypeCheck(p, schemas.Resolver(), schemas.RESTMapper()) {
		delete(out, w.Field)
	}
	return out
}

func (o *passResult) fallbackActive(m *conditionSet, s *policySource, rules []*compile.Rule, status v1alpha1.PolicyTranslationStatus) {
	names, why := idle(rules)
	left, errs := status.Webhook, erringOf(status.Erring)
	switch {
	case len(names) > 0 && s.mode != v1alpha1.ModeShadow:
		m.set(v1alpha1.ConditionFallbackActive, metav1.ConditionFalse, reasonNotCarriedOut, "%s: %s", strings.Join(names, ", "), why)
	case left == 0:
		m.set(v1alpha1.ConditionFallbackActive, metav1.ConditionTrue, "NotNeeded", "no rule needs the webhook")
	case s.mode == v1alpha1.ModeShadow && (o.fallback != nil || o.problemsOf(s, true) != "" || o.stuck(s) == "" && errs == ""):
		m.set(v1alpha1.ConditionFallbackActive, metav1.ConditionTrue, "Shadow", "%s: %d", o.rehearsal(s), left)
	case o.fallback != nil:
		m.set(v1alpha1.ConditionFallbackActive, metav1.ConditionFalse, reasonOf(o.fallback), "rules that nobody judges, because the webhook does not serve them: %d: %v", left, o.fallback)
	case o.problemsOf(s, true) != "":
		m.set(v1alpha1.ConditionFallbackActive, metav1.ConditionFalse, reasonLeftOut, "rules that nobody judges, because the webhook leaves the policy out: %d: %s", left, o.problemsOf(s, true))
	case o.stuck(s) != "":
		m.set(v1alpha1.ConditionFallbackActive, metav1.ConditionFalse, o.stuck(s), "%s", o.problemsOf(s, false))
	case errs != "":
		m.set(v1alpha1.ConditionFallbackActive, metav1.ConditionFalse, "RuleErrs", "%s", errs)
	case o.problemsOf(s, false) != "":
		m.set(v1alpha1.ConditionFallbackActive, metav1.ConditionTrue, "Serving", "rules that the webhook serves: %d. Note: %s", left, o.problemsOf(s, false))
	default:
		m.set(v1alpha1.ConditionFallbackActive, metav1.ConditionTrue, "Serving", "rules that the webhook serves: %d", left)
	}
}

// erringOf is which rule errs on each request, as the first process says of which one does.
func erringOf(all []v1alpha1.ErringRules) string {
	for _, e := range all {
		if len(e.Rules) == 0 {
			continue
		}
		text := fmt.Sprintf("rule %s errs on each request that it is asked about; kvap eval shows why", e.Rules[0].Rule)
		if message := e.Rules[0].Message; message != "" {
			text += ": " + message
		}
		return text
	}
	return ""
}

// rehearsal is what becomes of the rules that remain of a policy in shadow. Whoever
// enforces the policy now goes on, whatever that is.
func (o *passResult) rehearsal(s *policySource) string {
	why := o.problemsOf(s, true)
	if o.fallback != nil {
		why = o.fallback.Error()
	}
	if why == "" {
		return "rules that the webhook judges beside whoever enforces the policy now, without effect"
	}
	return fmt.Sprintf("rules left to whoever enforces the policy now (the webhook does not judge them beside: %s)", why)
}

// problemsOf are what the Fallback says of a policy: why it leaves it out, or what it
// is well to know.
func (o *passResult) problemsOf(s *policySource, leftOut bool) string {
	var out []string
	for _, p := range o.problems {
		if p.Source == s.ref && p.LeftOut == leftOut && !p.Broken && !p.Missing && !slices.Contains(out, p.Message) {
			out = append(out, p.Message)
		}
	}
	return strings.Join(out, "; ")
}

// stuck is why a rule of a policy does nothing; empty where each does what it is for.
func (o *passResult) stuck(s *policySource) string {
	for _, p := range o.problems {
		if p.Stuck != "" && p.Source == s.ref {
			return p.Stuck
		}
	}
	return ""
}

// idle are the names of the rules that nothing carries out, and why that is for the
// first.
func idle(rules []*compile.Rule) (names []string, why string) {
	for _, r := range rules {
		if reason := r.NotServed(); reason != "" {
			names = append(names, r.Name())
			why = cmp.Or(why, reason)
		}
	}
	return names, why
}

// missingOf is what the webhook's rules of a policy read that is not there.
func (o *passResult) missingOf(s *policySource) string {
	for _, p := range o.problems {
		if p.Missing && p.Source == s.ref {
			return p.Message
		}
	}
	return ""
}

// brokenOf is which expressions of a policy that the webhook judges by do not compile.
func (o *passResult) brokenOf(s *policySource) string {
	for _, p := range o.problems {
		if p.Broken && p.Source == s.ref {
			return p.Message
		}
	}
	return ""
}
