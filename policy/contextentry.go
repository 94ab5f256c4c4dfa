package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// A ContextEntry is a named value of a rule's context. One of the pointers is set.
type ContextEntry struct {
	Pos             diag.Pos
	Name            string
	Variable        *VariableEntry
	ConfigMap       *ConfigMapEntry
	APICall         *APICallEntry
	ImageRegistry   *ImageRegistryEntry
	GlobalReference *GlobalReferenceEntry
}

// A VariableEntry is a context variable. Value and Default are nil when absent.
type VariableEntry struct {
	Pos      diag.Pos
	Value    *Node
	JMESPath *Text
	Default  *Node
}

// A ConfigMapEntry loads a ConfigMap. Both texts may hold variables.
type ConfigMapEntry struct {
	Pos       diag.Pos
	Name      Text
	Namespace Text
}

// Fixed is the ConfigMap that an entry of a policy reads whatever is asked; false where that
// depends on the request, or the policy may not read it.
func (e *ConfigMapEntry) Fixed(p *Policy) (namespace, name string, ok bool) {
	if name, ok = constantText(e.Name); !ok {
		return "", "", false
	}
	if namespace, ok = constantText(e.Namespace); !ok {
		return "", "", false
	}
	if p.Namespaced() {
		namespace, ok = p.Namespace, namespace == "" || namespace == p.Namespace
	}
	return cmp.Or(namespace, "default"), name, ok && name != ""
}

// Varies reports whether it depends on the request which ConfigMap an entry reads.
func (e *ConfigMapEntry) Varies() bool {
	_, name := constantText(e.Name)
	_, namespace := constantText(e.Namespace)
	return !name || !namespace
}

// constantText is what a text is whatever is asked.
func constantText(t Text) (text string, ok bool) {
	template, wrong := jmespath.ParseTemplate(t.Value, t.Pos)
	if wrong != nil {
		return "", false
	}
	return template.Constant()
}

// An APICallEntry asks the API server or a service.
type APICallEntry struct {
	Pos      diag.Pos
	URLPath  Text
	Method   string // GET or POST
	Data     []APICallData
	Service  *APIService
	JMESPath *Text
	Default  *Node
}

// APICallData is one field of the body of a POST.
type APICallData struct {
	Pos   diag.Pos
	Key   string
	Value *Node
}

// An APIService is a service outside the API server.
type APIService struct {
	Pos      diag.Pos
	URL      Text
	Headers  []Pair
	CABundle string
}

// An ImageRegistryEntry loads the data of an image.
type ImageRegistryEntry struct {
	Pos         diag.Pos
	Reference   Text
	JMESPath    *Text
	Credentials *Node
}

// A GlobalReferenceEntry reads a GlobalContextEntry.
type GlobalReferenceEntry struct {
	Pos      diag.Pos
	Name     Text
	JMESPath *Text
}

func (r *reader) contextEntry(n *Node) *ContextEntry {
	o := r.object(n, "a context entry")
	name := o.needText("name")
	e := &ContextEntry{Pos: n.Pos, Name: name.Value}
	if reserved(e.Name) {
		r.fail(name.Pos, diag.OutOfRange, "a context entry cannot be called %q: the engine uses this name itself; rename it", e.Name)
	}
	if v := o.take("variable"); v != nil {
		e.Variable = r.variableEntry(v)
	}
	if c := o.take("configMap"); c != nil {
		e.ConfigMap = r.configMapEntry(c)
	}
	if a := o.take("apiCall"); a != nil {
		e.APICall = r.apiCallEntry(a)
	}
	if i := o.take("imageRegistry"); i != nil {
		e.ImageRegistry = r.imageRegistryEntry(i)
	}
	if g := o.take("globalReference"); g != nil {
		e.GlobalReference = r.globalReferenceEntry(g)
	}
	o.one("variable", "configMap", "apiCall", "imageRegistry", "globalReference")
	o.end()
	return e
}

func reserved(name string) bool {
	for _, word := range []string{"images", "request", "serviceAccountName", "serviceAccountNamespace", "element", "elementIndex"} {
		if name == word || strings.HasPrefix(name, word+".") {
			return true
		}
	}
	return false
}

func (r *reader) variableEntry(n *Node) *VariableEntry {
	o := r.object(n, "a variable")
	v := &VariableEntry{Pos: n.Pos, Value: o.take("value"), JMESPath: o.optional("jmesPath"), Default: o.take("default")}
	o.end()
	if v.Value == nil && v.JMESPath == nil && v.Default == nil && !o.wrong {
		r.fail(n.Pos, diag.Missing, "a variable needs a value, a jmesPath or a default")
	}
	return v
}

