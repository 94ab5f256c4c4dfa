package translate

import (
	"slices"
	"strconv"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/fields"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/mutate"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/vap"
)

// A Lowered is one policy on its way to drafts: what became of each of its rules,
// and of the native ones the expressions, which are not yet packed.
type Lowered struct {
	Policy *policy.Policy
	rules  []api.RuleResult // without their places in drafts, but for a policy in CEL
	units  []pack.Unit      // of the native rules
	// changes are what rules that mutate do.
	changes []mutate.Unit
}

// Lower decides for each rule of a policy whether it is native.
func Lower(p *policy.Policy, o api.Options) Lowered {
	o = o.WithDefaults()
	if p.ImagePolicy() != nil {
		return Lowered{Policy: p, rules: []api.RuleResult{lowerImages(p)}}
	}
	if p.Validating != nil || p.Mutating != nil {
		lower := mutate.LowerPolicy
		if p.Validating != nil {
			lower = celrule.Lower
		}
		res := lower(p, &o)
		if !p.Invalid {
			res.Doubts = fields.UnknownOf(p, o.Schemas, o.Budget)
		}
		return Lowered{Policy: p, rules: []api.RuleResult{res}}
	}
	if p.Generating != nil {
		return Lowered{Policy: p, rules: []api.RuleResult{lowerGenerating(p)}}
	}
	units, rules, changes := lowerPolicy(p, &o)
	return Lowered{Policy: p, rules: rules, units: units, changes: changes}
}

// Refused is a policy of which nothing is native, for one reason.
func Refused(p *policy.Policy, why diag.Diagnostic) Lowered {
	out := Lowered{Policy: p}
	if p.InCEL() {
		out.rules = []api.RuleResult{{Policy: p, Forms: []api.Form{{Name: p.Name}}}}
	}
	for _, r := range p.Rules {
		out.rules = append(out.rules, api.RuleResult{Policy: p, Rule: r, Forms: []api.Form{{Name: r.Name, Rule: r}}})
	}
	for i := range out.rules {
		out.rules[i].Refuse(why)
	}
	return out
}

// Left are rules that are left to the webhook, and why. The rule is nil for a
// policy in CEL.
type Left map[*policy.Rule]diag.Diagnostic

// Without is the policy with rules left to the webhook that were native.
func (l Lowered) Without(left Left) Lowered {
	l.rules = slices.Clone(l.rules)
	indexes := map[int]bool{}
	for i := range l.rules {
		if why, ok := left[l.rules[i].Rule]; ok {
			l.rules[i].Refuse(why)
			indexes[i] = true
		}
	}
	l.units = slices.DeleteFunc(slices.Clone(l.units), func(u pack.Unit) bool { return indexes[u.Rule.Index] })
	l.changes = slices.DeleteFunc(slices.Clone(l.changes), func(u mutate.Unit) bool {
		return slices.ContainsFunc(u.Rules, func(i int) bool { return indexes[i] })
	})
	return l
}

// A NativeRule is a rule that is native, with keys of the objects that it is in: rules
// with the same key may share an object.
type NativeRule struct {
	Rule    *policy.Rule // nil for a policy in CEL
	Pos     diag.Pos
	Objects []string
}

// Native are the rules that are native.
func (l Lowered) Native(o api.Options) []NativeRule {
	objects := make([][]string, len(l.rules))
	if l.Policy.Validating != nil {
		for i := range l.rules[0].Drafts {
			objects[0] = append(objects[0], l.Policy.Name+"/"+strconv.Itoa(i))
		}
	}
	for i, r := range l.rules {
		for _, d := range r.Mutating {
			objects[i] = append(objects[i], "mutating/"+d.Base)
		}
	}
	for _, u := range l.units {
		objects[u.Rule.Index] = append(objects[u.Rule.Index], u.Keys(o.Packing())...)
	}
	var out []NativeRule
	for i, r := range l.rules {
		if r.Target != api.Native || len(objects[i]) == 0 {
			continue
		}
		pos := l.Policy.Pos
		if r.Rule != nil {
			pos = r.Rule.Pos
		}
		out = append(out, NativeRule{r.Rule, pos, objects[i]})
	}
	return out
}

// About is the policy with the expressions alone that are about some resources.
func (l Lowered) About(resource func(group, resource string) bool) Lowered {
	l.units = slices.DeleteFunc(slices.Clone(l.units), func(u pack.Unit) bool { return !resource(u.Target.Group, u.Target.Resource) })
	l.changes = nil
	return l
}

