package judge

import (
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// deploy has deployed objects judge. Those that say which rules they were
// made from take the place of the translation of these rules' policies, as a whole: a
// rule of such a policy that no object was made from is enforced by none.
func (j *Judges) deploy(d *Deployed, o apiserver.JudgeOptions) error {
	if len(d.Policies) == 0 {
		return nil
	}
	by := map[string]members{}
	sources := len(j.Rules)
	replaced := map[string]bool{} // by the name of the policy
	for _, p := range d.Policies {
		text, mapped := TranslationOf(p)
		m := newMembers(p, text)
		m.leftOut = leftOut(d.BindingsOf(p.Name))
		taken := map[int]string{}
		for _, member := range m.text.Members {
			place := -1
			if mapped {
				place = j.placeOf(member, sources, taken)
			}
			if place < 0 {
				place = j.alone(member, d.places[p], mapped, sources)
			} else {
				replaced[member.Policy] = true
				j.standings[place].compared = true
			}
			taken[place] = member.Path
			m.rules = append(m.rules, place)
		}
		by[p.Name] = m
	}
	for place, f := range j.Rules[:sources] {
		if replaced[f.Rule.PolicyName()] {
			j.standings[place].deployed = true
		}
	}
	selecting, err := d.selecting(o)
	if err != nil {
		return err
	}
	return j.add(d.Policies, d.Bindings, by, selecting, o)
}

// placeOf finds the rule that a member was made from, -1 where its source is not
// there. Names that were cut may be the same; the first is taken that is free, or that has
// another part of this rule: taken are the paths by place.
func (j *Judges) placeOf(m vap.TranslatedMember, sources int, taken map[int]string) int {
	for place, f := range j.Rules[:sources] {
		if f.Name != m.Rule || f.Rule.PolicyName() != m.Policy || m.Origin != "" && m.Origin != f.Rule.Name() {
			continue
		}
		if path, ok := taken[place]; !ok || path == m.Path {
			return place
		}
	}
	return -1
}

// alone adds a rule that is known from a native object only, or finds it there: a
// rule may have several. One of a policy written by hand is compared with the
// policy of that name, where there is one.
func (j *Judges) alone(m vap.TranslatedMember, at diag.Pos, mapped bool, sources int) int {
	for place, f := range j.Rules[sources:] {
		if mapped && f.Name == m.Rule && f.Rule.PolicyName() == m.Policy {
			return sources + place
		}
	}
	s := ruleStanding{deployed: true}
	for place, f := range j.Rules[:sources] {
		if !mapped && f.Rule.PolicyName() == m.Policy && f.Rule.Type() == "validate" {
			s.compared, s.whole = true, append(s.whole, place)
		}
	}
	rule := &compile.Rule{Policy: &policy.Policy{Kind: "ValidatingAdmissionPolicy", Name: m.Policy, Pos: at}, Target: translate.Native}
	form := &compile.Form{Rule: rule, Name: m.Rule}
	rule.Forms = []*compile.Form{form}
	j.Rules, j.standings = append(j.Rules, form), append(j.standings, s)
	return len(j.Rules) - 1
}

// sumUp gives policies that are compared with a whole policy the gravest of what the
// interpreter says of its rules, and says which rules no deployed object enforces.
func (j *Judges) sumUp(out []Opinion) {
	for i, s := range j.standings {
		o := &out[i]
		for _, place := range s.whole {
			if of := out[place]; graver(of.Status, o.Status) {
				o.Status, o.Kyverno, o.Message, o.Code, o.Deviations = of.Status, of.Kyverno, of.Message, of.Code, of.Deviations
			}
		}
		if s.deployed && s.compared && o.Native == apiserver.NoMatch && !o.Agree() {
			o.NativeMessage = "none of the native objects that were given judges the request by this rule"
		}
	}
}
