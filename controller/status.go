package controller

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// A passResult is what the steps of a pass came to, of which statuses tell.
type passResult struct {
	compileResult
	paramResult
	handoverResult

	// What API servers were seen to judge by.
	judges  map[string]bool     // objects as they are, by kind and name
	servers int                 // how many API servers they are
	parts   map[string]parts    // of rules, whatever else is in the objects
	unknown map[paramKind]error // the kinds of params that some API server does not know, and why

	fallback error // why the webhook does not serve what remains; nil where it does
	problems []FallbackProblem

	scans   func([]*compile.Rule) (problem string, known bool) // of objects that are there, for reports; nil where nobody asks for these
	served  *served
	gone    func(by string) bool          // a process that judged
	active  []*exception                  // exceptions that count
	ignored []*exception                  // exceptions that do not count
	unheard map[apischema.GroupKind]error // kinds of policies whose changes are not heard, and why

	there    map[string]parts      // those of the objects that are live
	warnings map[string]typeChecks // about them, as far as statuses have asked
}

// typeChecks are the warnings of one object.
type typeChecks struct {
	byRule map[string][]v1alpha1.RuleWarning
	done   bool
}

// statusOf is what became of a policy, but for the times of conditions and the generation
// that is observed. before is what was said of it the last time.
func (o *passResult) statusOf(s *policySource, before v1alpha1.PolicyTranslationStatus) v1alpha1.PolicyTranslationStatus {
	out := v1alpha1.PolicyTranslationStatus{SourceGeneration: s.generation, SourceDigest: s.digest, Mode: s.mode}
	m := &conditionSet{}
	if s.mode == v1alpha1.ModeOff {
		m.set(v1alpha1.ConditionReady, metav1.ConditionTrue, "Off", "kvap leaves the policy alone")
		out.Conditions = m.conditions
		return out
	}
	rules := o.rules[s.policy]
	var actions []string
	for _, r := range rules {
		row := o.row(s, r)
		out.Rules = append(out.Rules, row)
		actions = append(actions, strings.Split(row.Action, ",")...)
		switch translate.Target(row.Target) {
		case translate.Native:
			out.Native++
		case translate.Webhook:
			out.Webhook++
		case translate.Unsupported:
			out.Unsupported++
		}
	}
	out.Action = joined(actions)
	out.Exceptions = activeFor(s.policy, o.active)
	out.IgnoredExceptions = ignoredFor(s.policy, o.ignored)
	out.LastGood = s.lastGood().DeepCopy()
	out.Erring = slices.DeleteFunc(slices.Clone(before.Erring), func(e v1alpha1.ErringRules) bool { return e.Generation != s.generation || o.gone(e.By) })
	o.compiled(m, s, rules, out.Rules)
	o.kindsServed(m, rules)
	o.synced(m, rules)
	o.typeChecked(m, s, rules, out.Rules, before)
	o.paramsResolved(m, s, rules)
	o.enforced(m, s, rules)
	o.fallbackActive(m, s, rules, out)
	m.ready()
	o.reported(m, rules, before)
	out.Conditions = m.conditions
	return fitted(out)
}

// targetScan is the target of a rule that only the scans of --reports ask.
const targetScan = "scan"

// isForScans tells of a rule whose policy has admission: false, and is not off for scans too.
func isForScans(r *compile.Rule) bool {
	return slices.Contains(r.Codes, diag.BackgroundOnly) && r.Policy.Background && r.Type() == "validate"
}

// scanned tells of such a rule that the scans ask.
func (o *passResult) scanned(r *compile.Rule) bool { return o.scans != nil && isForScans(r) }

// reported tells whether reports about objects that are there are up to date. The policy is
// enforced in either case, so Ready does not follow from it. A leader that has not scanned yet
// leaves what the one before said.
func (o *passResult) reported(m *conditionSet, rules []*compile.Rule, before v1alpha1.PolicyTranslationStatus) {
	if o.scans == nil {
		return
	}
	problem, known := o.scans(rules)
	old := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReported)
	switch {
	case !known && old != nil:
		m.set(v1alpha1.ConditionReported, old.Status, old.Reason, "%s", old.Message)
	case problem != "":
		m.set(v1alpha1.ConditionReported, metav1.ConditionFalse, "ScanFailed", "%s", problem)
	case known:
		m.set(v1alpha1.ConditionReported, metav1.ConditionTrue, "Scanned", "objects that are there are scanned, and reports are up to date")
	}
}

