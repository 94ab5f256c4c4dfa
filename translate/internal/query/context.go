package query

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// ContextOf is the context that entries give on top of the outer one.
func ContextOf(entries []*policy.ContextEntry, outer read.Context) read.Context {
	if len(entries) == 0 {
		return outer
	}
	out := read.Context{Named: make(map[string][]*read.ContextVar, len(entries)), Size: outer.Size}
	for name := range outer.Named {
		for v := outer.Get(name); v != nil; v = v.Outer.Get(name) {
			out.Named[name] = slices.Insert(out.Named[name], 0, v)
		}
	}
	for _, e := range entries {
		out.Named[e.Name] = append(out.Named[e.Name], &read.ContextVar{Entry: e, Index: out.Size, Outer: read.Context{Named: out.Named, Size: out.Size}})
		out.Size++
	}
	return out
}

// contextValue is the value of an entry. While the old object is judged, Kyverno keeps what
// it loaded of the rule when it judged the new one (8.4).
func contextValue(l *read.Lowering, v *read.ContextVar) read.Operand {
	l = l.Inside()
	if l.OfOld() && slices.Contains(l.Rule.Context, v.Entry) {
		l.Environment = l.OfNewObject()
	}
	l.Context = v.Outer
	e := v.Entry
	l.SetPos(e.Pos)
	switch {
	case e.Variable != nil:
		return variableEntry(l, e.Variable)
	case e.ConfigMap != nil:
		return configMap(l, e)
	case e.APICall != nil:
		return apiCall(l, e)
	case e.ImageRegistry != nil && l.Opts.Library:
		return imageData(l, e)
	case e.GlobalReference != nil && l.Opts.Library:
		return globalData(l, e)
	case e.ImageRegistry != nil:
		panic(l.Refuse(diag.OutsideData, "the data of an image is in a registry"))
	case e.GlobalReference != nil:
		panic(l.Refuse(diag.OutsideData, "global context entries are outside the request"))
	}
	panic(l.Unsupported("this context entry"))
}

// maxEntries bounds how often variables are worked out for one target. Each use of
// one is, and of those in it: forty that use the one before twice never end.
const maxEntries = 2000

// variableEntry is a variable: its value, what a JMESPath expression gives, or
// the default where that is null or an error.
func variableEntry(l *read.Lowering, v *policy.VariableEntry) read.Operand {
	if l.Entries++; l.Entries > maxEntries {
		panic(read.TooLarge(l.Pos))
	}
	var out read.Operand
	switch {
	case v.Value != nil && v.JMESPath == nil: // the default is for a jmesPath only
		return whereFilledBy(l, v.Default, "default", required(l, valueNode(l, v.Value)))
	case v.Value != nil:
		value := valueNode(l, v.Value)
		// null is an error here even with a default
		out = required(l, read.InEach(value, func(j read.Operand) read.Operand { return eval(l, path(l, *v.JMESPath), &j) }))
		if v.Default == nil || out.Form == read.LitForm || read.Present(l, out).IsTrue() {
			return whereFilledBy(l, v.Default, "default", out)
		}
		panic(l.Unsupported("a variable with a value, a jmesPath and a default"))
	case v.JMESPath != nil:
		out = queried(l, path(l, *v.JMESPath), v.Default)
	default:
		return required(l, Node(l, v.Default))
	}
	if v.Default == nil || v.Default.Kind == policy.Null {
		return required(l, out)
	}
	def := required(l, Node(l, v.Default))
	out = read.Bounded(l, read.InEach(out.Softly(), func(j read.Operand) read.Operand {
		if j.Form == read.ErrorForm { // the default stands in for any error
			return def
		}
		return read.Choice(read.Present(l, j), j.PresentNow(), def)
	}))
	return whereFilledBy(l, v.Default, "default", out)
}

// queried is what a query gives. Where a default stands in for any error, those of
// functions are told beforehand: CEL cannot catch them.
func queried(l *read.Lowering, e *jmespath.Expr, def *policy.Node) read.Operand {
	if def == nil || def.Kind == policy.Null {
		return Outside(l, e)
	}
	out := Outside(l, e)
	d := out.Anyway()
	if d.Unsure {
		panic(l.Unsupported("a default for a jmesPath that may be an error"))
	}
	return read.Choice(d.All().Simplify(), out.Undemanding(), read.TypeError("jmesPath")).Demanding(read.Demands{Native: d.Native})
}

