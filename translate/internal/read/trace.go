package read

import (
	"encoding/json"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/partial"
)

// What the walk decides, for whoever wants to follow it (docs/core.md):
//
//	request.object.spec.replicas     object.spec.replicas where has(object.spec.replicas), else missing
//	containers[].image               container.image of each container of object.spec.containers

// Trace tells of a step of the walk, where somebody follows it and this is no walk of which
// nothing is kept.
func (l *Lowering) Trace(what string, is func() string) { l.TraceAt(l.Pos, what, is) }

// TraceAt is Trace of a place of the policy.
func (l *Lowering) TraceAt(pos diag.Pos, what string, is func() string) {
	if l.Opts.Trace == nil || l.Notes == nil {
		return
	}
	ops := make([]string, len(l.Ops))
	for i, op := range l.Ops {
		ops[i] = string(op)
	}
	l.Opts.Trace(api.Step{Pos: pos, Rule: l.Rule.Name, Target: l.Target.Resource, Operations: ops, What: what, Is: l.aside(is)})
}

// aside is what is said of a value or a condition; "" where that has no native form. To say it
// may make variables and tell the user, as to build with it does: nothing of that
// is kept.
func (l *Lowering) aside(say func() string) (text string) {
	told := len(*l.Notes)
	l.Attempt(func() { l.Probed(func(*Lowering) { text = say() }) })
	*l.Notes = (*l.Notes)[:told]
	return text
}

// TraceBool tells of a condition: the expression, and when it may be an error.
func (l *Lowering) TraceBool(what string, b partial.Bool) {
	l.Trace(what, func() string {
		if !b.Errs {
			return b.Expr.String()
		}
		readable := l.aside(func() string {
			apart, ok := b.Apart()
			if !ok {
				return ""
			}
			return apart.Readable.Simplify().String()
		})
		if readable == "" {
			return b.Expr.String() + ", which may be an error"
		}
		return b.Expr.String() + ", which is an error unless " + readable
	})
}

// Described is j in the words of a trace.
func (j Operand) Described() string {
	text := j.described()
	if own := j.own.All().Simplify(); !own.IsTrue() {
		text += ", an error unless " + own.String()
	}
	return text
}

func (j Operand) described() string {
	switch j.Form {
	case LitForm:
		return "the literal " + Shown(j.Lit)
	case PlaceForm:
		return j.V.described()
	case SequenceForm:
		return describedSequence(j.S)
	case ChoiceForm:
		return either(j.C, j.Then.Described(), j.Els.Described())
	case ErrorForm:
		return "an error (" + j.Hint + ")"
	case ImagesForm:
		return "the images of " + j.Images.Name
	}
	parts := make([]string, len(j.Multi))
	for i, part := range j.Multi {
		parts[i] = part.Described()
	}
	return "all of: " + strings.Join(parts, "; ")
}

// Shown is a literal of the policy.
func Shown(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "a number that JSON has not"
	}
	return string(text)
}

func either(c cel.Bool, then, els string) string {
	return "where " + c.String() + ": " + then + "; else: " + els
}

// described is what is read at a place, and what is there instead where one of its guards
// does not hold: of a shape null, of a key nothing.
func (v Place) described() string {
	if v.Never {
		return "missing in every object"
	}
	out := v.Expr.String()
	for i, g := range v.Guards {
		word := " where "
		if i > 0 {
			word = " and "
		}
		out += word + g.Cond.String()
		switch {
		case g.Hard:
			out += " (an error else)"
		case g.Shape:
			out += " (null else)"
		}
	}
	if v.MayMiss() {
		out += ", else missing"
	}
	return out
}

func describedSequence(s Sequence) string {
	switch s := s.(type) {
	case ListOf:
		return "each " + HintOf(s) + " of " + s.V.described()
	case StrictList:
		return describedSequence(s.ListOf)
	case Guarded:
		return describedSequence(s.Sequence) + " where " + s.V.Found().String()
	case PresentSequence:
		return describedSequence(s.Sequence)
	case OrEmpty:
		return describedSequence(s.Sequence) + ", none where that is missing"
	case Mapped:
		return s.F(s.L, ElementOf(s.Of, cel.Ident(HintOf(s.Of)))).Described() + ", of " + describedSequence(s.Of)
	case Filtered:
		return describedSequence(s.Of) + ", of which some are kept"
	case Flat:
		return describedSequence(s.F(s.L, ElementOf(s.Of, cel.Ident(HintOf(s.Of))))) + ", of " + describedSequence(s.Of)
	case Branch:
		return either(s.C, describedSequence(s.Then), describedSequence(s.Els))
	case Concat:
		parts := make([]string, len(s))
		for i, part := range s {
			parts[i] = describedSequence(part)
		}
		return strings.Join(parts, "; then ")
	case Single:
		return s.J.Described()
	case Entries:
		part := "each key"
		if s.Values {
			part = "each value"
		}
		return part + " of the map " + s.V.described()
	case FromMap:
		return describedSequence(s.Sequence)
	}
	return "each element of a list"
}
