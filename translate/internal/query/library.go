package query

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// What Kyverno's CEL library can ask for that native CEL cannot (Options.Library):
//
//	apiCall of /api/v1/namespaces/{{request.namespace}}/services    resource.List('v1', 'services', request.namespace)
//	apiCall of /api/v1/nodes/{{node}}                               resource.Get('v1', 'nodes', '', node)
//
// An object that is not there is null to the library, and an error to an apiCall. A call that
// fails otherwise is an error to both.

// objectCall is the answer to a call of the API server.
func objectCall(l *read.Lowering, e *policy.ContextEntry) read.Operand {
	c := e.APICall
	switch {
	case c.Service != nil:
		panic(l.Refuse(diag.OutsideData, "the answer of the service that %s asks is outside the request", e.Name))
	case c.Method == "POST":
		panic(l.Refuse(diag.OutsideData, "what the API call %s posts is outside the request", e.Name))
	case c.Default != nil && c.Default.Kind != policy.Null:
		panic(l.Refuse(diag.OutsideData, "the API call %s has a default for a call that fails, which CEL cannot catch", e.Name))
	}
	at, ok := pathOf(l, c.URLPath)
	if !ok {
		panic(l.Refuse(diag.OutsideData, "the API call %s asks for something else than an object or a list of objects", e.Name))
	}
	if l.Policy.Namespaced() && !at.isIn(l, l.Policy.Namespace) {
		panic(l.Refuse(diag.OutsideData, "the API call %s leads out of the namespace of the policy", e.Name))
	}
	value, asked := at.asked(l, e)
	return answer(l, c.JMESPath, value).Demanding(asked)
}

// asked is what is at the path, and what is demanded for it to be there.
func (at apiPath) asked(l *read.Lowering, e *policy.ContextEntry) (read.Operand, read.Demands) {
	var args []cel.Value
	var d read.Demands
	text := func(j read.Operand) cel.Value {
		v, of := pathText(l, j)
		d = d.And(of)
		return v
	}
	args = append(args, cel.String(at.apiVersion), cel.String(at.plural))
	if !l.Policy.Namespaced() {
		namespace := read.LitOf("")
		if at.namespace != nil {
			namespace = *at.namespace
		}
		v := text(namespace)
		if args = append(args, v); at.namespace != nil && !isName(l, namespace) {
			d = d.And(read.DemandToLoad("namespace", v.Ne(cel.String("")))) // which is all of them to the library
		}
	}
	of := at.typeOf(l)
	resource := receiver(l, "resource")
	if at.name != nil {
		object := shared(l, at.called(l, e), read.Dyn(resource.Call("Get", append(args, text(*at.name))...)))
		return worldly(object, of), d.And(read.DemandToLoad(e.Name, object.Ne(cel.Null())))
	}
	if len(at.labels) > 0 {
		var pairs []cel.Entry
		for _, p := range at.labels {
			v := text(p.value)
			if p.value.Form != read.LitForm && !isRequestNamespace(p.value) { // else it would select by something else
				d = d.And(read.DemandToLoad("labelSelector", v.Matches(`^[-_.A-Za-z0-9]*$`)))
				if len(at.labels) > 1 { // values of one map are of one type
					v = cel.Func(cel.FuncString, v)
				}
			}
			pairs = append(pairs, cel.Entry{Key: cel.String(p.key), Value: v})
		}
		args = append(args, cel.Map(pairs...))
	}
	list := shared(l, at.called(l, e), resource.Call("List", args...))
	return worldly(list, listOf(of)), d.And(read.DemandToLoad(e.Name, list.Has("items")))
}

// pathText is a value as it stands in a path. What may be no text at run time leads nowhere.
func pathText(l *read.Lowering, j read.Operand) (cel.Value, read.Demands) {
	switch {
	case j.Form == read.ChoiceForm && !j.MayBeError():
		then, ofThen := pathText(l, *j.Then)
		els, ofEls := pathText(l, *j.Els)
		_, d := j.Freed()
		return cel.Cond(j.C, then, els), d.And(read.DemandsWhere(j.C, ofThen, ofEls))
	case j.Form == read.PlaceForm && j.V.Dynamic():
		v, d, _ := read.Strictly(l, j)
		return v, d.And(read.Demand("path", read.IsString(v)))
	}
	return Text(l, j)
}

