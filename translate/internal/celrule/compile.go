package celrule

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/vap"
)

// refusedExpressions is why the API server would refuse an expression of a draft:
// what the source says in CEL has passed nobody's type checker yet. The verdict
// does not depend on message expressions; those that it would refuse are listed by
// their validations.
func refusedExpressions(d *vap.Draft, checker api.Checker) (why *diag.Diagnostic, messages []int) {
	objects, found := vap.Emit(d, vap.EmitOptions{ExcludeNamespaces: []string{}})
	for _, f := range found {
		if f.Severity == diag.Error {
			w := diag.Warnf(f.Pos, f.Code, "%s; the webhook will judge this rule", f.Message)
			return &w, nil
		}
	}
	for _, e := range checker.Refusals(objects.Policy) {
		var i int
		if Scan(e.Field, "spec.validations[%d]", &i) && strings.HasSuffix(e.Field, ".messageExpression") {
			messages = append(messages, i)
			continue
		}
		pos, _ := objects.MadeFrom(e.Field)
		// Of what a type checker says there is only the text. Names of Kyverno's own are told before.
		if _, what, _ := strings.Cut(e.Message, ": "); strings.HasPrefix(what, "undeclared reference to ") {
			w := Broken(pos, "at %s", e.Message)
			return &w, messages
		}
		w := diag.Warnf(pos, diag.NoExpression, "the API server would refuse %s: %s; the webhook will judge this rule",
			SubjectOf(e.Field), e.Message)
		return &w, messages
	}
	return nil, messages
}

// refusedDrafts is refusedExpressions of what is written, and of what comes of it,
// which may have lost what made it a boolean or a text.
func refusedDrafts(written, emitted *vap.Draft, checker api.Checker) (why *diag.Diagnostic, messages []int) {
	why, messages = refusedExpressions(written, checker)
	if why == nil {
		why, messages = refusedExpressions(emitted, checker)
	}
	return why, messages
}

// SubjectOf names what a field holds.
func SubjectOf(field string) string {
	switch {
	case strings.HasSuffix(field, "xpression"):
		return "the CEL expression"
	case strings.HasSuffix(field, ".key"):
		return "the key"
	}
	return strings.TrimPrefix(field, "spec.")
}

// Scan reads a number out of the path of a field, as the API server reports it.
func Scan(field, format string, i *int) bool {
	n, _ := fmt.Sscanf(field, format, i)
	return n == 1
}

// RefusedUnits looks through the units of a rule for what the API server would
// refuse. Units with the same text need to be asked about once.
func RefusedUnits(units []pack.Unit, o *api.Options, notes *diag.List) *diag.Diagnostic {
	asked := map[string][]int{}
	for _, u := range units {
		if u.CEL == nil {
			continue
		}
		key := u.Text()
		messages, done := asked[key]
		if !done {
			emitted, written := u.Alone(o.Packing()), u.CEL.Written
			emitted.Base = u.Policy.Name
			written.Base, written.Members, written.Constraints = emitted.Base, emitted.Members, emitted.Constraints
			var why *diag.Diagnostic
			if why, messages = refusedDrafts(&written, emitted, o.Checker); why != nil {
				return why
			}
			asked[key] = messages
		}
		for _, i := range messages { // the draft has one validation for each check
			c := &u.CEL.Checks[i]
			c.MessageExpression = nil
			*notes = append(*notes, diag.Warnf(c.Pos, diag.MessageVariable, "the messageExpression has no native form; the message is shown instead"))
		}
	}
	return nil
}
