package check

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap/apiserver"
)

// All places are filled in by Result.reportIn.

func unreadable(pos diag.Pos, kind string, err error) diag.Diagnostic {
	return diag.Errorf(pos, diag.InvalidObject, "this %s cannot be read: %v", kind, err)
}

func wrongType(n *policy.Node, kind, path string, want reflect.Type) diag.Diagnostic {
	return diag.Errorf(n.Pos, diag.WrongType, "%s must be a %s, not a %s; the %s cannot be checked", path, wordFor(want), n.Kind, kind)
}

func unknownField(pos diag.Pos, kind string, known []string) diag.Diagnostic {
	_, name := cutLast(pos.Path)
	return diag.Errorf(pos, diag.UnknownKey, "%s has no field %s%s; kubectl refuses the object, and other clients lose the field",
		kind, pos.Path, nearest(apiserver.Miss{Field: name, Fields: known}))
}

func refusal(e *field.Error) diag.Diagnostic {
	text := strings.TrimSuffix(e.ErrorBody(), ": ")
	return diag.Errorf(diag.Pos{}, diag.InvalidObject, "the API server refuses %s: %s", e.Field, text)
}

func refusedCEL(message string) diag.Diagnostic {
	return diag.Errorf(diag.Pos{}, diag.InvalidObject, "the API server refuses this expression: %s", message)
}

func faulty(o *Object, fault *cores.Fault) diag.Diagnostic {
	return diag.Errorf(diag.Pos{}, diag.CompilerFault, "checking %s failed (%v, in %s); what else there is to say of it is not known; please report this with the object", o.Name(), fault.Value, fault.In)
}

func largePolicy() diag.Diagnostic {
	return diag.Errorf(diag.Pos{}, diag.TooLarge, "the expressions of this policy take too many steps, so nothing else is checked of it; split it, or say the same with fewer variables and repetitions")
}

