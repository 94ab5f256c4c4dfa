package generate

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// checkSteps refuses synchronize where an update of a trigger that is one still would be none to
// the policy: that has what was made deleted.
func (g *generation) checkSteps(l *read.Lowering) {
	if !g.rule.Generate.Synchronize {
		return
	}
	texts := map[string]string{} // by target
	for _, t := range g.triggers {
		at := t.target.Key()
		if said, known := texts[at]; known && said != t.text() {
			panic(l.Refuse(diag.NoKyvernoForm, "with synchronize, a GeneratingPolicy deletes at an update what it has made of the creation, and the rule is another on each operation; "+
				"ask for no operation and no old object, or set synchronize: false"))
		}
		texts[at] = t.text()
	}
	for _, t := range g.triggers {
		updates := false
		for _, u := range g.triggers {
			for _, op := range u.ops {
				updates = updates || u.target.Key() == t.target.Key() && op == native.Update
			}
		}
		for _, op := range t.target.PossibleOperations() {
			if op == native.Update && !updates {
				panic(l.Refuse(diag.NoKyvernoForm, "with synchronize, a GeneratingPolicy that is not about updates deletes what it has made at the first one; "+
					"add UPDATE to the operations, or set synchronize: false"))
			}
		}
	}
}

// tellDifferences tells of what a GeneratingPolicy does otherwise with objects that are there.
func (g *generation) tellDifferences(l *read.Lowering) {
	l.SetPos(g.rule.Generate.Pos)
	note := func(what string) { *l.Notes = append(*l.Notes, diag.Notef(l.Pos, diag.GeneratedAnew, "%s", what)) }
	if !g.rule.Generate.Synchronize {
		note("an update of the trigger writes anew what the policy has made for it, where the rule leaves it alone (synchronize: false)")
		return
	}
	note("an object of the name that somebody else has made is left alone, where the rule takes it over (synchronize: true)")
	if slices.ContainsFunc(g.triggers, func(t trigger) bool { return t.pre.Errs }) {
		note("what was made goes when its trigger stops being one, where the rule keeps it if the preconditions were an error before that")
	}
	if g.namesOperations() && !g.lists(native.Delete) {
		l.Note(diag.GeneratedAnew, "what was made goes with its trigger, where the rule keeps it, for it names operations and DELETE is none of them; "+
			"set orphanDownstreamOnPolicyDelete or synchronize: false if it is to stay")
	}
}