// row is what became of one rule.
func (o *passResult) row(s *policySource, r *compile.Rule) v1alpha1.RuleStatus {
	row := v1alpha1.RuleStatus{Rule: r.Name(), Type: r.Type(), Target: string(r.Target), Reason: r.Reason}
	if o.scanned(r) {
		row.Target = targetScan
	}
	if why := r.NotServed(); why != "" {
		row.Target, row.Reason = string(translate.Unsupported), why
	}
	row.CostPercent = costPercent(r, o.result)
	for _, c := range r.Codes {
		row.Codes = append(row.Codes, c.String())
	}
	var actions []string
	for _, object := range o.of(r) {
		row.Objects = append(row.Objects, object.policy.GetName())
		for _, b := range object.bindings {
			for _, a := range field[[]admissionregistrationv1.ValidationAction](b, "ValidationActions") {
				actions = append(actions, string(a))
			}
		}
		row.Warnings = append(row.Warnings, o.warningsOf(keyOf(object.policy), r)...)
	}
	if r.Target == translate.Webhook && row.Type == "validate" && s.mode == v1alpha1.ModeEnforce {
		actions = append(actions, webhookAction(r))
	}
	row.Action = joined(actions)
	return row
}

// webhookAction is what follows from a violation of a rule that the webhook judges.
func webhookAction(r *compile.Rule) string {
	action := r.Policy.Action
	if r.Source != nil && r.Source.Validate != nil && r.Source.Validate.Action != "" {
		action = r.Source.Validate.Action
	}
	if action == policy.Enforce || r.Policy.Validating != nil && slices.Contains(r.Policy.Validating.Actions, "Deny") {
		return "Deny"
	}
	return "Audit"
}

// warningsOf are the warnings of an object about the forms of a rule.
func (o *passResult) warningsOf(object string, r *compile.Rule) []v1alpha1.RuleWarning {
	c, ok := o.warnings[object]
	if !ok {
		if have, _ := o.live.policies[object].(*nativePolicy); have != nil && isOurs(have) {
			c.byRule, c.done = typeWarnings(have, o.schemas)
		}
		if o.warnings == nil {
			o.warnings = map[string]typeChecks{}
		}
		o.warnings[object] = c
	}
	var out []v1alpha1.RuleWarning
	for _, f := range r.Forms {
		out = append(out, c.byRule[r.PolicyName()+"/"+f.Name]...)
	}
	return out
}

func (o *passResult) compiled(m *conditionSet, s *policySource, rules []*compile.Rule, rows []v1alpha1.RuleStatus) {
	errors, unheard := errorsOf(s.found), o.unheard[apischema.GroupKind{Group: s.ref.Group, Kind: s.ref.Kind}]
	unsupported := slices.DeleteFunc(slices.Clone(rules), func(r *compile.Rule) bool {
		return r.Target != translate.Unsupported || o.scanned(r)
	})
	switch {
	case s.uninstalled && s.policy == nil:
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionFalse, reasonUninstalled, "the definition of %s in %s was removed, and the policy with it; no copy was kept, so nothing of it is enforced any more: "+
			"apply it as a policy of kvap.dev", s.ref.Kind, s.ref.Group)
	case s.uninstalled:
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionFalse, reasonUninstalled, "the definition of %s in %s was removed, and the policy with it; nobody has said that it is not wanted, so what was read last "+
			"stays in force: make it a policy of kvap.dev (kvap migrate adopt), or delete this PolicyTranslation", s.ref.Kind, s.ref.Group)
	case s.badMode != "":
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionFalse, "BadMode", "%s is %q; say one of %s. Until then the policy counts as %s",
			v1alpha1.ModeKey, s.badMode, strings.Join(Modes(), ", "), s.mode)
	case s.lastOne:
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionFalse, "Invalid", "the last good version stays in force: %s", errors)
	case s.policy == nil || s.policy.Invalid:
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionFalse, "Invalid", "the policy cannot be read: %s", errors)
	case unheard != nil:
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionUnknown, reasonUnheard, "changes of policies of this kind are not heard; what was read last stays in force: %v", unheard)
	case o.brokenOf(s) != "":
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionFalse, "NotCompiled", "an expression does not compile, so that its rule errs on every request that it matches: %s", o.brokenOf(s))
	case len(unsupported) > 0 && isForScans(unsupported[0]):
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionFalse, "Unsupported", "rule %s is judged nowhere: %s; start the controller with --reports", unsupported[0].Name(), unsupported[0].Reason)
	case len(unsupported) > 0:
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionFalse, "Unsupported", "rule %s is judged nowhere: %s", unsupported[0].Name(), unsupported[0].Reason)
	case dear(rows) != nil:
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionTrue, reasonCostly, "every rule has a place where it is judged, but rule %s may cost up to %d%% of what an API server allows: "+
			"it refuses objects for which that is exceeded, or lets them pass under failurePolicy Ignore", dear(rows).Rule, dear(rows).CostPercent)
	case !isKept(s.lastGood()):
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionTrue, "Compiled", "every rule has a place where it is judged. The policy is too large to keep a copy: "+
			"if it breaks, this version stays in force until the controller starts anew")
	default:
		m.set(v1alpha1.ConditionCompiled, metav1.ConditionTrue, "Compiled", "every rule has a place where it is judged")
	}
}

