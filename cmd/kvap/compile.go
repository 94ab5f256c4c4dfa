package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A compilation is what became of the input, in the order of the input.
type compilation struct {
	policies   []*policy.Policy
	exceptions []*policy.Exception
	rules      []translate.RuleResult
	objects    []vap.Objects
	params     []any // objects that bindings refer to
	found      diag.List
}

// compile reads, translates and emits. What cannot be read is in found, and the
// rest is compiled all the same.
func compile(sources []source, c choices) *compilation {
	done := &compilation{}
	for _, s := range sources {
		done.parse(s)
	}
	done.dropRepeated()
	c.translate.Exceptions = done.exceptions
	result := translate.Policies(done.policies, c.translate)
	done.rules = result.Rules
	objects, ds := vap.EmitAll(result.Drafts, c.emit)
	done.objects = objects
	done.found = append(done.found, result.Diagnostics...)
	done.found = append(done.found, ds...)
	done.demote()
	done.codeInvalid()
	return done
}

func (done *compilation) parse(s source) {
	if s.found && !mayHoldPolicies(s.data) {
		done.found = append(done.found, diag.Notef(diag.Pos{File: s.name}, diag.OtherKind,
			"no document in this file is of kyverno.io; it is passed over"))
		return
	}
	f, ds := policy.Parse(s.name, s.data)
	if s.found {
		ds = passOverAssertions(f, ds)
	}
	done.policies = append(done.policies, f.Policies...)
	done.exceptions = append(done.exceptions, f.Exceptions...)
	done.found = append(done.found, ds...)
}

// passOverAssertions takes out what a test expects of a policy: an object with a
// status and no spec. Folders of policies often hold their tests.
func passOverAssertions(f *policy.File, ds diag.List) diag.List {
	f.Policies = slices.DeleteFunc(f.Policies, func(p *policy.Policy) bool {
		if p.Source.Get("status") == nil || p.Source.Get("spec") != nil {
			return false
		}
		ds = slices.DeleteFunc(ds, func(d diag.Diagnostic) bool {
			return d.Code == diag.Missing && d.Line == p.Pos.Line && d.Col == p.Pos.Col
		})
		ds = append(ds, diag.Notef(p.Pos, diag.OtherKind, "this %s has a status and no spec, as in the assertion of a test; it is passed over", p.Kind))
		return true
	})
	return ds
}

// dropRepeated leaves out a policy that has been read before, and warns where two
// of one name differ: a cluster holds only one of them.
func (done *compilation) dropRepeated() {
	first := map[string]*policy.Policy{}
	done.policies = slices.DeleteFunc(done.policies, func(p *policy.Policy) bool {
		key := p.Kind + "/" + p.Namespace + "/" + p.Name
		earlier, repeated := first[key]
		if !repeated {
			first[key] = p
			return false
		}
		if string(policy.Marshal(p.Source)) == string(policy.Marshal(earlier.Source)) {
			done.found = append(done.found, diag.Notef(p.Pos, diag.Conflict,
				"%s %s is the same as at %s; it is passed over", p.Kind, p.Name, earlier.Pos))
			return true
		}
		done.found = append(done.found, diag.Warnf(p.Pos, diag.Conflict,
			"%s %s is defined at %s already, and differently; a cluster holds one of the two, so rename or remove one", p.Kind, p.Name, earlier.Pos))
		return false
	})
}

// demote leaves rules to the webhook of which an object could not be emitted. What
// of theirs is native judges them once more, with the same verdict.
func (done *compilation) demote() {
	emitted := map[*vap.Draft]bool{}
	for _, o := range done.objects {
		emitted[o.Draft] = true
	}
	for i := range done.rules {
		r := &done.rules[i]
		missing := slices.ContainsFunc(r.Drafts, func(d *vap.Draft) bool { return !emitted[d] })
		if r.Target != translate.Native || !missing {
			continue
		}
		r.Target = translate.Webhook
		done.addErrors(r)
	}
}

// codeInvalid names the errors of rules that could not be read.
func (done *compilation) codeInvalid() {
	for i := range done.rules {
		r := &done.rules[i]
		if r.Rule != nil && r.Rule.Invalid || r.Policy.Invalid {
			done.addErrors(r)
		}
	}
}

