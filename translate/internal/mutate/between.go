package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// What an object is between two mutations. The API server decodes it into Go types, defaults it
// and encodes it anew: what is empty, false or 0 is gone, what a Go type always writes is there,
// and a quantity is in its canonical form. Kyverno goes on with what was written.
//
//	[JSONPatch{op: "add", path: "/spec/volumes", value: []}]
//	[JSONPatch{op: "add", path: "/spec/volumes/-", value: …}]      natively there is no such path

// checkBetween refuses a mutation that reads, or patches below, what one before it has written
// and the server may write otherwise.
func (w *mutatingWalk) checkBetween() {
	if w.Why != nil {
		return
	}
	composed := byName(w.Draft.Variables)
	for i := range w.out.Mutations[:max(0, len(w.out.Mutations)-1)] {
		w.ofEachKind(func(k matchedKind) bool {
			written := k.unsettled(w.out.Mutations[i].Type, ofKind(vap.Inlined(w.out.Mutations[i].Expr, w.Draft.Variables), k))
			for _, m := range w.out.Mutations[i+1:] {
				next := ofKind(vap.Inlined(m.Expr, w.Draft.Variables), k)
				if slices.ContainsFunc(written, func(path []string) bool { return touches(next, path, composed) }) {
					w.cannot(m.Pos, "a mutation that reads or patches what one before it writes, and the API server may write otherwise in between,")
					return false
				}
			}
			return true
		})
	}
}

// unsettled are the paths of what a mutation writes that may be otherwise once the server has
// written it, without the steps into lists.
func (k matchedKind) unsettled(patch mutating.PatchType, v cel.Value) (out [][]string) {
	if patch == mutating.ApplyConfiguration {
		return unsettledIn(v, k.typ, nil)
	}
	for _, one := range v.Structs("JSONPatch") {
		steps := stepsOf(one["path"])
		t, _ := typeAt(k.typ, steps)
		switch value := one["value"]; {
		case cel.Equal(one["op"], cel.String("test")):
		case value.IsZero():
			out = append(out, fieldsOf(steps[:len(steps)-1]))
		case !settled(value, t), isMap(value) && (isElement(steps) || isDefaulted(steps[len(steps)-1])): // of which the server writes more
			out = append(out, fieldsOf(steps))
		}
	}
	return out
}

// stepsOf are the steps of a path: of a label or an annotation with any key, the map.
func stepsOf(path cel.Value) []string {
	if steps, ok := path.Pointer(); ok {
		return steps
	}
	return strings.Split(strings.Trim(path.Prefix(), "/"), "/")
}

// isDefaulted tells of the fields of structs that the server gives defaults to.
func isDefaulted(field string) bool {
	return slices.Contains([]string{
		"configMap", "downwardAPI", "fieldRef", "hostPath", "httpGet", "jobTemplate", "livenessProbe", "projected", "readinessProbe", "rollingUpdate",
		"secret", "startupProbe", "strategy", "template", "updateStrategy",
	}, field)
}

// unsettledIn are those of an apply configuration, or of a part of one.
func unsettledIn(v cel.Value, t *schema.Type, at []string) (out [][]string) {
	how, names, parts := v.Made()
	switch how {
	case cel.MadeChoice, cel.MadeEach:
		if how == cel.MadeEach && at != nil && !isOwn(parts[0]) {
			return [][]string{at}
		}
		if how == cel.MadeEach && t != nil {
			t = t.Elem
		}
		for _, part := range parts {
			out = append(out, unsettledIn(part, t, at)...)
		}
		return out
	case cel.MadeMap:
		if at != nil && isDefaulted(at[len(at)-1]) {
			return [][]string{at}
		}
		for i, name := range names {
			var of *schema.Type
			if t != nil && t.Fields[name] != nil {
				of = t.Fields[name].Type
			} else if t != nil {
				of = t.Elem
			}
			out = append(out, unsettledIn(parts[i], of, append(slices.Clone(at), name))...)
		}
		if len(names) > 0 || at == nil {
			return out
		}
	}
	if at == nil || !settled(v, t) { // of what nobody knows how it is made, it may be everything
		out = append(out, at)
	}
	return out
}

// isOwn tells of what is applied to an element of the object, whose name it has.
func isOwn(element cel.Value) bool {
	how, names, parts := element.Made()
	if how == cel.MadeChoice {
		return isOwn(parts[0]) && isOwn(parts[1])
	}
	i := slices.Index(names, "name")
	return i >= 0 && parts[i].IsSelection()
}

// fieldsOf are the steps of a path but those into lists.
func fieldsOf(steps []string) (out []string) {
	for _, step := range steps {
		if step != cel.AnyStep && step != cel.EachElement && step != "-" && (step == "" || strings.Trim(step, "0123456789") != "") {
			out = append(out, step)
		}
	}
	return out
}

// isElement tells of a path of an element of a list.
func isElement(steps []string) bool {
	return len(steps) > 0 && len(fieldsOf(steps[len(steps)-1:])) == 0
}

func isMap(v cel.Value) bool {
	how, _, _ := v.Made()
	return how == cel.MadeMap
}

// settled tells of a value that comes back from the server as it is.
func settled(v cel.Value, t *schema.Type) bool {
	if read.IsQuantityType(t) {
		return false
	}
	how, names, parts := v.Made()
	switch how {
	case cel.MadeEach:
		return false
	case cel.MadeChoice:
		return settled(parts[0], t) && settled(parts[1], t)
	case cel.MadeList:
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(part cel.Value) bool { return isMap(part) || !settled(part, elemOf(t)) })
	case cel.MadeMap:
		if t != nil {
			for name, f := range t.Fields {
				if f.Required && !slices.Contains(names, name) {
					return false
				}
			}
		}
		for i, name := range names {
			if isDefaulted(name) && isMap(parts[i]) {
				return false
			}
			of := elemOf(t)
			if t != nil && t.Fields[name] != nil {
				of = t.Fields[name].Type
			}
			if !settled(parts[i], of) {
				return false
			}
		}
		return len(names) > 0
	}
	if v.Prefix() != "" || v.AsBool().IsTrue() {
		return true
	}
	constants := v.Constants()
	return v.LiteralType() == "int" && constants[0] != int64(0)
}

// touches tells that a mutation reads a path, or patches it or something below it.
func touches(v cel.Value, path []string, composed map[string]cel.Value) bool {
	under := func(steps []string) bool { return len(steps) >= len(path) && slices.Equal(steps[:len(path)], path) }
	for _, one := range v.Structs("JSONPatch") {
		steps := stepsOf(one["path"])
		if cel.Equal(one["op"], cel.String("add")) {
			steps = steps[:len(steps)-1]
		}
		if under(fieldsOf(steps)) {
			return true
		}
	}
	return slices.ContainsFunc(v.Decides(map[string][]string{"object": {}}, composed), func(of []string) bool {
		if n := len(of); n > 0 && of[n-1] == cel.Order {
			return under(fieldsOf(of[:n-1]))
		}
		of = fieldsOf(of)
		return under(of) || len(of) < len(path) && slices.Equal(path[:len(of)], of)
	})
}

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
