package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/celpolicy"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
)

// What policies become.
const (
	ToNative  = "native"
	ToKyverno = "kyverno"
)

// KyvernoVersions are the versions of Kyverno whose kinds in CEL can be asked for.
func KyvernoVersions() []string { return []string{"1.17", "1.18", "1.19"} }

// ForKyverno are the choices for policies of Kyverno's kinds in CEL, of a version of Kyverno.
// They have no guard, which would have good requests reported as skipped; and Kyverno's own
// configuration says which namespaces are left out.
func (c Choices) ForKyverno(version string) Choices {
	c.To, c.Version = ToKyverno, "v1"
	if version == "1.17" {
		c.Version = "v1beta1"
	}
	c.Translate.Guard, c.Translate.Mutations = translate.GuardNever, true
	c.Translate.Generations, c.Translate.Targets, c.Translate.Library = true, true, true
	c.Emit.ExcludeNamespaces = []string{}
	return c
}

// toKyverno puts policies of Kyverno's kinds in the place of the native objects, and says of the
// rules without one what is in the way and what somebody can do.
func (done *Compilation) toKyverno(c Choices) {
	converted := celpolicy.Convert(done.Result, celpolicy.Options{Version: c.Version})
	done.Kyverno = &converted
	for _, r := range done.Rules {
		why, left := converted.Left[r]
		switch {
		case r.Policy.InCEL():
			_ = done.withdraw(r)
			why = diag.Notef(r.Pos(), diag.NoKyvernoForm, "the %s %s is of Kyverno's kinds in CEL already, and stays as it is", r.Policy.Kind, r.Policy.Name)
		case left:
		case r.Target == translate.Native, len(r.Codes) == 0, r.Policy.Invalid, r.Source.Invalid:
			continue
		default:
			said := done.withdraw(r)
			why = diag.Warnf(said.Pos, r.Codes[0], "%s; the rule stays as it is: %s", withoutWebhook(r.Reason), handwork(r.Codes[0], r))
		}
		r.Target, r.Codes, r.Reason, r.Objects, r.Mutating, r.Generating, r.Existing = translate.Webhook, []diag.Code{why.Code}, why.Message, nil, nil, nil, nil
		done.Diagnostics = append(done.Diagnostics, why)
	}
	natively := func(code diag.Code) bool { return code == diag.ConfigMapParams || code == diag.OwnObjects }
	done.Diagnostics = slices.DeleteFunc(done.Diagnostics, func(d diag.Diagnostic) bool { return natively(d.Code) })
	for _, r := range done.Rules {
		r.Codes = slices.DeleteFunc(r.Codes, natively)
	}
	done.cleanupsToKyverno(c)
	done.Diagnostics = append(done.Diagnostics, converted.Found...).Sort()
	done.Objects, done.Mutating = nil, nil
}

// withdraw takes out why a rule is not native, which speaks of the webhook that would run it.
func (done *Compilation) withdraw(r *compile.Rule) (said diag.Diagnostic) {
	said.Pos = r.Pos()
	done.Diagnostics = slices.DeleteFunc(done.Diagnostics, func(d diag.Diagnostic) bool {
		is := len(r.Codes) > 0 && d.Code == r.Codes[0] && d.Message == r.Reason && d.File == r.Pos().File
		if is {
			said = d
		}
		return is
	})
	return said
}

// withoutWebhook is why a rule is not native, without who runs it then.
func withoutWebhook(reason string) string {
	for _, end := range []string{"; the webhook will", "; here the webhook will", "; the controller will", "; leave this rule with Kyverno"} {
		reason, _, _ = strings.Cut(reason, end)
	}
	return strings.Replace(reason, "has no native form", "has no form in CEL that kvap writes", 1)
}

// handwork is what somebody can do about a rule that is left.
func handwork(code diag.Code, r *compile.Rule) string {
	switch r.Type() {
	case "generate":
		return "write it as a GeneratingPolicy, whose generate entries call generator.Apply"
	case "verifyImages":
		return "write it as an ImageValidatingPolicy"
	}
	switch code {
	case diag.OutsideData:
		return "written by hand, it can ask resource.Get, resource.List, resource.Post or http.Get"
	case diag.Roles:
		return "ask for request.userInfo.groups instead, then convert again"
	}
	if r.Source.Mutate != nil && r.Source.Mutate.Existing {
		return "write it as a MutatingPolicy with evaluation.mutateExisting, or say it in another way and convert again"
	}
	return "write it in CEL by hand, or say it in another way and convert again"
}

// kyvernoGroups are the objects of each policy.
func (done *Compilation) kyvernoGroups() (out []group) {
	for _, one := range done.Kyverno.Policies {
		out = append(out, group{policy: one.Of, kyverno: one.Objects})
	}
	for _, one := range done.Cleaned {
		if len(one.Objects) > 0 {
			out = append(out, group{cleanup: one.Of, kyverno: one.Objects})
		}
	}
	return out
}

// kyvernoRow says what became of a rule.
func (done *Compilation) kyvernoRow(r *compile.Rule, row report.Rule) report.Rule {
	row.Target = report.Left
	if r.Target != translate.Native {
		return row
	}
	row.Target = report.CEL
	for _, one := range done.Kyverno.Policies {
		if one.Of != r.Policy {
			continue
		}
		for _, o := range one.Objects {
			row.Objects = append(row.Objects, fmt.Sprintf("%s/%s", o.Kind, o.Name))
		}
	}
	return row
}