// receiver is the variable that has functions of the library, which no element of a list hides.
func receiver(l *read.Lowering, name string) cel.Value {
	if v := cel.Ident(name); !l.Binders.Binds(v) {
		return v
	}
	panic(l.Unsupported("an element of a list that is called " + name + ", and hides what asks for it,"))
}

// shared is the value as a variable, which asks once, however often it is read. What depends on
// an element of a list stays as it is.
func shared(l *read.Lowering, name string, v cel.Value) cel.Value {
	if l.Binders.Binds(v) {
		return v
	}
	return read.Let(l.AtTop(), name, v)
}

// called is what the variable for the answer is called.
func (at apiPath) called(l *read.Lowering, e *policy.ContextEntry) string {
	name := at.plural
	if r, ok := l.Opts.Schemas.ByResource(at.group(), at.version(), at.plural); ok && at.name != nil {
		name = strings.ToLower(r.Kind[:1]) + r.Kind[1:]
	}
	if e.APICall == nil || e.APICall.JMESPath == nil || !isWord(name) {
		name = e.Name
	}
	return compare.VariableName(name, "answer")
}

func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 'a' || r > 'z' })
}

// typeOf is the type of the objects. Those of a built-in kind have what the API server decodes. Of
// others, the definition may have changed since they were stored, so that something required is missing.
func (at apiPath) typeOf(l *read.Lowering) *schema.Type {
	t := native.Target{GVK: schema.GVK{Group: at.group(), Version: at.version()}}
	set := l.Opts.Schemas
	r, known := set.ByResource(at.group(), at.version(), at.plural)
	if known {
		t.GVK, t.Type = r.GVK, set.Type(r.GVK)
	}
	l = l.Inside()
	l.OfTemplate = false
	of := read.ObjectType(l, t)
	switch {
	case known && (set.Custom(r.GVK) || r.Project != nil):
		of = read.Unvalidated(of)
	case known && at.name == nil: // the API server leaves both out of the items, where the library has them
		of.Fields["apiVersion"], of.Fields["kind"] = withheld("apiVersion"), withheld("kind")
	}
	return of
}

// withheld is a field that is not read.
func withheld(name string) *schema.Field {
	return &schema.Field{Name: name, Type: &schema.Type{Kind: schema.Any, Format: schema.Withheld}}
}

// listOf is the type of a list of objects, as an API server answers with.
func listOf(elem *schema.Type) *schema.Type {
	return native.ObjectWith(&schema.Field{Name: "items", Type: &schema.Type{Kind: schema.List, Elem: elem}})
}

// filledPath is an expression into which Kyverno fills the values of variables; nil where another way
// reads it.
func filledPath(l *read.Lowering, t policy.Text) *jmespath.Expr {
	if !l.Opts.Library {
		return nil
	}
	e, d := jmespath.ParseField(t.Value, t.Pos)
	if d != nil {
		panic(read.Refusal{Diagnostic: diag.Warnf(d.Pos, d.Code, "%s; the webhook will judge this rule", d.Message)})
	}
	return e
}

// filledLiteral is a literal that is the value of a variable. That of a text would be read as JSON.
func filledLiteral(l *read.Lowering, t *jmespath.Template) read.Operand {
	j := Variable(l, t.Single())
	if !slices.Contains([]schema.Kind{schema.Map, schema.Object, schema.List, schema.Int, schema.Bool}, read.KindOf(j.Typ())) || j.Form == read.ChoiceForm {
		panic(l.Unsupported("a literal in an expression that is a variable of unknown type"))
	}
	return j
}

