package query

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// An apiPath is a path of the API server that leads to an object, or to a list of objects.
type apiPath struct {
	apiVersion, plural string
	namespace          *read.Operand // nil where the path names none
	name               *read.Operand // nil for a list
	labels             []labelPair   // of a list: what the objects are selected by
}

type labelPair struct {
	key   string
	value read.Operand
}

// group and version are those of the objects.
func (at apiPath) group() string {
	group, _, ok := strings.Cut(at.apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

func (at apiPath) version() string { return at.apiVersion[strings.LastIndex(at.apiVersion, "/")+1:] }

// isIn reports whether the path lies in a namespace, that of a policy. Such a policy is about
// requests in this namespace alone.
func (at apiPath) isIn(l *read.Lowering, namespace string) bool {
	if at.namespace == nil {
		return false
	}
	return at.namespace.Lit == namespace || l.Target.Scope == native.Namespaced && isRequestNamespace(*at.namespace)
}

// isName reports whether a value is a name that is never empty.
func isName(l *read.Lowering, j read.Operand) bool {
	text, ok := j.Lit.(string)
	return ok && text != "" || isRequestNamespace(j) && (l.Target.Scope == native.Namespaced || l.Target.GVK == schema.GVK{Version: "v1", Kind: "Namespace"})
}

// pathOf reads a path; false for one that leads elsewhere, or may do so.
func pathOf(l *read.Lowering, text policy.Text) (at apiPath, ok bool) {
	segments, query := segmentsOf(l, ParseTemplate(text.Value, text.Pos))
	fixed := func(i int) string {
		if i >= len(segments) {
			return ""
		}
		s, _ := segments[i].Lit.(string)
		return s
	}
	behind := map[string]int{"api": 3, "apis": 4}[fixed(1)]
	if behind == 0 || len(segments) <= behind || fixed(0) != "" || segments[0].Form != read.LitForm {
		return at, false
	}
	at.apiVersion = fixed(2)
	if behind == 4 {
		at.apiVersion += "/" + fixed(3)
	}
	rest := segments[behind:]
	if len(rest) > 2 && fixed(behind) == "namespaces" {
		at.namespace, rest = &rest[1], rest[2:]
	}
	at.plural, _ = rest[0].Lit.(string)
	if len(rest) > 1 {
		at.name = &rest[1]
	}
	isSubresource := at.namespace != nil && slices.Contains([]string{"status", "finalize"}, at.plural)
	empty := slices.ContainsFunc(segments[1:], func(j read.Operand) bool { return j.Lit == "" && j.Form == read.LitForm })
	if len(rest) > 2 || isSubresource || empty || at.plural == "" || strings.HasPrefix(at.apiVersion, "/") || strings.HasSuffix(at.apiVersion, "/") {
		return at, false
	}
	if query == nil {
		return at, true
	}
	at.labels, ok = labelsOf(l, query)
	return at, ok && at.name == nil
}

// segmentsOf are what slashes part, and the query behind them; nil where there is none.
func segmentsOf(l *read.Lowering, t *jmespath.Template) (segments []read.Operand, query []jmespath.Part) {
	segments = []read.Operand{read.LitOf("")}
	last := func() *read.Operand { return &segments[len(segments)-1] }
	for i, part := range t.Parts {
		switch {
		case part.Ref != nil:
			panic(l.Unsupported("a reference $(...)"))
		case part.Var != nil:
			*last() = join(l, *last(), Variable(l, part.Var))
			continue
		}
		text, behind, asks := strings.Cut(part.Text, "?")
		for n, piece := range strings.Split(text, "/") {
			if n > 0 {
				segments = append(segments, read.LitOf(""))
			}
			if piece != "" {
				*last() = join(l, *last(), read.LitOf(piece))
			}
		}
		if asks {
			return segments, append([]jmespath.Part{{Text: behind}}, t.Parts[i+1:]...)
		}
	}
	return segments, nil
}

// labelsOf are the labels that a query asks for; false for one that asks for something else.
func labelsOf(l *read.Lowering, query []jmespath.Part) (labels []labelPair, ok bool) {
	text, ok := strings.CutPrefix(query[0].Text, "labelSelector=")
	for i := 0; ok; {
		for _, pair := range strings.Split(text, ",") {
			key, value, found := strings.Cut(pair, "=")
			if !found || !isLabelText(key) || key == "" || !isLabelText(value) || strings.Contains(value, "/") {
				return nil, false
			}
			if slices.ContainsFunc(labels, func(p labelPair) bool { return p.key == key }) {
				return nil, false // both have to be, and a map has one
			}
			labels = append(labels, labelPair{key, read.LitOf(value)})
		}
		if i++; i == len(query) {
			return labels, true
		}
		last := &labels[len(labels)-1]
		if query[i].Var == nil || last.value.Lit != "" {
			return nil, false
		}
		last.value = Variable(l, query[i].Var)
		if i++; i == len(query) {
			return labels, true
		}
		text, ok = strings.CutPrefix(query[i].Text, ",")
	}
	return nil, false
}

// isLabelText reports whether a text stands in a path as it is in a label.
func isLabelText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r))
	})
}
