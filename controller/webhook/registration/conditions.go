package registration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
)

// The names of kvap's own match conditions.
const (
	excludedGroupsName = "kvap.dev/not-of-excluded-groups"
	machineryName      = "kvap.dev/not-machinery"
	ownName            = "kvap.dev/not-own"
	sourcesName        = "kvap.dev/not-deleted-policies"
)

// conditions keep requests away that no policy of an entry can say anything of:
// those of excluded groups, of the cluster's own machinery where a wildcard would
// take them in, kvap's own, and those that their own match conditions keep away.
func conditions(own []admissionregistrationv1.MatchCondition, targets []ruleTarget, excludeGroups []string) []admissionregistrationv1.MatchCondition {
	var out []admissionregistrationv1.MatchCondition
	if len(excludeGroups) > 0 {
		groups := slices.Clone(excludeGroups)
		slices.Sort(groups)
		out = append(out, admissionregistrationv1.MatchCondition{
			Name:       excludedGroupsName,
			Expression: "!has(request.userInfo.groups) || !request.userInfo.groups.exists(g, g in " + textList(groups) + ")",
		})
	}
	if left := machinery(targets); len(left) > 0 {
		out = append(out, admissionregistrationv1.MatchCondition{
			Name:       machineryName,
			Expression: "!(request.resource.group + '/' + request.resource.resource in " + textList(left) + ")",
		})
	}
	if slices.ContainsFunc(targets, ruleTarget.reachesOwn) {
		out = append(out, admissionregistrationv1.MatchCondition{Name: ownName, Expression: notOwn})
	}
	if left := sources(targets); len(left) > 0 {
		out = append(out, admissionregistrationv1.MatchCondition{
			Name:       sourcesName,
			Expression: "!(request.operation == 'DELETE' && request.resource.group + '/' + request.resource.resource in " + textList(left) + ")",
		})
	}
	return append(out, own...)
}

// notOwn keeps away what kvap's controller writes to keep policies in force, and to end
// that, and each deletion of a policy of kvap.dev: a rule on every kind would keep its own
// controller from working, and itself from being deleted. (Of configurations of webhooks
// the API server asks none.) Package vap leaves out the same.
const notOwn = "!(request.resource.group == 'kvap.dev' && " +
	"(request.resource.resource in ['generaterequests', 'params', 'policytranslations'] || " +
	"request.operation == 'DELETE' && request.resource.resource in ['clusterpolicies', 'migrations', 'namespacedvalidatingpolicies', 'policies', 'validatingpolicies']) || " +
	"request.resource.group == 'coordination.k8s.io' && request.resource.resource == 'leases' && " +
	"has(request.name) && request.name == 'kvap-controller.kvap.dev')"

// reachesOwn tells that a target may have objects of kvap's own.
func (t ruleTarget) reachesOwn() bool {
	return t.group == "*" || t.group == "kvap.dev" || t.group == "coordination.k8s.io"
}

// sources are the policies that a wildcard does not keep from being deleted, so that who made
// one that denies too much can delete it. A rule that names such a kind judges that. Package
// vap leaves out the same.
func sources(targets []ruleTarget) []string {
	deleting := slices.DeleteFunc(slices.Clone(targets), func(t ruleTarget) bool {
		return t.operation != "DELETE" && t.operation != "*" || !slices.Contains([]string{"*", "kyverno.io", "policies.kyverno.io"}, t.group)
	})
	return notByWildcard(deleting, []string{
		"kyverno.io/clusterpolicies", "kyverno.io/policies",
		"policies.kyverno.io/generatingpolicies", "policies.kyverno.io/namespacedgeneratingpolicies",
		"policies.kyverno.io/imagevalidatingpolicies", "policies.kyverno.io/namespacedimagevalidatingpolicies",
		"policies.kyverno.io/mutatingpolicies", "policies.kyverno.io/namespacedmutatingpolicies",
		"policies.kyverno.io/namespacedvalidatingpolicies", "policies.kyverno.io/validatingpolicies",
	})
}