// isParams reports whether a ConfigMap can be the params of the policy: its name and namespace are known
// when compiling, or the namespace is the request's, and there are no others.
func isParams(l *read.Lowering, e *policy.ContextEntry) (is bool) {
	name, ok := constantText(l, e.ConfigMap.Name)
	if !ok || name == "" {
		return false
	}
	namespace := configMapPlace(l, e)
	if isRequestNamespace(namespace) && inNamespace(l) {
		return l.Params == nil || l.Params.Name == name && l.Params.Namespace == ""
	}
	text, isText := namespace.Lit.(string)
	return isText && (l.Params == nil || l.Params.Name == name && l.Params.Namespace == text)
}

// configMapPlace is the namespace of a ConfigMap.
func configMapPlace(l *read.Lowering, e *policy.ContextEntry) read.Operand {
	j := Template(l, ParseTemplate(e.ConfigMap.Namespace.Value, e.ConfigMap.Namespace.Pos))
	switch {
	case j.Form != read.LitForm || j.Lit != "":
		return j
	case l.Policy.Namespaced():
		return read.LitOf(l.Policy.Namespace)
	}
	return read.LitOf("default")
}

// configMapObject is a ConfigMap that the params cannot be.
func configMapObject(l *read.Lowering, e *policy.ContextEntry) read.Operand {
	namespace, name := configMapPlace(l, e), Template(l, ParseTemplate(e.ConfigMap.Name.Value, e.ConfigMap.Name.Pos))
	at := apiPath{apiVersion: "v1", plural: "configmaps", namespace: &namespace, name: &name}
	if l.Policy.Namespaced() && !at.isIn(l, l.Policy.Namespace) {
		panic(l.Refuse(diag.OutsideData, "the ConfigMap %s may be one of another namespace than that of the policy", e.Name))
	}
	object, asked := at.asked(l, e)
	return configMapValue(l, object.V.Expr).Demanding(asked)
}

// imageData is what a registry knows of an image.
func imageData(l *read.Lowering, e *policy.ContextEntry) read.Operand {
	c := e.ImageRegistry
	if c.Credentials != nil {
		panic(l.Refuse(diag.OutsideData, "the data of an image is in a registry that %s asks with credentials of its own", e.Name))
	}
	reference, d := pathText(l, Template(l, ParseTemplate(c.Reference.Value, c.Reference.Pos)))
	data := shared(l, compare.VariableName(e.Name, "image"), receiver(l, "image").Call("GetMetadata", reference))
	value := read.Operand{Form: read.HashForm, Hint: someKeys}
	add := func(key string, j read.Operand) {
		value.Keys, value.Multi = append(value.Keys, key), append(value.Multi, j)
	}
	for _, name := range []string{"image", "resolvedImage", "registry", "repository", "identifier"} {
		add(name, worldly(data.Field(name), read.PlainText()))
	}
	add("manifest", worldly(data.Field("manifest"), manifestType()))
	add("configData", worldly(data.Field("config"), openType()))
	return answer(l, c.JMESPath, value).Demanding(d, read.DemandToLoad(e.Name, data.Has("registry")))
}

// manifestType is the manifest of an image, of which Kyverno reads sizes as numbers before a policy does.
func manifestType() *schema.Type {
	blob := openType(&schema.Field{Name: "size", Type: &schema.Type{Kind: schema.Int}})
	return openType(&schema.Field{Name: "layers", Type: &schema.Type{Kind: schema.List, Elem: blob}}, &schema.Field{Name: "config", Type: blob})
}

// openType is an object of which some fields are known, none of which need be there.
func openType(fields ...*schema.Field) *schema.Type {
	t := &schema.Type{Kind: schema.Object, Open: true, Fields: map[string]*schema.Field{}}
	for _, f := range fields {
		t.Fields[f.Name] = f
	}
	return t
}

// globalData is what Kyverno keeps of a GlobalContextEntry. One that is not known is null to the library.
func globalData(l *read.Lowering, e *policy.ContextEntry) read.Operand {
	name, ok := constantText(l, e.GlobalReference.Name)
	if !ok {
		panic(l.Refuse(diag.OutsideData, "the name of the global context entry %s is a variable", e.Name))
	}
	var args []cel.Value
	for _, part := range strings.SplitN(name, ".", 2) {
		args = append(args, cel.String(part))
	}
	data := shared(l, compare.VariableName(e.Name, "global"), receiver(l, "globalContext").Call("Get", args...))
	return answer(l, e.GlobalReference.JMESPath, worldly(data, read.AnyType())).Demanding(read.DemandToLoad(e.Name, data.Ne(cel.Null())))
}

