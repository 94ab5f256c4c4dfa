package match

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// NoteOwnObjects tells of a rule on what kvap's controller writes, or on deletions of
// policies, which are not judged.
func NoteOwnObjects(l *read.Lowering, units []pack.Unit) {
	var rules []vap.ResourceRule
	for _, u := range units {
		rule := vap.ResourceRule{Groups: []string{u.Target.Group}, Resources: []string{u.Target.Resource}}
		for _, op := range u.Operations {
			rule.Operations = append(rule.Operations, string(op))
		}
		rules = append(rules, rule)
	}
	if len(vap.OwnObjects(rules)) > 0 {
		*l.Notes = append(*l.Notes, ownObjects(l.Rule.Pos))
	}
}

// NoteOwnConstraints is NoteOwnObjects of a ValidatingPolicy.
func NoteOwnConstraints(p *policy.Policy, rules []vap.ResourceRule, notes *diag.List) {
	if len(vap.OwnObjects(rules)) > 0 {
		*notes = append(*notes, ownObjects(p.Validating.MatchConstraints.Pos))
	}
}

func ownObjects(at diag.Pos) diag.Diagnostic {
	return diag.Notef(at, diag.OwnObjects, "what kvap's controller writes to keep policies in force, and deletions of policies, "+
		"are not judged: no policy can keep its own controller from working, nor itself from being deleted")
}
