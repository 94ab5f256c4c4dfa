package migrate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
)

// MakePlan says what becomes of each policy of a compilation, and when it goes: in a
// wave those first that the fewest objects violate. violations are of the rules that
// objects were put before; unread are policies that stay as they are.
func MakePlan(compiled compile.Result, unread []*policy.Unread, violations map[*compile.Rule]report.Violations) report.Plan {
	rules := map[*policy.Policy][]*compile.Rule{}
	for _, r := range compiled.Rules {
		rules[r.Policy] = append(rules[r.Policy], r)
	}
	var planned []report.PlannedPolicy
	for _, p := range compiled.Policies {
		planned = append(planned, planOf(p, rules[p], compiled, violations))
	}
	for _, u := range unread {
		version, _ := u.Source.Get("apiVersion").Value().(string)
		rule := report.PlannedRule{Rule: u.Name, Target: report.Unsupported, Line: u.Pos.Line, Reason: u.Reason, Codes: []report.PlannedCode{plannedCode(u.Code)}}
		planned = append(planned, report.PlannedPolicy{
			Kind: u.Kind, Namespace: u.Namespace, Name: u.Name, File: u.Pos.File, Line: u.Pos.Line,
			Becomes: "unsupported", Wave: staying, Kyverno: ahead(version, u.Kind), Rules: []report.PlannedRule{rule},
		})
	}
	slices.SortStableFunc(planned, func(a, b report.PlannedPolicy) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.Violations(), b.Violations()), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return report.NewPlan(planned, waves())
}

func planOf(p *policy.Policy, rules []*compile.Rule, compiled compile.Result, violations map[*compile.Rule]report.Violations) report.PlannedPolicy {
	out := report.PlannedPolicy{Kind: p.Kind, Namespace: p.Within(), Name: p.Name, File: p.Pos.File, Line: p.Pos.Line, Kyverno: ahead(p.APIVersion, p.Kind)}
	differs := false // by a code that says so
	for _, r := range rules {
		row := report.PlannedRule{Rule: r.Name(), Type: r.Type(), Target: report.Target(r.Target), Line: r.Pos().Line, Reason: r.Reason}
		if why := r.NotServed(); why != "" {
			row.Target, row.Reason = report.Unsupported, why
		}
		if v, asked := violations[r]; asked {
			row.Violations = &v
		}
		row.Denies = row.Type == "validate" && canDeny(r)
		out.Denies = out.Denies || row.Denies
		codes := slices.Clip(r.Codes)
		if r.Source != nil && actsTwice(r.Source) {
			codes = append(codes, diag.ActsTwice)
		}
		if r.Source != nil && takenOver(r.Source) {
			codes = append(codes, diag.TakenOver)
		}
		for _, c := range codes {
			row.Codes = append(row.Codes, plannedCode(c))
			differs = differs || c >= 300 && c < 400
		}
		for _, name := range compiled.ObjectNames(r) {
			if !slices.Contains(out.Objects, name) {
				out.Objects = append(out.Objects, name)
			}
		}
		out.Rules = append(out.Rules, row)
	}
	out.Becomes = becomes(out.Rules)
	switch {
	case out.Becomes == "unsupported":
		out.Wave = staying
	case out.Becomes != "native":
		out.Wave = remaining
	case differs:
		out.Wave = different
	case out.Denies:
		out.Wave = enforcing
	default:
		out.Wave = auditing
	}
	return out
}

// ahead is what becomes of a policy of a kind with the next versions of Kyverno. Those of
// kvap.dev have left it, and of cleanup policies nothing is decided.
func ahead(apiVersion, kind string) report.Ahead {
	group, _, _ := strings.Cut(apiVersion, "/")
	switch {
	case IsLegacy(v1alpha1.PolicyReference{Group: group, Kind: kind}):
		return report.Ahead{On120: report.NoEffect, On121: report.Gone}
	case group == ExceptingGroup:
		return report.Ahead{On120: report.AsNow, On121: report.AsNow}
	}
	return report.Ahead{}
}

func plannedCode(c diag.Code) report.PlannedCode {
	name, _ := diag.Title(c)
	return report.PlannedCode{Code: c, Title: name, Remedy: diag.Remedy(c)}
}

// canDeny tells whether a violation of the rule is denied in some namespace.
func canDeny(r *compile.Rule) bool {
	if v := r.Policy.Validating; v != nil {
		return len(v.Actions) == 0 || slices.Contains(v.Actions, "Deny")
	}
	action, overrides := r.Policy.Action, r.Policy.Overrides
	if v := r.Source.Validate; v != nil {
		if v.Action != "" {
			action, overrides = v.Action, nil
		}
		overrides = slices.Concat(overrides, v.Overrides)
	}
	return action == policy.Enforce ||
		slices.ContainsFunc(overrides, func(o policy.ActionOverride) bool { return o.Action == policy.Enforce })
}

// becomes is where the rules of a policy end up, in a word.
func becomes(rules []report.PlannedRule) string {
	count := map[report.Target]int{}
	for _, r := range rules {
		count[r.Target]++
	}
	switch {
	case count[report.Unsupported] > 0 || len(rules) == 0:
		return "unsupported"
	case count[report.Webhook] == 0:
		return "native"
	case count[report.Native] == 0:
		return "webhook"
	}
	return "mixed"
}

// The waves, the safest first.
const (
	auditing  = 1 + iota // native, and nothing is ever denied
	enforcing            // native, some denies, the same on every request
	different            // native, and different in a way to be read first
	remaining            // some rule needs kvap's webhook
	staying              // some rule has no place with kvap
)

// waves are the titles, and what to do.
func waves() []report.Wave {
	return []report.Wave{
		{Number: auditing, Title: "native, audit only",
			Advice: "Nothing can be denied by mistake. Move these first, and compare what both find (kvap migrate compare)."},
		{Number: enforcing, Title: "native, enforcing, no known difference",
			Advice: "Run them beside Kyverno (kvap migrate shadow), compare, then enforce."},
		{Number: different, Title: "native, with differences to be read",
			Advice: "Read what kvap explain says of their 3xx codes, and decide whether it matters to you; then shadow, compare and enforce as well."},
		{Number: remaining, Title: "needs kvap's webhook",
			Advice: "Follow the way out that a code names, or install the controller, whose webhook serves these rules."},
		{Number: staying, Title: "stays with Kyverno",
			Advice: "Some rule has an error, or no place with kvap. Correct the error and plan again; rewrite the rule, or keep a Kyverno that still runs it."},
	}
}