func (r *reader) configMapEntry(n *Node) *ConfigMapEntry {
	o := r.object(n, "configMap")
	c := &ConfigMapEntry{Pos: n.Pos, Name: o.needText("name"), Namespace: o.text("namespace")}
	o.end()
	return c
}

func (r *reader) apiCallEntry(n *Node) *APICallEntry {
	o := r.object(n, "apiCall")
	a := &APICallEntry{Pos: n.Pos, URLPath: o.text("urlPath"), JMESPath: o.optional("jmesPath"), Default: o.take("default")}
	a.Method = o.choice("method", "GET", "POST")
	if a.Method == "" {
		a.Method = "GET"
	}
	a.Data = each(o.list("data"), r.apiCallData)
	if s := o.take("service"); s != nil {
		a.Service = r.apiService(s)
	}
	o.end()
	switch {
	case o.wrong:
	case a.URLPath.Value == "" && a.Service == nil:
		r.fail(n.Pos, diag.Missing, "an apiCall needs a urlPath or a service")
	case a.URLPath.Value != "" && a.Service != nil:
		r.fail(o.pos("service"), diag.Conflict, "an apiCall has a urlPath and a service; remove one")
	case len(a.Data) > 0 && a.Method != "POST":
		r.fail(o.pos("data"), diag.Conflict, "only an apiCall with method POST sends data; set the method or remove data")
	}
	return a
}

func (r *reader) apiCallData(n *Node) APICallData {
	o := r.object(n, "an entry of data")
	d := APICallData{Pos: n.Pos, Key: o.needText("key").Value, Value: o.require("value")}
	o.end()
	return d
}

func (r *reader) apiService(n *Node) *APIService {
	o := r.object(n, "service")
	s := &APIService{Pos: n.Pos, URL: o.needText("url"), CABundle: o.str("caBundle")}
	s.Headers = each(o.list("headers"), r.requestHeader)
	o.end()
	return s
}

func (r *reader) requestHeader(n *Node) Pair {
	o := r.object(n, "a header")
	h := Pair{Pos: n.Pos, Key: o.needText("key").Value, Value: o.str("value")}
	o.end()
	return h
}

func (r *reader) imageRegistryEntry(n *Node) *ImageRegistryEntry {
	o := r.object(n, "imageRegistry")
	i := &ImageRegistryEntry{Pos: n.Pos, Reference: o.needText("reference"), JMESPath: o.optional("jmesPath")}
	if i.Credentials = o.take("imageRegistryCredentials"); i.Credentials != nil {
		r.registryCredentials(i.Credentials)
	}
	o.end()
	return i
}

func (r *reader) registryCredentials(n *Node) {
	o := r.object(n, "imageRegistryCredentials")
	o.optionalBool("allowInsecureRegistry")
	o.choices("providers", "default", "amazon", "azure", "google", "github")
	o.strings("secrets")
	o.end()
}

func (r *reader) globalReferenceEntry(n *Node) *GlobalReferenceEntry {
	o := r.object(n, "globalReference")
	g := &GlobalReferenceEntry{Pos: n.Pos, Name: o.needText("name"), JMESPath: o.optional("jmesPath")}
	o.end()
	return g
}

// ContextEntries are the entries of a rule and of all its foreach blocks.
func (rule *Rule) ContextEntries() []*ContextEntry {
	out := slices.Clone(rule.Context)
	if rule.Validate != nil {
		out = append(out, entriesInLoops(rule.Validate.ForEach, func(f *ForEach) ([]*ContextEntry, []*ForEach) { return f.Context, f.ForEach })...)
	}
	if rule.Mutate != nil {
		out = append(out, entriesInLoops(rule.Mutate.ForEach, func(f *MutateForEach) ([]*ContextEntry, []*MutateForEach) { return f.Context, f.ForEach })...)
	}
	if rule.Generate != nil {
		for _, f := range rule.Generate.ForEach {
			out = append(out, f.Context...)
		}
	}
	return out
}

func entriesInLoops[F any](loops []F, of func(F) ([]*ContextEntry, []F)) (out []*ContextEntry) {
	for _, f := range loops {
		entries, inside := of(f)
		out = append(append(out, entries...), entriesInLoops(inside, of)...)
	}
	return out
}