// Assemble makes drafts of policies. Their rules share what Options.Pack lets them
// share.
func Assemble(ls []Lowered, o api.Options) api.Result {
	o = o.WithDefaults()
	var res api.Result
	at := places{}
	var all []pack.Unit
	own := make([][]pack.Packed, len(ls))
	if o.Pack != api.PackMatch {
		o.Each(len(ls), func(i int) { own[i] = pack.Drafts(ls[i].units, o.Packing()) })
	}
	for i, l := range ls {
		if o.Pack == api.PackMatch {
			all = append(all, l.units...)
		}
		res.Drafts = append(res.Drafts, at.drafts(own[i])...)
		if l.Policy.Validating != nil { // it shares no draft
			res.Drafts = append(res.Drafts, l.rules[0].Drafts...)
		}
	}
	res.Drafts = append(res.Drafts, at.drafts(pack.Drafts(all, o.Packing()))...)
	var changes []mutate.Unit
	for _, l := range ls {
		changes = append(changes, l.changes...)
	}
	shared, lost := mutate.Packs(changes, &o), mutate.LostZeros(changes)
	for _, l := range ls {
		for _, r := range l.rules {
			r = at.placed(r)
			r.Mutating = shared.In(r.Mutating)
			where := match.ExcludedNamespaces(&r, &o)
			for _, z := range lost {
				if r.Rule != nil && z.Policy == r.Policy && z.Rule == r.Rule.Index {
					where = append(where, z.Why)
				}
			}
			r.Codes = append(slices.Clip(r.Codes), api.CodesOf(where)...)
			res.Rules = append(res.Rules, r)
			for _, d := range r.Mutating {
				if !slices.Contains(res.Mutating, d) { // rules of a policy share it
					res.Mutating = append(res.Mutating, d)
				}
			}
			res.Diagnostics = append(append(append(res.Diagnostics, r.Found...), r.Doubts...), where...)
		}
	}
	res.Diagnostics = res.Diagnostics.Sort()
	return res
}

// places are where rules are in drafts, by the rule as expanded.
type places map[*policy.Rule][]api.Place

// drafts are those of packs, whose rules have their places then.
func (at places) drafts(packs []pack.Packed) []*vap.Draft {
	var out []*vap.Draft
	for _, d := range packs {
		out = append(out, d.Draft)
		for i, r := range d.Rules {
			at[r] = append(at[r], api.Place{Draft: d.Draft, Member: i})
		}
	}
	return out
}

// placed is what became of a rule, with its places in drafts.
func (at places) placed(r api.RuleResult) api.RuleResult {
	if r.Rule == nil {
		return r
	}
	r.Forms = slices.Clone(r.Forms)
	for i := range r.Forms {
		f := &r.Forms[i]
		f.Places = at[f.Rule]
		for _, p := range f.Places {
			if !slices.Contains(r.Drafts, p.Draft) {
				r.Drafts = append(r.Drafts, p.Draft)
			}
		}
	}
	return r
}

// lowerImages is what becomes of an ImageValidatingPolicy, which is one rule with the name of the
// policy: nothing native asks a registry.
func lowerImages(p *policy.Policy) api.RuleResult {
	res := api.RuleResult{Policy: p, Target: api.Native, Forms: []api.Form{{Name: p.Name}}}
	v := p.Validating
	what, more := p.VerifiesMore()
	switch {
	case p.Invalid: // its error has been told where it was read
		res.Target = api.Unsupported
	case v.Mode == "JSON":
		res.Refuse(diag.Warnf(p.Pos, diag.OtherPayload, "the policy is for JSON documents (evaluation.mode: JSON); nothing judges it at admission"))
	case v.AdmissionOff:
		res.Refuse(diag.Warnf(p.Pos, diag.BackgroundOnly, "the policy is for background scans only (evaluation.admission.enabled: false); nothing judges it at admission"))
	case more:
		res.Refuse(diag.Warnf(what.Pos, diag.VerifiesImages, "kvap does not verify %s, natively or in the webhook; leave this policy with Kyverno", what.Value))
	case v.MatchConstraints == nil || len(v.MatchConstraints.Rules) == 0:
		res.Refuse(diag.Warnf(p.Pos, diag.NoKinds, "matchConstraints without resourceRules have no request sent to a webhook; add the resources that the policy is for"))
	default:
		res.Refuse(diag.Warnf(p.Pos, diag.OtherRule, "the kind %s has no native form; the webhook will run this policy", p.Kind))
	}
	return res
}

// lowerGenerating is what becomes of a GeneratingPolicy, which is one rule with the name of
// the policy: nothing native makes other objects.
func lowerGenerating(p *policy.Policy) api.RuleResult {
	res := api.RuleResult{Policy: p, Target: api.Native, Forms: []api.Form{{Name: p.Name}}}
	switch {
	case p.Invalid: // its error has been told where it was read
		res.Target = api.Unsupported
	case p.Generating.AdmissionOff && !p.Generating.Existing:
		res.Refuse(diag.Warnf(p.Pos, diag.BackgroundOnly, "nothing triggers the policy: no request does (evaluation.admission.enabled: false), and no object that is there (evaluation.generateExisting)"))
	default:
		res.Refuse(diag.Warnf(p.Pos, diag.OtherRule, "a %s has no native form; the controller will run this policy in the background", p.Kind))
	}
	return res
}