// machinery is what a wildcard does not mean: what the API server and the nodes
// write all the time, and what they ask while they decide on a request. A rule that
// names such a kind gets it.
func machinery(targets []ruleTarget) []string {
	return notByWildcard(targets, []string{
		"/bindings", "/events", "/nodes", "authentication.k8s.io/selfsubjectreviews", "authentication.k8s.io/tokenreviews",
		"authorization.k8s.io/localsubjectaccessreviews", "authorization.k8s.io/selfsubjectaccessreviews",
		"authorization.k8s.io/selfsubjectrulesreviews", "authorization.k8s.io/subjectaccessreviews",
		"apiregistration.k8s.io/apiservices", "coordination.k8s.io/leases", "events.k8s.io/events",
	})
}

// notByWildcard are those of some resources, as group/resource, that none of the targets
// names; none where no target has a wildcard.
func notByWildcard(targets []ruleTarget, resources []string) []string {
	if !slices.ContainsFunc(targets, func(t ruleTarget) bool { return strings.HasPrefix(t.resource, "*") }) {
		return nil
	}
	return slices.DeleteFunc(resources, func(name string) bool {
		group, resource, _ := strings.Cut(name, "/")
		return slices.ContainsFunc(targets, func(t ruleTarget) bool { return (t.group == group || t.group == "*") && t.plural() == resource })
	})
}

// plural is the resource without its subresource.
func (t ruleTarget) plural() string {
	name, _, _ := strings.Cut(t.resource, "/")
	return name
}

