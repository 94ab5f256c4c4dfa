package diff

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
)

// mostQuestions bounds what a policy is watched for.
const mostQuestions = 120

// A watcher sees which questions of policies in CEL come out which way: a policy that has them for
// validations tells it. The API server's code evaluates them as it does those of the policy itself.
type watcher struct {
	policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	asked    map[string][]asked // by policy, in the order of its validations
	seen     map[posed]*[2]bool
	judge    *apiserver.Judge
}

// A posed question is one of a policy, by its text.
type posed struct{ policy, text string }

// asked is a validation: whether a question holds, or whether it fails.
type asked struct {
	posed
	fails bool
}

func newWatcher() *watcher {
	return &watcher{asked: map[string][]asked{}, seen: map[posed]*[2]bool{}}
}

// watch has a native policy watched. Its params are those of a binding.
func (w *watcher) watch(p *admissionregistrationv1.ValidatingAdmissionPolicy, bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	var expressions []string
	for _, c := range p.Spec.MatchConditions {
		expressions = append(expressions, c.Expression)
	}
	for _, v := range p.Spec.Variables {
		expressions = append(expressions, v.Expression)
	}
	for _, v := range p.Spec.Validations {
		expressions = append(expressions, v.Expression)
	}
	w.add(p, bindings, expressions)
}

// watchPolicy has a policy in CEL watched, as far as an API server understands it.
func (w *watcher) watchPolicy(p *policy.Policy) {
	as := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.Kind + "/" + p.FullName()}}
	as.Spec.MatchConstraints = constraintsOf(p.MatchConstraints())
	var expressions []string
	for _, v := range p.Validating.Variables {
		if parsed, err := cel.Parse(v.Expression); err != nil || len(parsed.UnknownFunctions()) > 0 {
			return
		}
		as.Spec.Variables = append(as.Spec.Variables, admissionregistrationv1.Variable{Name: v.Name, Expression: v.Expression})
		expressions = append(expressions, v.Expression)
	}
	for _, v := range p.Validating.MatchConditions {
		expressions = append(expressions, v.Expression)
	}
	for _, v := range p.Validating.Validations {
		expressions = append(expressions, v.Expression)
	}
	w.add(as, nil, expressions)
}

func (w *watcher) add(p *admissionregistrationv1.ValidatingAdmissionPolicy, bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding, expressions []string) {
	out := *p
	out.Spec.MatchConditions, out.Spec.AuditAnnotations, out.Spec.Validations = nil, nil, nil
	ask := func(b cel.Bool, q posed, fails bool) {
		out.Spec.Validations = append(out.Spec.Validations, admissionregistrationv1.Validation{Expression: b.Text(1 << 20)})
		w.asked[p.Name] = append(w.asked[p.Name], asked{q, fails})
	}
	for _, text := range expressions {
		parsed, err := cel.Parse(text)
		if err != nil {
			continue
		}
		for _, one := range parsed.Questions() {
			q := posed{p.Name, one.Holds.Text(1 << 20)}
			if w.seen[q] != nil || len(one.Holds.UnknownFunctions()) > 0 || len(out.Spec.Validations) >= mostQuestions {
				continue
			}
			w.seen[q] = &[2]bool{}
			ask(one.Holds, q, false)
			ask(one.Fails, q, true)
		}
	}
	if len(out.Spec.Validations) == 0 {
		return
	}
	all := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}
	all.Spec.PolicyName, all.Spec.ValidationActions = p.Name, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
	if len(bindings) > 0 {
		all.Spec.ParamRef = bindings[0].Spec.ParamRef
	}
	w.policies, w.bindings = append(w.policies, &out), append(w.bindings, all)
}

// in is what is seen with some objects to look up.
func (w *watcher) in(o apiserver.JudgeOptions) (err error) {
	if w.judge == nil {
		w.judge, err = apiserver.NewJudge(w.policies, w.bindings, o)
	} else {
		w.judge, err = w.judge.With(o)
	}
	return err
}

// see tells whether a request showed something new.
func (w *watcher) see(ctx context.Context, by *apiserver.Judge, r *judge.Request) (fresh bool) {
	verdicts, err := r.Review(ctx, by)
	if err != nil {
		return false
	}
	for _, v := range verdicts {
		for _, result := range v.Results {
			a := w.asked[v.Policy][result.Index]
			way := 0
			if a.fails {
				way = 1
			}
			if seen := w.seen[a.posed]; result.Outcome == apiserver.Allow && !seen[way] {
				seen[way], fresh = true, true
			}
		}
	}
	return fresh
}

// bothWays counts the questions, and those that were seen to hold and to fail.
func (w *watcher) bothWays() (seen, all int) {
	for _, ways := range w.seen {
		if all++; ways[0] && ways[1] {
			seen++
		}
	}
	return seen, all
}

// unseen are the questions that were not seen both ways.
func (w *watcher) unseen() (out []string) {
	for q, ways := range w.seen {
		if !ways[0] || !ways[1] {
			out = append(out, q.text)
		}
	}
	slices.Sort(out)
	return out
}

// constraintsOf are the constraints of a policy in CEL as those of a native one.
func constraintsOf(m *policy.MatchConstraints) *admissionregistrationv1.MatchResources {
	out := &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}}
	equivalent := admissionregistrationv1.Equivalent
	out.MatchPolicy = &equivalent
	if m == nil {
		return out
	}
	for _, r := range m.Rules {
		var rule admissionregistrationv1.NamedRuleWithOperations
		for _, op := range r.Operations {
			rule.Operations = append(rule.Operations, admissionregistrationv1.OperationType(op))
		}
		scope := admissionregistrationv1.AllScopes
		rule.APIGroups, rule.APIVersions, rule.Resources, rule.Scope = r.Groups, r.Versions, r.Resources, &scope
		out.ResourceRules = append(out.ResourceRules, rule)
	}
	return out
}