// constantText is a text that is known when compiling.
func constantText(l *read.Lowering, t policy.Text) (text string, ok bool) {
	j := Template(l, ParseTemplate(t.Value, t.Pos))
	text, ok = j.Lit.(string)
	return text, ok && j.Form == read.LitForm && j.Anyway().None()
}

func path(l *read.Lowering, t policy.Text) *jmespath.Expr {
	l.SetPos(t.Pos)
	if e := filledPath(l, t); e != nil {
		return e
	}
	s, ok := constantText(l, t)
	if !ok {
		panic(l.Unsupported("a jmesPath with variables"))
	}
	e, d := jmespath.Parse(s, t.Pos)
	if d != nil {
		panic(read.Refusal{Diagnostic: diag.Warnf(d.Pos, d.Code, "%s; the webhook will judge this rule", d.Message)})
	}
	return e
}

// configMap is the data and metadata of a ConfigMap, which becomes the params of
// the policy. That takes a name which is known when compiling.
func configMap(l *read.Lowering, e *policy.ContextEntry) read.Operand {
	name, ok := constantText(l, e.ConfigMap.Name)
	if l.Opts.Library && !isParams(l, e) {
		return configMapObject(l, e)
	}
	if !ok || name == "" {
		panic(l.Refuse(diag.OutsideData, "the ConfigMap %s is outside the request: its name is a variable", e.Name))
	}
	namespace, ok := configMapNamespace(l, e)
	if !ok {
		l.Tells = true
		return read.TypeError("the Policy " + native.MemberName(l.Policy) + " may read ConfigMaps of its own namespace only, and not " + namespace + "/" + name)
	}
	params := read.UseParams(l, name, namespace)
	return configMapValue(l, params)
}

// configMapValue is what policies can see of a ConfigMap.
func configMapValue(l *read.Lowering, object cel.Value) read.Operand {
	data := read.OptionalField(object, "data", read.MapOf(read.StringType())).From(read.FromConfiguration)
	data.Guards[0].Shape = true // it is null, and no error, where a ConfigMap has none
	return read.Operand{Form: read.HashForm, Keys: []string{"data", "metadata"}, Multi: []read.Operand{read.OperandAt(data), paramsMetadata(l, object)}}
}

func paramsMetadata(l *read.Lowering, params cel.Value) read.Operand {
	t := l.Opts.Schemas.Type(schema.GVK{Version: "v1", Kind: "ConfigMap"})
	if t == nil || t.Fields["metadata"] == nil {
		return read.ValueOf(params.Field("metadata"), read.AnyType())
	}
	return read.ValueOf(params.Field("metadata"), t.Fields["metadata"].Type)
}

// configMapNamespace is where the ConfigMap is; empty for the namespace of the
// object. It is false where the policy may not read there.
func configMapNamespace(l *read.Lowering, e *policy.ContextEntry) (namespace string, ok bool) {
	j := Template(l, ParseTemplate(e.ConfigMap.Namespace.Value, e.ConfigMap.Namespace.Pos))
	if s, isText := j.Lit.(string); isText && j.Form == read.LitForm && j.Anyway().None() {
		switch {
		case l.Policy.Namespaced() && s == "":
			return l.Policy.Namespace, true
		case l.Policy.Namespaced():
			return s, s == l.Policy.Namespace
		case s == "":
			return "default", true
		}
		return s, true
	}
	if inNamespace(l) && isRequestNamespace(j) {
		return "", true
	}
	panic(l.Refuse(diag.OutsideData, "the ConfigMap %s is outside the request: its namespace is a variable", e.Name))
}

// inNamespace tells that what the request is about is in a namespace.
func inNamespace(l *read.Lowering) bool { return l.Requested().Target.Scope == native.Namespaced }