// notYet does not name the release that is checked for, so that several say the same.
func notYet(v cel.Value, release, need cel.Release, known []string) diag.Diagnostic {
	var names []string
	v.Calls(func(name string, args int) {
		if cel.FirstRelease(name, args) > release && !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	guess := ""
	for _, name := range names {
		if near := diag.Nearest(name, known); near != "" && cel.FirstRelease(name, 0) == cel.Never {
			guess += isMeant(near)
		}
	}
	if need == cel.Never {
		return diag.Errorf(diag.Pos{}, diag.NotYetAccepted, "no API server has %s%s; write the expression without it", strings.Join(names, ", "), guess)
	}
	return diag.Errorf(diag.Pos{}, diag.NotYetAccepted,
		"only API servers from %s on take new policies with %s; write the expression without it", need, strings.Join(names, ", "))
}

func mismatch(p apiserver.Problem, kinds []string, all bool) diag.Diagnostic {
	where := ""
	if !all {
		where = " on " + firstWords(kinds)
	}
	if p.Comparison() {
		return diag.Warnf(diag.Pos{}, diag.TypeCheckFailed, "values of different types are never equal%s: %s", where, p.Message)
	}
	return diag.Errorf(diag.Pos{}, diag.TypeCheckFailed, "this is an error whenever it is evaluated%s: %s", where, p.Message)
}

func noField(m apiserver.Miss, kinds []string) diag.Diagnostic {
	text := fmt.Sprintf("%s no field %s%s", noun(kinds, "has", "have"), pathOf(m), nearest(m))
	switch {
	case m.Published:
		return diag.Warnf(diag.Pos{}, diag.UndefinedField, "%s in what is published of it; where a cluster knows no more, it is never there", text)
	case m.Tested:
		return diag.Warnf(diag.Pos{}, diag.UndefinedField, "%s, so it is never there", text)
	case m.Written:
		return diag.Errorf(diag.Pos{}, diag.UndefinedField, "%s, so no patch can set it", text)
	}
	return diag.Errorf(diag.Pos{}, diag.UndefinedField, "%s, so reading it is an error", text)
}

func fieldOfSome(m apiserver.Miss, without []string) diag.Diagnostic {
	if m.Written {
		return diag.Warnf(diag.Pos{}, diag.FieldOfSomeKinds,
			"%s no field %s, which others of the policy's kinds have; nothing asks for the kind before the patch is made, and setting it is an error there", noun(without, "has", "have"), pathOf(m))
	}
	return diag.Warnf(diag.Pos{}, diag.FieldOfSomeKinds,
		"%s no field %s, which others of the policy's kinds have; nothing asks for it before it is read, and reading it is an error there", noun(without, "has", "have"), pathOf(m))
}

func noun(kinds []string, one, many string) string {
	if len(kinds) == 1 {
		return kinds[0] + " " + one
	}
	return firstWords(kinds) + " " + many
}

// firstWords is the first of some words, so that a wildcard does not fill the screen.
func firstWords(words []string) string {
	const most = 4
	if len(words) > most+1 { // never 1 others
		return fmt.Sprintf("%s and %d others", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}

func pathOf(m apiserver.Miss) string {
	if m.Path == "" {
		return m.Field
	}
	return m.Path + "." + m.Field
}

// nearest proposes what may have been meant.
func nearest(m apiserver.Miss) string {
	if strings.HasPrefix(m.Field, "__") && strings.HasSuffix(m.Field, "__") && len(m.Field) > 4 {
		return fmt.Sprintf(" (policies know no escapes: read .%s)", strings.Trim(m.Field, "_"))
	}
	return isMeant(diag.Nearest(m.Field, m.Fields))
}

// isMeant proposes a word; nothing where there is none.
func isMeant(word string) string {
	if word == "" {
		return ""
	}
	return " (is " + word + " meant?)"
}

func statusFalseAlarm(w apiserver.TypeWarning, release cel.Release) diag.Diagnostic {
	return diag.Notef(diag.Pos{}, diag.StatusFalseAlarm,
		"kube-controller-manager %s will write a warning of this expression into the policy's status (%s); what it warns of is no error at run time", release, firstError(w.Warning))
}

func firstError(text string) string {
	p, ok := apiserver.FirstProblem(text)
	if kinds := apiserver.WarnedKinds(text); ok && len(kinds) > 0 {
		return kinds[0] + ": " + p.Message
	}
	return apiserver.FirstMessage(text)
}

func changesMeaning(d apiserver.Difference) diag.Diagnostic {
	return diag.Warnf(diag.Pos{}, diag.ChangesMeaning, "%s means one thing before Kubernetes %s and another since; make the meaning plain: orValue() wants a .? in front of it", d.Call, d.Since)
}

func overLimit(c Cost, fails bool) diag.Diagnostic {
	return diag.Errorf(diag.Pos{}, diag.CostOverLimit, "on a large object this costs more than %s, at which the API server stops%s; %s",
		thousands(c.Limit), safely(c), consequence(fails))
}

func nearLimit(c Cost, fails bool) diag.Diagnostic {
	return diag.Warnf(diag.Pos{}, diag.CostNearLimit, "on a large object this costs %s, and at %s the API server stops%s: %s",
		thousands(c.Measured), thousands(c.Limit), safely(c), consequence(fails))
}

func consequence(fails bool) string {
	if fails {
		return "that is an error, which denies the request"
	}
	return "that is an error, which lets the request pass unjudged"
}

func safely(c Cost) string {
	if c.Driver == "" {
		return ""
	}
	return " (safe " + c.SafeUpTo() + ")"
}

// SafeUpTo is the size up to which the limit is kept, in words; "" for any size.
func (c Cost) SafeUpTo() string {
	if c.Driver == "" {
		return ""
	}
	return fmt.Sprintf("up to %s %s", thousands(int64(c.Safe)), c.Driver)
}

// thousands is a number with commas.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func nullObject(n nullOn, path string, fails bool) diag.Diagnostic {
	return diag.Errorf(diag.Pos{}, diag.NullObject, "on %s %s is null, and nothing asks for that before %s is read; that is an error, and %s; ask %s != null first, read %s there, or leave %s out of the rules",
		n.operation, n.object, path, deniedOrPassed(fails), n.object, n.other, n.operation)
}

func unguarded(root string, path, kinds []string, fails bool) diag.Diagnostic {
	return diag.Warnf(diag.Pos{}, diag.UnguardedField, "%s need not have %s, and nothing asks for it before it is read; without it the expression is an error, and %s; ask with has(), or read it with orValue()",
		firstWords(kinds), root+"."+strings.ReplaceAll(strings.Join(path, "."), ".[]", "[]"), deniedOrPassed(fails))
}

// deniedOrPassed is what an error of a policy does to a request.
func deniedOrPassed(fails bool) string {
	if fails {
		return "the request is denied, whatever the field would say"
	}
	return "failurePolicy Ignore lets the request pass unchecked"
}