// reasonUnheard is the reason of Compiled where API servers refuse to tell of policies.
const reasonUnheard = "NotWatched"

func errorsOf(found diag.List) string {
	var out []string
	for _, d := range found {
		if d.Severity == diag.Error {
			out = append(out, strings.TrimPrefix(d.Path+": ", ": ")+d.Message+" ["+d.Code.String()+"]")
		}
	}
	const few = 5
	if len(out) > few {
		out = append(out[:few], "and more")
	}
	return strings.Join(out, "; ")
}

func (o *passResult) synced(m *conditionSet, rules []*compile.Rule) {
	late := false
	for _, r := range rules {
		for _, object := range o.of(r) {
			name := keyOf(object.policy)
			switch err := o.failed[name]; {
			case err == nil && !o.late[name], object.judgedBy(o.there, r): // what is to be written is about others
			case err != nil:
				m.set(v1alpha1.ConditionSynced, metav1.ConditionFalse, reasonOf(err), "%v", err)
				return
			default:
				late = true
			}
		}
	}
	if late {
		m.set(v1alpha1.ConditionSynced, metav1.ConditionUnknown, "Pending", "objects are still to be written")
		return
	}
	m.set(v1alpha1.ConditionSynced, metav1.ConditionTrue, "Synced", "the API server has the objects of all native rules")
}

// objectsOf are the keys of what rules are judged by.
func (o *passResult) objectsOf(rules []*compile.Rule) []string {
	var out []string
	for _, r := range rules {
		for _, object := range o.of(r) {
			out = append(out, keyOf(object.policy))
		}
	}
	return out
}

// typeChecked is about the policy as it is. While the API server looks anew at an
// object that has changed for the sake of other policies, what it said before of this
// one stands.
func (o *passResult) typeChecked(m *conditionSet, s *policySource, rules []*compile.Rule, rows []v1alpha1.RuleStatus, before v1alpha1.PolicyTranslationStatus) {
	said := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionTypeChecked)
	if name := o.unchecked(rules); name != "" {
		if said == nil || before.SourceDigest != s.digest || before.Mode == v1alpha1.ModeOff {
			m.set(v1alpha1.ConditionTypeChecked, metav1.ConditionUnknown, "Pending", "the API server has not yet checked %s", name)
			return
		}
		m.set(said.Type, said.Status, said.Reason, "%s", said.Message)
		for i := range rows {
			for _, old := range before.Rules {
				if old.Rule == rows[i].Rule {
					rows[i].Warnings = old.Warnings
				}
			}
		}
		return
	}
	for _, row := range rows {
		for _, w := range row.Warnings {
			if !w.Known {
				m.set(v1alpha1.ConditionTypeChecked, metav1.ConditionFalse, "Warning", "rule %s, %s: %s", w.Rule, w.Path, w.Warning)
				return
			}
		}
	}
	m.set(v1alpha1.ConditionTypeChecked, metav1.ConditionTrue, "Checked", "the expressions fit the types that they are about, as far as these are known")
}

// unchecked is an object that the API server has not yet checked, if there is one.
func (o *passResult) unchecked(rules []*compile.Rule) string {
	for _, name := range o.objectsOf(rules) {
		if !o.warnings[name].done && !strings.HasPrefix(name, mutatingPrefix) { // which nobody checks
			return name
		}
	}
	return ""
}