// isRequestNamespace tells that a value is request.namespace.
func isRequestNamespace(j read.Operand) bool {
	return j.Form == read.PlaceForm && cel.Equal(j.V.Expr, cel.Ident("request").Field("namespace"))
}

// likeText is a text that has j in it, and so comes from where j does.
func likeText(j read.Operand, text cel.Value) read.Operand {
	if read.IsConfigured(j) {
		return read.ConfiguredText(text)
	}
	return read.StringOf(text)
}

// apiCall is the answer to a call that the API server has at hand: the object's
// namespace.
func apiCall(l *read.Lowering, e *policy.ContextEntry) read.Operand {
	c := e.APICall
	if c.Service == nil && c.Method != "POST" && asksForNamespace(l, c) {
		return namespaceCall(l, c)
	}
	if l.Opts.Library {
		return objectCall(l, e)
	}
	panic(l.Refuse(diag.OutsideData, "the answer of the API call %s is outside the request", e.Name))
}

// asksForNamespace tells that a call is for the namespace of the object.
func asksForNamespace(l *read.Lowering, c *policy.APICallEntry) bool {
	t := ParseTemplate(c.URLPath.Value, c.URLPath.Pos)
	if len(t.Parts) != 2 || t.Parts[0].Text != "/api/v1/namespaces/" || t.Parts[1].Var == nil || !inNamespace(l) || l.Trigger != nil { // a target is told no namespace
		return false
	}
	return isRequestNamespace(Variable(l, t.Parts[1].Var))
}

// namespaceCall reads the namespace of the object. One that is stored has a phase;
// where only its labels are known, as in a test, the call is an error.
func namespaceCall(l *read.Lowering, c *policy.APICallEntry) read.Operand {
	ns := cel.Ident("namespaceObject")
	known := ns.Field("status").Has("phase")
	if c.Default != nil && c.Default.Kind != policy.Null {
		return read.Choice(known, answer(l, c.JMESPath, namespaceValue(ns)), Node(l, c.Default))
	}
	return answer(l, c.JMESPath, namespaceValue(ns)).Demanding(read.DemandToLoad("namespace_is_not_known", known))
}

// someKeys is the hint of a hash of which only some keys are known.
const someKeys = "partial"

// namespaceValue is what policies can see of a namespace.
func namespaceValue(ns cel.Value) read.Operand {
	meta := ns.Field("metadata")
	texts := func(name string) read.Operand {
		return read.OperandAt(read.OptionalField(meta, name, read.MapOf(read.StringType())).From(read.FromConfiguration))
	}
	metadata := read.Operand{Form: read.HashForm, Hint: someKeys, Keys: []string{"name", "labels", "annotations"},
		Multi: []read.Operand{read.ConfiguredText(meta.Field("name")), texts("labels"), texts("annotations")}}
	return read.Operand{Form: read.HashForm, Hint: someKeys, Keys: []string{"apiVersion", "kind", "metadata"},
		Multi: []read.Operand{read.LitOf("v1"), read.LitOf("Namespace"), metadata}}
}

// answer is what the call's jmesPath makes of an answer. A key that is missing
// there makes the entry an error, which nothing takes for null.
func answer(l *read.Lowering, jmesPath *policy.Text, j read.Operand) read.Operand {
	if jmesPath == nil {
		return j
	}
	return hardened(eval(l, path(l, *jmesPath), &j))
}

func hardened(j read.Operand) read.Operand {
	switch j.Form {
	case read.ErrorForm:
		j.Hard = true
	case read.PlaceForm:
		if j.V.MayMiss() {
			return read.Choice(j.V.KeysFound(), j.Softly(), read.TypeError("key"))
		}
	case read.ChoiceForm:
		return j.With(hardened(*j.Then), hardened(*j.Els))
	}
	return j
}

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
	return at.namespace.Lit == namespace || inNamespace(l) && isRequestNamespace(*at.namespace)
}

// isName reports whether a value is a name that is never empty.
func isName(l *read.Lowering, j read.Operand) bool {
	text, ok := j.Lit.(string)
	return ok && text != "" || isRequestNamespace(j) && (inNamespace(l) || l.Requested().Target.GVK == schema.GVK{Version: "v1", Kind: "Namespace"})
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