// textList is a list of texts in CEL. They are names of groups and resources, which are
// quoted all the same.
func textList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, s := range texts {
		quoted[i] = "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// maxConditions is how many match conditions a policy may have: the API server takes
// 64, of which some are ours.
const maxConditions = 60

// Conditions are what there is to say of a policy's match conditions before API servers are told
// of them.
type Conditions struct {
	// dear tells that API servers evaluate none of them, which may cost them too much.
	dear bool
	// authorizer tells that they ask who may do what.
	authorizer bool
	// wrong says why an API server would refuse them; "" if it would not.
	wrong string
}

// ConditionsOf reads the match conditions of a policy, which takes longer than all else that
// registers it.
func ConditionsOf(p *policy.Policy) Conditions {
	dear := EvaluatesNone(p)
	return Conditions{dear, dear && asksAuthorizer(p.MatchConditions), unacceptable(p.MatchConditions)}
}

// unacceptable says why the API server would refuse match conditions; "" if it would
// not. It refuses a configuration as a whole, so that one policy, even of a namespace,
// would keep those of all others from being written.
func unacceptable(conditions []policy.CEL) string {
	if len(conditions) == 0 {
		return ""
	}
	if len(conditions) > maxConditions {
		return fmt.Sprintf("it has %d match conditions; %d are allowed", len(conditions), maxConditions)
	}
	compiler := plugincel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	names := map[string]bool{}
	for _, c := range conditions {
		if wrong := validation.IsQualifiedName(c.Name); len(wrong) > 0 {
			return fmt.Sprintf("the match condition %q: %s", c.Name, wrong[0])
		}
		if names[c.Name] || slices.Contains([]string{excludedGroupsName, machineryName, ownName, sourcesName}, c.Name) {
			return fmt.Sprintf("two match conditions are named %q", c.Name)
		}
		names[c.Name] = true
		if len(c.Expression) > maxShard {
			continue // it is left out
		}
		result := compiler.CompileCELExpression(&matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression},
			plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
		if result.Error != nil {
			return fmt.Sprintf("the match condition %q: %s", c.Name, result.Error.Detail)
		}
	}
	return ""
}

const (
	// maxCost is what the match conditions of a policy of a namespace may cost an API server for
	// one request, in the units of its budget, of which it spends a million in a quarter of a
	// second. Whoever may write the policy also says how large the objects are.
	maxCost = 25_000
	// anySize is more than a request holds of anything.
	anySize = 1_500_000
)

// costsMuch tells whether match conditions may cost an API server too much.
func costsMuch(conditions []policy.CEL) bool {
	var sum int64
	for _, c := range conditions {
		if len(c.Expression) > maxNamespace {
			continue // it is left out
		}
		grows := false
		if v, err := cel.Parse(c.Expression); err == nil { // else it is left out
			sum += cel.Cost(v, sizeInRequest)
			v.Calls(func(name string, _ int) { grows = grows || makesMore(name) })
		}
		if grows || sum > maxCost {
			return true
		}
	}
	return false
}

// makesMore tells of functions of which API servers count what they read, but not what they make:
// a few thousand characters become gigabytes.
func makesMore(function string) bool { return function == "replace" || function == "format" }

// sizeInRequest is how large what is at a path may be: of an object anything, for all else what
// is common.
func sizeInRequest(path string) int {
	if root, _, _ := strings.Cut(path, "."); root == "object" || root == "oldObject" {
		return anySize
	}
	return 0
}

// asksAuthorizer tells whether match conditions ask who may do what.
func asksAuthorizer(conditions []policy.CEL) bool {
	return slices.ContainsFunc(conditions, func(c policy.CEL) bool {
		v, err := cel.Parse(c.Expression)
		return err == nil && slices.Contains(v.Idents(), "authorizer")
	})
}

// always are the namespaces that are never judged, whatever the user says: what is
// there has to come up before a webhook can answer.
func always() []string { return []string{"kube-node-lease", "kube-system"} }

// lockup says why the targets of a policy must not wait for a webhook; "" if they
// may.
func lockup(targets []ruleTarget) string {
	for _, t := range targets {
		switch t.group {
		case "authentication.k8s.io", "authorization.k8s.io":
			return fmt.Sprintf("it is about %s, which the API server asks for while it decides on the webhook's own requests", t.resource)
		}
	}
	return ""
}

// risk says what may become difficult while no webhook answers; "" if nothing.
func risk(targets []ruleTarget) string {
	for _, t := range targets {
		switch t.group + "/" + t.plural() {
		case "/nodes", "certificates.k8s.io/certificatesigningrequests":
			return fmt.Sprintf("no node can join while the webhook is down, because the policy is about %s and its failure policy is Fail", t.resource)
		}
	}
	return ""
}

// Check tells why configurations must not be written: a webhook that must answer
// and is asked about what it needs itself to come up. It looks at the objects only,
// however they were made.
func Check(o Configurations) error {
	for _, w := range o.Webhooks() {
		if err := check(w); err != nil {
			return err
		}
	}
	return nil
}

func check(w admissionregistrationv1.ValidatingWebhook) error {
	if w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore {
		return nil
	}
	needed := always()
	if w.ClientConfig.Service != nil {
		needed = append(needed, w.ClientConfig.Service.Namespace)
	}
	for _, name := range needed {
		if selects(w.NamespaceSelector, name) {
			return fmt.Errorf("the webhook %s must answer for the namespace %s, without which it may never come up", w.Name, name)
		}
	}
	for _, r := range w.Rules {
		if slices.Contains(r.APIGroups, "authentication.k8s.io") || slices.Contains(r.APIGroups, "authorization.k8s.io") {
			return fmt.Errorf("the webhook %s must answer for %v, which the API server asks for while it decides on the webhook's own requests", w.Name, r.Resources)
		}
	}
	return nil
}

// selects tells whether a namespace that has the label of its name, and any others,
// may be selected.
func selects(s *metav1.LabelSelector, name string) bool {
	if s == nil {
		return true
	}
	if want, ok := s.MatchLabels[nameLabel]; ok && want != name {
		return false
	}
	for _, r := range s.MatchExpressions {
		if r.Key != nameLabel {
			continue
		}
		listed := slices.Contains(r.Values, name)
		if r.Operator == metav1.LabelSelectorOpIn && !listed || r.Operator == metav1.LabelSelectorOpNotIn && listed {
			return false
		}
	}
	return true
}