// worldly is a value that the cluster has: its texts may be patterns, as those of a ConfigMap.
func worldly(v cel.Value, t *schema.Type) read.Operand {
	return read.OperandAt(read.PlaceOf(v, t).From(read.FromConfiguration))
}

// libraryFunction is a function that is lowered for Kyverno's CEL library alone, where it is mostly asked
// of what the library reads (Options.Library); false of another.
func libraryFunction(l *read.Lowering, f jmespath.Func, arg func(i int) read.Operand) (read.Operand, bool) {
	switch f {
	case jmespath.FuncLabelMatch:
		return read.InEach(arg(0), func(selector read.Operand) read.Operand {
			return read.InEach(arg(1), func(labels read.Operand) read.Operand { return labelMatch(l, selector, labels) })
		}), true
	case jmespath.FuncRandom:
		return randomText(l, arg(0)), true
	case jmespath.FuncSum:
		return read.InEach(arg(0), func(j read.Operand) read.Operand { return sum(l, j) }), true
	}
	return read.Operand{}, false
}

// randomText is a text that a regular expression describes, of which each is another one. Only of what is
// changed later does nobody see before what it is.
func randomText(l *read.Lowering, expression read.Operand) read.Operand {
	text, ok := expression.Lit.(string)
	if l.Trigger == nil || !ok || expression.Form != read.LitForm {
		panic(l.Refuse(diag.NoFunction, "the function random has no native form"))
	}
	return read.StringOf(cel.Func("random", cel.String(text)))
}

// sum is the sum of a list of integers, of which there must be one. Of texts it may be that of quantities.
func sum(l *read.Lowering, j read.Operand) read.Operand {
	s := read.AsSequence(l, j)
	if s == nil || j.Form == read.LitForm || read.KindOf(s.Elem()) != schema.Int {
		panic(l.Refuse(diag.NoFunction, "the sum of what may be no integers has no native form"))
	}
	list, ok := s.List(l, false)
	if !ok {
		panic(l.Unsupported("the sum of a list of lists"))
	}
	some := s.Quantify(l, cel.ForSome, false, func(read.Operand) cel.Bool { return cel.True() })
	total := l.Binders.Map(list, "number", func(x cel.Value) cel.Value { return cel.Func(cel.FuncInt, x) }).Call(cel.FuncSum)
	return read.IntOf(total).Demanding(read.Demand("", cel.Not(s.Null())), read.Demand("", some))
}

// labelMatch is: labels have all pairs of a selector. What is no map is an error.
func labelMatch(l *read.Lowering, selector, labels read.Operand) read.Operand {
	ofSelector, d, ok := mapArg(l, selector)
	ofLabels, d2, ok2 := mapArg(l, labels)
	if !ok || !ok2 {
		return read.TypeError("argument")
	}
	matches := l.Binders.All(ofSelector, "label", func(x cel.Value) cel.Bool {
		return cel.And(x.In(ofLabels), ofSelector.Index(x).Eq(ofLabels.Index(x)))
	})
	return read.BoolOf(matches).Demanding(d, d2)
}

// mapArg is an argument that must be a map, and what that demands; false where it is none.
func mapArg(l *read.Lowering, j read.Operand) (cel.Value, read.Demands, bool) {
	if j.Form != read.PlaceForm {
		if _, isMap := j.Lit.(map[string]any); !isMap || j.Form != read.LitForm {
			return cel.Value{}, read.Demands{}, false
		}
	}
	v, d, ok := read.Strictly(l, j.Settled())
	if j.Form == read.PlaceForm {
		d = d.And(read.Demand("", j.V.Found()))
	}
	switch read.KindOf(j.Typ()) {
	case schema.Map:
		return v, d, ok
	case schema.Any:
		if j.Form == read.PlaceForm {
			return v, d.And(read.Demand("", read.IsMap(v))), ok
		}
		return v, d, ok
	}
	return v, d, false
}
