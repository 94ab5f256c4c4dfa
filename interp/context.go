package interp

import (
	"fmt"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// A contextEntry is a context entry of a rule or loop, read once.
type contextEntry struct {
	*policy.ContextEntry
	load loading
	// replaces tells whether the value takes the place of an earlier one of the same
	// name; else it is merged into it.
	replaces bool
}

// A loading gives the value of an entry, and where it comes from.
type loading func(v *vars, a *preparedRequest) (expr.Value, error)

// ofCluster is a value that comes from elsewhere than the request.
func ofCluster(data any) expr.Value {
	return expr.Value{Data: data, From: expr.Provenance{Origin: expr.OfCluster}}
}

// readEntries reads the context entries of a rule or loop of a policy.
func readEntries(p *policy.Policy, entries []*policy.ContextEntry) []*contextEntry {
	out := make([]*contextEntry, len(entries))
	for i, e := range entries {
		out[i] = readEntry(p, e)
	}
	return out
}

func readEntry(p *policy.Policy, e *policy.ContextEntry) *contextEntry {
	out := &contextEntry{ContextEntry: e}
	switch {
	case e.Variable != nil:
		out.load, out.replaces = readVariable(e.Variable).load, true
	case e.ConfigMap != nil:
		out.load = readConfigMap(p, e.ConfigMap)
	case e.APICall != nil:
		out.load = readAPICall(p, e.APICall)
	case e.ImageRegistry != nil:
		out.load = readImageRegistry(p, e.ImageRegistry)
	case e.GlobalReference != nil:
		out.load = readGlobalReference(e.GlobalReference)
	default:
		out.load = func(*vars, *preparedRequest) (expr.Value, error) {
			return expr.Value{}, fmt.Errorf("the entry says nothing to load")
		}
	}
	return out
}

// defineAll adds entries to the innermost level; they load when they are named.
func (v *vars) defineAll(entries []*contextEntry, a *preparedRequest) {
	for _, e := range entries {
		v.define(&loader{name: e.Name, load: func(v *vars) (expr.Value, bool, error) {
			value, err := e.load(v, a)
			return value, !e.replaces, err
		}})
	}
}

// defineImages adds the images of the new object.
func (v *vars) defineImages(a *preparedRequest, r *rule) {
	v.define(&loader{
		name: "images",
		load: func(v *vars) (value expr.Value, merge bool, err error) {
			if a.object == nil {
				return value, false, errAbsent
			}
			images, err := v.imagesOf(r.Rule, a.object)
			if err == nil && images == nil {
				return value, false, errAbsent
			}
			return expr.Value{Data: images, From: expr.Provenance{Origin: expr.OfRequest}}, false, err
		},
	})
}

// A variableEntry computes a value from others.
type variableEntry struct {
	value, otherwise *template // nil when absent
	query            *query
}

func readVariable(e *policy.VariableEntry) *variableEntry {
	v := &variableEntry{query: readQuery(e.JMESPath)}
	if e.Value != nil {
		v.value = readDocument(e.Value)
	}
	if e.Default != nil {
		v.otherwise = readDocument(e.Default)
	}
	return v
}

// load computes the value.
func (e *variableEntry) load(v *vars, _ *preparedRequest) (found expr.Value, err error) {
	f, err := e.fill(v)
	if err != nil {
		return found, err
	}
	switch {
	case e.value != nil:
		if found = f.value; f.expr != nil {
			found, err = f.on(v, f.value)
		}
		if err == nil {
			return notNull(found, nil) // a null result does not use the default
		}
	case f.expr != nil:
		if err = v.prepare(f.text); err == nil {
			found, err = f.on(v, v.root())
		}
		if err == nil && found.Data != nil {
			return found, nil
		}
	}
	return notNull(f.otherwise, err)
}

// A filledEntry is a variable entry whose parts are filled in.
type filledEntry struct {
	value, otherwise expr.Value
	filledQuery
}

// fill fills in all three parts, so that an error in any of them counts even where it
// would not be used.
func (e *variableEntry) fill(v *vars) (f filledEntry, err error) {
	if e.value != nil {
		if f.value, err = v.fill(e.value); err != nil {
			return f, err
		}
	}
	if e.query != nil {
		if f.filledQuery, err = e.query.resolve(v); err != nil {
			return f, err
		}
	}
	if e.otherwise != nil {
		f.otherwise, err = v.fill(e.otherwise)
	}
	return f, err
}

// notNull is the value, or why there is none.
func notNull(value expr.Value, err error) (expr.Value, error) {
	switch {
	case value.Data != nil:
		return value, nil
	case err != nil:
		return expr.Value{}, err
	}
	return expr.Value{}, fmt.Errorf("the variable has no value: it is null, and there is no default")
}

// A query is a JMESPath expression in which variables may stand.
type query struct {
	text *text
	expr *jmespath.Expr // nil if it depends on variables
	err  error
}

func readQuery(t *policy.Text) *query {
	if t == nil || t.Value == "" {
		return nil
	}
	q := &query{text: readText(t.Value, t.Pos)}
	if s, ok := q.text.constant(); ok {
		q.expr, q.err = parseQuery(s, t.Pos)
	}
	return q
}

func parseQuery(s string, pos diag.Pos) (*jmespath.Expr, error) {
	expr, bad := jmespath.Parse(s, pos)
	if bad != nil {
		return nil, fmt.Errorf("incorrect query: %w", bad)
	}
	return expr, nil
}

// A filledQuery is a query with its variables filled in, and who wrote it.
type filledQuery struct {
	expr    *jmespath.Expr
	text    string
	written expr.Origin
}

// on is what the query finds in data.
func (f filledQuery) on(v *vars, data expr.Value) (expr.Value, error) {
	around := v.surroundings()
	around.Written = f.written
	return expr.Eval(v.ctx, f.expr, data, around)
}

// resolve fills the variables in.
func (q *query) resolve(v *vars) (filledQuery, error) {
	if q.expr != nil || q.err != nil {
		s, _ := q.text.constant()
		return filledQuery{expr: q.expr, text: s}, q.err
	}
	f, err := v.fillParts(q.text)
	if err != nil {
		return filledQuery{}, err
	}
	e, bad, err := f.Expression(diag.Pos{})
	out := filledQuery{expr: e, text: f.Text, written: f.From().Origin}
	switch {
	case bad != nil:
		return out, fmt.Errorf("incorrect query: %w", bad)
	case err != nil:
		return out, fmt.Errorf("incorrect query: %w", err)
	}
	return out, nil
}

// apply is the query's result on data that come from elsewhere than the request; without a
// query, the data themselves.
func (q *query) apply(v *vars, data any) (expr.Value, error) {
	outside := ofCluster(data)
	if q == nil {
		return outside, nil
	}
	f, err := q.resolve(v)
	if err != nil {
		return expr.Value{}, err
	}
	found, err := f.on(v, outside)
	found.From = found.From.And(expr.OfCluster)
	return found, err
}

func readConfigMap(p *policy.Policy, e *policy.ConfigMapEntry) loading {
	name, namespace := readText(e.Name.Value, e.Name.Pos), readText(e.Namespace.Value, e.Namespace.Pos)
	return func(v *vars, a *preparedRequest) (expr.Value, error) {
		n, err := v.fillString(name)
		if err != nil {
			return expr.Value{}, err
		}
		ns, err := v.fillString(namespace)
		if err != nil {
			return expr.Value{}, err
		}
		if ns == "" {
			ns = "default"
			if p.Namespaced() {
				ns = p.Namespace
			}
		}
		if p.Namespaced() && ns != p.Namespace {
			return expr.Value{}, fmt.Errorf("the policy of namespace %s cannot read the ConfigMap %s/%s", p.Namespace, ns, n)
		}
		object, err := a.world.ConfigMap(v.ctx, ns, n)
		if err != nil {
			return expr.Value{}, err
		}
		return ofCluster(map[string]any{"data": object["data"], "metadata": object["metadata"]}), nil
	}
}

func readImageRegistry(p *policy.Policy, e *policy.ImageRegistryEntry) loading {
	reference, credentials, q := readText(e.Reference.Value, e.Reference.Pos), readDocument(e.Credentials), readQuery(e.JMESPath)
	return func(v *vars, a *preparedRequest) (expr.Value, error) {
		ref, err := v.fillString(reference)
		if err != nil {
			return expr.Value{}, err
		}
		c, err := v.fill(credentials)
		if err != nil {
			return expr.Value{}, err
		}
		data, err := a.world.Image(v.ctx, ref, Access{Credentials: c.Data, Namespace: p.Namespace})
		if err != nil {
			return expr.Value{}, err
		}
		return q.apply(v, data)
	}
}

func readGlobalReference(e *policy.GlobalReferenceEntry) loading {
	name, q := readText(e.Name.Value, e.Name.Pos), readQuery(e.JMESPath)
	return func(v *vars, a *preparedRequest) (expr.Value, error) {
		n, err := v.fillString(name)
		if err != nil {
			return expr.Value{}, err
		}
		data, err := a.world.Global(v.ctx, n)
		if err != nil {
			return expr.Value{}, err
		}
		return q.apply(v, data)
	}
}

// jsonValue reads JSON as Go data.
func jsonValue(data []byte) (any, error) {
	var value any
	if err := kjson.Unmarshal(data, &value); err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	}
	return value, nil
}

// inNamespace tells whether a path of the API server stays in a namespace. Only the
// path counts, and no escape in it: what the query says, or what stands behind the
// namespace of another object, would let a variable lead elsewhere.
func inNamespace(urlPath, namespace string) bool {
	at, _, _ := strings.Cut(urlPath, "?")
	if strings.ContainsAny(at, `%\#;`) {
		return false
	}
	segments := strings.Split(strings.TrimSuffix(at, "/"), "/")
	for i, s := range segments {
		if i > 0 && (s == "" || s == "." || s == "..") {
			return false
		}
	}
	behind := map[string]int{"api": 3, "apis": 4} // the version, or group and version
	if len(segments) < 2 || segments[0] != "" || behind[segments[1]] == 0 {
		return false
	}
	scope := segments[min(behind[segments[1]], len(segments)):]
	return len(scope) >= 2 && scope[0] == "namespaces" && scope[1] == namespace
}
