package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// Between two mutations an API server has the object in its Go type, which drops most fields that
// are false, 0 or empty, and it gives new elements their defaults. A rule that asks for such a field
// behind one that writes it so, or adds the element, finds another thing than in Kyverno.

// isZero tells of a literal that the Go type of an object may drop.
func isZero(v cel.Value) bool {
	return !v.IsZero() && slices.Contains([]string{"false", "0", "0.0", "''"}, v.String())
}

// defaulted are the fields that an API server gives to a new element of the list at a path, but
// for those that are written: k8s.io/kubernetes, pkg/apis/core/v1/defaults.go.
func defaulted(list []string, written func(field string) bool) (out [][]string) {
	fields := ""
	switch list[len(list)-1] {
	case "containers", "initContainers", "ephemeralContainers":
		fields = "imagePullPolicy resources terminationMessagePath terminationMessagePolicy"
	case "ports":
		fields = "protocol targetPort"
	case "volumes":
		fields = "emptyDir"
	}
	for _, field := range strings.Fields(fields) {
		if !written(field) {
			out = append(out, append(slices.Clone(list), cel.EachElement, field))
		}
	}
	return out
}

// asksForZero tells that a change asks for what one of those before it writes as nothing.
func (c change) asksForZero(before []change) bool {
	zeros := zerosOf(before)
	if len(zeros) == 0 {
		return false
	}
	composed := byName(c.variables)
	reads := []placedValue{{c.match.Value, nil}, {c.pre.Expr.Value, nil}}
	for _, e := range c.effects {
		if slices.ContainsFunc(e.additions, func(path []string) bool { return meets(path, zeros) }) {
			return true
		}
		reads = append(reads, e.reads...)
	}
	return slices.ContainsFunc(reads, func(r placedValue) bool { return r.meets(zeros, composed) })
}

// zerosOf are the paths that changes write as nothing.
func zerosOf(changes []change) (out [][]string) {
	for _, c := range changes {
		for _, e := range c.effects {
			out = append(out, e.zeros...)
		}
	}
	return out
}

// A Lost is a rule that asks for what another policy writes as nothing.
type Lost struct {
	Policy *policy.Policy
	Rule   int
	Why    diag.Diagnostic
}

// LostZeros are the rules of units that ask for what other policies write as nothing.
func LostZeros(units []Unit) (out []Lost) {
	var zeros []change // of all
	for _, u := range units {
		if len(zerosOf(u.changes)) > 0 {
			zeros = append(zeros, u.changes...)
		}
	}
	for _, asks := range units {
		for _, c := range asks.changes {
			if !c.asksForZero(zeros) {
				continue
			}
			var by []string
			for _, writes := range units {
				if asks.policy != writes.policy && mayMeet(asks.targets, writes.targets) && c.asksForZero(writes.changes) && !slices.Contains(by, writes.policy.FullName()) {
					by = append(by, writes.policy.FullName())
				}
			}
			if len(by) > 0 {
				others := ""
				if len(by) > 1 {
					others = ", like others,"
				}
				out = append(out, Lost{asks.policy, c.index, diag.Warnf(c.rule.Pos, diag.LostZero, "the rule asks for what the policy %s%s writes as false, 0 or an empty text, "+
					"or leaves out of an element that it adds; an API server drops that, or fills it in, between policies", by[0], others)})
			}
		}
	}
	return out
}

// byName are what variables stand for.
func byName(variables []vap.Variable) map[string]cel.Value {
	out := map[string]cel.Value{}
	for _, v := range variables {
		out[v.Name] = v.Expr
	}
	return out
}
