package interp

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// references resolves the $( ) of one document. They point at other leaves of
// the same document, not at the object, so they are settled before any request.
type references struct {
	root *policy.Node
	// current is the object that an @ is about; request.object if empty.
	current string
}

func childPath(path []string, i int) []string {
	return append(path[:len(path):len(path)], strconv.Itoa(i))
}

// readText reads a string in which references lead nowhere.
func readText(s string, pos diag.Pos) *text {
	n := &policy.Node{Kind: policy.String, Str: s, Pos: pos}
	return references{root: n}.text(n, nil)
}

// text reads the string at a path.
func (r references) text(n *policy.Node, path []string) *text {
	tmpl, bad := jmespath.ParseTemplate(n.Str, n.Pos)
	if bad != nil {
		return &text{err: bad}
	}
	if tmpl.HasRefs() {
		resolved, err := r.resolve(tmpl, path)
		if err != nil {
			return &text{err: err}
		}
		tmpl = resolved
	}
	t := &text{tmpl: tmpl}
	if t.err = placeCurrent(tmpl, path, r.current); t.err != nil {
		return t
	}
	return t.derive()
}

// placeCurrent gives the variable {{ @ }} its meaning, also inside of another: what the
// new object has at the place of the text. The place is counted as in a whole rule, where two keys
// such as validate and pattern stand in front; a document that begins below them
// loses two keys of its own.
func placeCurrent(t *jmespath.Template, path []string, current string) error {
	at := cmp.Or(current, "request.object")
	if n := slices.Index(path, "foreach"); n >= 0 {
		path = path[n+1:]
	}
	for _, step := range path[min(2, len(path)):] {
		if _, err := strconv.Atoi(step); err == nil {
			at += "[" + step + "]"
		} else {
			at += "." + strconv.Quote(step)
		}
	}
	for i, p := range t.Parts {
		if p.Var == nil {
			continue
		}
		whole := variableText(p.Var)
		placed := replaceCurrent(whole, at)
		if placed == whole {
			continue
		}
		there, bad := jmespath.ParseTemplate(placed, p.Var.Pos)
		if bad != nil {
			return bad
		}
		t.Parts[i].Var = there.Single()
	}
	return nil
}

// variableText is a variable as it is written.
func variableText(v *jmespath.Variable) string {
	if v.Shallow {
		return "{{-" + v.Raw + "}}"
	}
	return "{{" + v.Raw + "}}"
}

// replaceCurrent writes another expression in the place of each {{ @ }} of a text.
func replaceCurrent(s, expression string) string {
	var out strings.Builder
	for {
		open := strings.Index(s, "{{")
		if open < 0 {
			return out.String() + s
		}
		out.WriteString(s[:open+2])
		s = s[open+2:]
		body, _, closed := strings.Cut(s, "}}")
		mark := strings.TrimLeft(strings.TrimPrefix(body, "-"), " \t\r\n")
		if closed && strings.TrimSpace(mark) == "@" && !strings.HasSuffix(strings.TrimSuffix(out.String(), "{{"), `\`) {
			out.WriteString(body[:len(body)-len(mark)] + expression)
			s = s[len(body):]
		}
	}
}

// resolve puts what the references of a template point at in their place.
func (r references) resolve(t *jmespath.Template, path []string) (*jmespath.Template, error) {
	out := &jmespath.Template{Pos: t.Pos, Text: t.Text}
	for _, p := range t.Parts {
		if p.Ref == nil {
			out.Parts = append(out.Parts, p)
			continue
		}
		parts, err := r.target(p.Ref, path)
		if err != nil {
			return nil, err
		}
		out.Parts = append(out.Parts, parts...)
	}
	if out.HasRefs() {
		return nil, fmt.Errorf("the text %q has a reference inside a variable; write the value itself there", t.Text)
	}
	return mergeText(out), nil
}

// target reads what a reference points at. Without an operator it must be a
// string; with one, any scalar will do.
func (r references) target(ref *jmespath.Reference, path []string) ([]jmespath.Part, error) {
	n := r.find(absolute(ref.Path, path))
	if n == nil || n.Kind == policy.Null {
		return nil, fmt.Errorf("got nil resolved variable: the reference $(%s%s) points at nothing", ref.Operator, ref.Path)
	}
	var value string
	switch {
	case n.Kind == policy.String:
		value = n.Str
	case ref.Operator == "":
		return nil, fmt.Errorf("the reference $(%s) points at a %s, only a string can be put in its place", ref.Path, n.Kind)
	case n.Kind == policy.Int:
		value = strconv.FormatInt(n.Int, 10)
	case n.Kind == policy.Float:
		value = fmt.Sprintf("%f", n.Float)
	default:
		return nil, fmt.Errorf("the reference $(%s%s) points at a %s", ref.Operator, ref.Path, n.Kind)
	}
	t, bad := jmespath.ParseTemplate(ref.Operator+value, ref.Pos)
	if bad != nil {
		return nil, bad
	}
	return t.Parts, nil
}

// absolute is a reference's path from the root of the document. The path at which
// it stands is taken as written, so steps up through an anchored key keep the
// anchor in front of them, and then lead nowhere.
func absolute(ref string, path []string) []string {
	steps := strings.Split(strings.Trim(ref, "/"), "/")
	if strings.HasPrefix(ref, "/") {
		return steps
	}
	at := path[:len(path):len(path)]
	for _, step := range steps {
		switch step {
		case ".", "":
		case "..":
			if len(at) > 0 {
				at = at[:len(at)-1]
			}
		default:
			at = append(at, step)
		}
	}
	return at
}

// find is the leaf at a path; keys of the document are compared without their
// anchors.
func (r references) find(path []string) *policy.Node {
	n := r.root
	for _, step := range path {
		n = child(n, step)
		if n == nil {
			return nil
		}
	}
	if n.Kind == policy.Map || n.Kind == policy.List {
		return nil
	}
	return n
}

func child(n *policy.Node, step string) *policy.Node {
	switch n.Kind {
	case policy.Map:
		for _, f := range n.Fields {
			if parseAnchor(f.Key).name == step {
				return f.Value
			}
		}
	case policy.List:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Items) {
			return n.Items[i]
		}
	default:
	}
	return nil
}

// mergeText joins neighbouring pieces of plain text, so that a template without
// variables is a constant again.
func mergeText(t *jmespath.Template) *jmespath.Template {
	var parts []jmespath.Part
	for _, p := range t.Parts {
		if last := len(parts) - 1; p.Var == nil && last >= 0 && parts[last].Var == nil {
			parts[last].Text += p.Text
			continue
		}
		parts = append(parts, p)
	}
	t.Parts = parts
	return t
}
