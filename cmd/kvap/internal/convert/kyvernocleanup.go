package convert

import (
	"fmt"
	"slices"
	"time"

	"github.com/kvap/kvap/celpolicy"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
)

// cleanupsToKyverno puts DeletingPolicies in the place of cleanup policies, and says of those
// without one what is in the way. What is said of who runs a cleanup policy is true of none here.
func (done *Compilation) cleanupsToKyverno(c Choices) {
	done.Cleaned = celpolicy.Cleanups(done.Cleanups, compile.Options{Translate: c.Translate, Emit: c.Emit}, celpolicy.Options{Version: c.Version})
	done.Found = slices.DeleteFunc(done.Found, func(d diag.Diagnostic) bool { return d.Code == diag.OnSchedule })
	for i := range done.Cleaned {
		one := &done.Cleaned[i]
		schedule := one.Of.Schedule
		if _, err := interp.NextDeletion(schedule.Value, time.Unix(0, 0)); err != nil && one.Left == nil {
			d := diag.Warnf(schedule.Pos, diag.NoKyvernoForm, "Kyverno's kinds in CEL have no form for the schedule %s", schedule.Value)
			one.Left, one.Objects, one.Found = &d, nil, nil
		}
		if one.Left != nil {
			d := *one.Left
			d.Message = fmt.Sprintf("%s; the cleanup policy stays as it is: write it by hand as a DeletingPolicy, or say it in another way and convert again", withoutWebhook(d.Message))
			one.Left = &d
			done.Diagnostics = append(done.Diagnostics, d)
		}
		done.Diagnostics = append(done.Diagnostics, one.Found...)
	}
	for _, of := range done.Cleanups {
		if of.Deleting != nil {
			done.Diagnostics = append(done.Diagnostics, inCEL(of))
		}
	}
}

// inCEL is what there is to say of a DeletingPolicy.
func inCEL(of *policy.Cleanup) diag.Diagnostic {
	return diag.Notef(of.Pos, diag.NoKyvernoForm, "the %s %s is of Kyverno's kinds in CEL already, and stays as it is", of.Kind, of.Name)
}

// cleanupRows say what became of cleanup policies, each as if it were one rule.
func (done *Compilation) cleanupRows() (out []report.Policy) {
	if done.Kyverno == nil {
		return nil
	}
	made := map[*policy.Cleanup]celpolicy.Cleaned{}
	for _, one := range done.Cleaned {
		made[one.Of] = one
	}
	for _, of := range done.Cleanups {
		rule := report.Rule{Name: of.Name, Type: "cleanup", Line: of.Pos.Line, Target: report.CEL}
		one := made[of]
		switch {
		case of.Invalid:
			rule.Target, rule.Reason = report.Left, "the cleanup policy has errors"
		case of.Deleting != nil:
			rule.Target, rule.Codes, rule.Reason = report.Left, []diag.Code{diag.NoKyvernoForm}, inCEL(of).Message
		case one.Left != nil:
			rule.Target, rule.Codes, rule.Reason = report.Left, []diag.Code{one.Left.Code}, one.Left.Message
		}
		for _, d := range one.Found {
			rule.Codes = append(rule.Codes, d.Code)
		}
		for _, o := range one.Objects {
			rule.Objects = append(rule.Objects, fmt.Sprintf("%s/%s", o.Kind, o.Name))
		}
		out = append(out, report.Policy{Name: of.Name, Kind: of.Kind, Namespace: of.Namespace, File: of.Pos.File, Rules: []report.Rule{rule}})
	}
	return out
}

// cleanupsLeft are the cleanup policies that stay as they are.
func (done *Compilation) cleanupsLeft() (out []*policy.Cleanup) {
	for _, of := range done.Cleanups {
		if done.Kyverno != nil && !of.Invalid && !slices.ContainsFunc(done.Cleaned, func(one celpolicy.Cleaned) bool { return one.Of == of && one.Left == nil }) {
			out = append(out, of)
		}
	}
	return out
}

// Guessed tells that the resource of some rule, or of some cleanup policy, is guessed.
func (done *Compilation) Guessed() bool {
	is := func(d diag.Diagnostic) bool { return d.Code == diag.GuessedResource }
	return slices.ContainsFunc(done.Rules, func(r *compile.Rule) bool { return slices.Contains(r.Codes, diag.GuessedResource) }) ||
		slices.ContainsFunc(done.Cleaned, func(one celpolicy.Cleaned) bool { return slices.ContainsFunc(one.Found, is) })
}