func (o *passResult) paramsResolved(m *conditionSet, s *policySource, rules []*compile.Rule) {
	resolved := "what the rules read is there"
	for _, r := range rules {
		ref, waits := o.waiting[r]
		switch {
		case waits && o.unwritten[ref] != nil:
			m.set(v1alpha1.ConditionParamsResolved, metav1.ConditionFalse, reasonOf(o.unwritten[ref]), "the params of rule %s, which reads the ConfigMap %s/%s, cannot be made; until they are, "+
				"the webhook judges by the rule: %v", r.Name(), ref.namespace, ref.name, o.unwritten[ref])
			return
		case waits && slices.Contains(o.missing, ref):
			m.set(v1alpha1.ConditionParamsResolved, metav1.ConditionFalse, "Missing", "rule %s reads the ConfigMap %s/%s, which does not exist; until it does, the webhook judges by the rule: "+
				"a request that the rule matches is refused where it comes to read it, or admitted under failurePolicy Ignore", r.Name(), ref.namespace, ref.name)
			return
		case waits: // who asks for an object where there is none is told by the rule
			resolved = fmt.Sprintf("rule %s reads the ConfigMap %s of each object's own namespace; as %s has none, or is being deleted, the webhook judges by the rule", r.Name(), ref.name, ref.namespace)
		}
		for _, object := range o.of(r) {
			for _, ref := range object.configMaps() {
				if slices.Contains(o.missing, ref) {
					meanwhile := "the rule judges nothing"
					if deniesWithoutParams(object) {
						meanwhile = "every request for the kinds that the rule is about is denied"
					}
					m.set(v1alpha1.ConditionParamsResolved, metav1.ConditionFalse, "Missing", "rule %s reads the ConfigMap %s/%s, which does not exist; until it does, %s",
						r.Name(), ref.namespace, ref.name, meanwhile)
					return
				}
				if o.params != nil {
					m.set(v1alpha1.ConditionParamsResolved, metav1.ConditionUnknown, reasonOf(o.params), "%v", o.params)
					return
				}
			}
		}
	}
	if missing := o.missingOf(s); missing != "" {
		m.set(v1alpha1.ConditionParamsResolved, metav1.ConditionFalse, "Missing", "%s", missing)
		return
	}
	m.set(v1alpha1.ConditionParamsResolved, metav1.ConditionTrue, "Resolved", "%s", resolved)
}

// reasonNotSeen is the reason of Enforced where an API server was not seen to judge by
// what was written, however long that was waited for.
const reasonNotSeen = "NotSeen"

func (o *passResult) enforced(m *conditionSet, s *policySource, rules []*compile.Rule) {
	switch {
	case len(o.objectsOf(rules)) == 0:
		m.set(v1alpha1.ConditionEnforced, metav1.ConditionTrue, "NotNeeded", "no rule is judged by the API server")
	case o.unknownTo(rules) != nil:
		m.set(v1alpha1.ConditionEnforced, metav1.ConditionUnknown, reasonNotSeen, "%v", o.unknownTo(rules))
	case o.seen != nil && !o.isSeen(rules):
		m.set(v1alpha1.ConditionEnforced, metav1.ConditionUnknown, reasonNotSeen, "%v", o.seen)
	case s.mode == v1alpha1.ModeShadow:
		m.set(v1alpha1.ConditionEnforced, metav1.ConditionTrue, "Shadow", "API servers seen to judge by the native rules, with the action Audit: %d", o.servers)
	default:
		m.set(v1alpha1.ConditionEnforced, metav1.ConditionTrue, "Seen", "API servers seen to judge by the native rules: %d", o.servers)
	}
}

// unknownTo is why an API server does not know the kind of params of a rule; nil where all
// do. It refuses every request that the rule's object is about.
func (o *passResult) unknownTo(rules []*compile.Rule) error {
	for _, r := range rules {
		for _, object := range o.of(r) {
			if kind, ok := paramKindOf(object.policy); ok && o.unknown[kind] != nil {
				return o.unknown[kind]
			}
		}
	}
	return nil
}

// isSeen tells that the objects of all rules are judged by as they are, or what these rules
// are judged by in them, whatever has changed elsewhere.
func (o *passResult) isSeen(rules []*compile.Rule) bool {
	for _, r := range rules {
		for _, object := range o.of(r) {
			unseen := slices.ContainsFunc(object.objects(), func(one client.Object) bool { return !o.judges[writtenKey(one)] })
			if unseen && !object.judgedBy(o.parts, r) {
				return false
			}
		}
	}
	return true
}

func joined(actions []string) string {
	known := []string{"Deny", "Warn", "Audit"}
	return strings.Join(slices.DeleteFunc(known, func(a string) bool { return !slices.Contains(actions, a) }), ",")
}

// statusText is what of a status differs where there is something to write: all but times.
func statusText(s v1alpha1.PolicyTranslationStatus) string {
	s = *s.DeepCopy()
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	if s.LastGood != nil {
		s.LastGood.Policy, s.LastGood.Packed = "", nil // the digest stands for them
	}
	return asJSON(s)
}