// addErrors adds the codes of the errors in a rule; where there are none, the
// error is in the policy around it.
func (done *compilation) addErrors(r *translate.RuleResult) {
	for _, place := range []diag.Pos{rulePos(*r), r.Policy.Pos} {
		for _, d := range done.found {
			if d.Severity == diag.Error && done.within(d.Pos, place, r.Policy) && !slices.Contains(r.Codes, d.Code) {
				r.Codes = append(r.Codes, d.Code)
			}
		}
		if len(r.Codes) > 0 {
			return
		}
	}
}

// rulePos is the place of a rule; a ValidatingPolicy is a rule by itself.
func rulePos(r translate.RuleResult) diag.Pos {
	if r.Rule == nil {
		return r.Policy.Pos
	}
	return r.Rule.Pos
}

// within tells whether a place is inside another one of the policy. Paths begin
// anew in each document of a file, so the lines tell the documents apart.
func (done *compilation) within(inner, outer diag.Pos, p *policy.Policy) bool {
	if inner.File != p.Pos.File || inner.Line < p.Pos.Line {
		return false
	}
	for _, next := range done.policies {
		if next.Pos.File == p.Pos.File && p.Pos.Line < next.Pos.Line && next.Pos.Line <= inner.Line {
			return false
		}
	}
	rest, ok := strings.CutPrefix(inner.Path, outer.Path)
	return ok && (rest == "" || outer.Path == "" || rest[0] == '.' || rest[0] == '[')
}

// all are the objects in the order in which they are to be applied.
func (done *compilation) all() []any {
	objects := slices.Clone(done.params)
	for _, o := range done.objects {
		objects = append(objects, o.All()...)
	}
	return objects
}

// A group is the objects of one policy; policy is nil for objects that enforce
// rules of several.
type group struct {
	policy  *policy.Policy
	objects []vap.Objects
	params  []any
}

// byPolicy groups the objects by the policy that they come from.
func (done *compilation) byPolicy() []group {
	owner := map[*vap.Draft][]*policy.Policy{}
	for _, r := range done.rules {
		for _, d := range r.Drafts {
			if !slices.Contains(owner[d], r.Policy) {
				owner[d] = append(owner[d], r.Policy)
			}
		}
	}
	var groups []group
	at := map[*policy.Policy]int{}
	for _, o := range done.objects {
		owners := owner[o.Draft]
		if len(owners) != 1 {
			groups = append(groups, group{objects: []vap.Objects{o}})
			continue
		}
		i, ok := at[owners[0]]
		if !ok {
			i = len(groups)
			at[owners[0]] = i
			groups = append(groups, group{policy: owners[0]})
		}
		groups[i].objects = append(groups[i].objects, o)
	}
	return groups
}

// report fills the values that are rendered.
func (done *compilation) report() report.Conversion {
	name := map[*vap.Draft]string{}
	for _, o := range done.objects {
		name[o.Draft] = o.Policy.Name
	}
	rules := map[*policy.Policy][]report.Rule{}
	for _, r := range done.rules {
		rules[r.Policy] = append(rules[r.Policy], done.row(r, name))
	}
	var policies []report.Policy
	for _, p := range done.policies {
		row := report.Policy{Name: p.Name, Kind: p.Kind, File: p.Pos.File, Rules: rules[p]}
		if p.Namespaced() {
			row.Namespace = p.Namespace
		}
		policies = append(policies, row)
	}
	return report.New(policies, done.found)
}

func (done *compilation) row(r translate.RuleResult, name map[*vap.Draft]string) report.Rule {
	pos := rulePos(r)
	row := report.Rule{Name: r.Policy.Name, Type: "validate", Line: pos.Line, Target: report.Target(r.Target), Codes: r.Codes}
	if r.Rule != nil {
		row.Name, row.Type = r.Rule.Name, r.Rule.Type()
	}
	for _, d := range r.Drafts {
		if n := name[d]; n != "" && !slices.Contains(row.Objects, n) {
			row.Objects = append(row.Objects, n)
		}
	}
	if r.Target != translate.Native && len(r.Codes) > 0 {
		row.Reason = done.reason(r)
	}
	return row
}

// reason is the message of the first diagnostic of the rule's first code.
func (done *compilation) reason(r translate.RuleResult) string {
	for _, place := range []diag.Pos{rulePos(r), r.Policy.Pos} {
		for _, d := range done.found {
			if d.Code == r.Codes[0] && done.within(d.Pos, place, r.Policy) {
				return d.Message
			}
		}
	}
	return fmt.Sprintf("see kvap explain %s", r.Codes[0])
}
