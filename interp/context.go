package interp

import (
	"fmt"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// An entry is a context entry of a rule or loop, read once.
type entry struct {
	*policy.ContextEntry
	load func(v *vars, a *review) (any, error)
	// replaces tells whether the value takes the place of an earlier one of the same
	// name; else it is merged into it.
	replaces bool
	// roots are the names that the value of a variable is made of.
	roots []string
}

// readEntries reads the context entries of a rule or loop of a policy.
func readEntries(p *policy.Policy, entries []*policy.ContextEntry) []*entry {
	out := make([]*entry, len(entries))
	for i, e := range entries {
		out[i] = readEntry(p, e)
	}
	return out
}

func readEntry(p *policy.Policy, e *policy.ContextEntry) *entry {
	out := &entry{ContextEntry: e}
	switch {
	case e.Variable != nil:
		v := readVariable(e.Variable)
		out.load, out.replaces, out.roots = v.load, true, v.roots()
	case e.ConfigMap != nil:
		out.load = readConfigMap(p, e.ConfigMap)
	case e.APICall != nil:
		out.load = readAPICall(p, e.APICall)
	case e.ImageRegistry != nil:
		out.load = readImageRegistry(e.ImageRegistry)
	case e.GlobalReference != nil:
		out.load = readGlobalReference(e.GlobalReference)
	default:
		out.load = func(*vars, *review) (any, error) { return nil, fmt.Errorf("the entry says nothing to load") }
	}
	return out
}

// defineAll adds entries to the innermost level; they load when they are named.
func (v *vars) defineAll(entries []*entry, a *review) {
	for _, e := range entries {
		v.define(&loader{
			name: e.Name,
			load: func(v *vars) (any, bool, error) {
				value, err := e.load(v, a)
				return value, !e.replaces, err
			},
			fromData: func(v *vars) bool { return v.ofRequest(e.roots) },
		})
	}
}

// defineImages adds the images of the new object.
func (v *vars) defineImages(a *review, r *rule) {
	v.define(&loader{
		name: "images",
		load: func(v *vars) (any, bool, error) {
			if a.object == nil {
				return nil, false, errAbsent
			}
			images, err := v.imagesOf(r.Rule, a.object)
			if err == nil && images == nil {
				return nil, false, errAbsent
			}
			return images, false, err
		},
		fromData: func(*vars) bool { return true },
	})
}

// A variableEntry computes a value from others.
type variableEntry struct {
	value, otherwise *document // nil when absent
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

func (e *variableEntry) roots() []string {
	var roots []string
	for _, d := range []*document{e.value, e.otherwise} {
		if d != nil {
			roots = append(roots, documentRoots(d)...)
		}
	}
	if e.query != nil {
		roots = append(roots, e.query.text.roots...)
		if e.value == nil {
			roots = append(roots, e.query.roots()...)
		}
	}
	return roots
}

// load computes the value. All three parts are filled in first, so an error in
// any of them counts even where it would not be used.
func (e *variableEntry) load(v *vars, _ *review) (any, error) {
	var value, otherwise any
	var err error
	if e.value != nil {
		if value, err = v.fill(e.value); err != nil {
			return nil, err
		}
	}
	var expr *jmespath.Expr
	var text string
	if e.query != nil {
		if expr, text, err = e.query.resolve(v); err != nil {
			return nil, err
		}
	}
	if e.otherwise != nil {
		if otherwise, err = v.fill(e.otherwise); err != nil {
			return nil, err
		}
	}
	switch {
	case e.value != nil && expr == nil:
		return notNull(value, nil)
	case e.value != nil:
		found, err := v.evaluateOn(expr, value)
		if err != nil {
			return notNull(otherwise, err)
		}
		return notNull(found, nil) // a null result does not use the default
	case expr != nil:
		if err = v.prepare(text); err == nil {
			var found any
			found, err = v.evaluate(expr)
			if err == nil && found != nil {
				return found, nil
			}
		}
	}
	return notNull(otherwise, err)
}

// notNull is the value, or why there is none.
func notNull(value any, err error) (any, error) {
	switch {
	case value != nil:
		return value, nil
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("the variable has no value: it is null, and there is no default")
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

func (q *query) roots() []string {
	if q.expr == nil {
		return []string{anyRoot}
	}
	return expressionRoots(q.expr)
}

// resolve is the expression and its text, with variables filled in.
func (q *query) resolve(v *vars) (*jmespath.Expr, string, error) {
	if q.expr != nil || q.err != nil {
		s, _ := q.text.constant()
		return q.expr, s, q.err
	}
	f, err := v.fillParts(q.text)
	if err != nil {
		return nil, "", err
	}
	e, bad, err := f.Expression(diag.Pos{})
	switch {
	case bad != nil:
		return nil, f.Text, fmt.Errorf("incorrect query: %w", bad)
	case err != nil:
		return nil, f.Text, fmt.Errorf("incorrect query: %w", err)
	}
	return e, f.Text, nil
}

// apply is the query's result on data; without a query, the data themselves.
func (q *query) apply(v *vars, data any) (any, error) {
	if q == nil {
		return data, nil
	}
	expr, _, err := q.resolve(v)
	if err != nil {
		return nil, err
	}
	return v.evaluateOn(expr, data)
}

// documentRoots lists the names that the variables of a document look up.
func documentRoots(d *document) []string {
	var roots []string
	if d.text != nil {
		roots = append(roots, d.text.roots...)
	}
	for _, item := range d.items {
		roots = append(roots, documentRoots(item)...)
	}
	for _, f := range d.fields {
		if f.text != nil {
			roots = append(roots, f.text.roots...)
		}
		roots = append(roots, documentRoots(f.value)...)
	}
	return roots
}

func readConfigMap(p *policy.Policy, e *policy.ConfigMapEntry) func(*vars, *review) (any, error) {
	name, namespace := readText(e.Name.Value, e.Name.Pos), readText(e.Namespace.Value, e.Namespace.Pos)
	return func(v *vars, a *review) (any, error) {
		n, err := v.fillString(name)
		if err != nil {
			return nil, err
		}
		ns, err := v.fillString(namespace)
		if err != nil {
			return nil, err
		}
		if ns == "" {
			ns = "default"
			if p.Namespaced() {
				ns = p.Namespace
			}
		}
		if p.Namespaced() && ns != p.Namespace {
			return nil, fmt.Errorf("the policy of namespace %s cannot read the ConfigMap %s/%s", p.Namespace, ns, n)
		}
		object, err := a.world.ConfigMap(v.ctx, ns, n)
		if err != nil {
			return nil, err
		}
		return map[string]any{"data": object["data"], "metadata": object["metadata"]}, nil
	}
}

func readImageRegistry(e *policy.ImageRegistryEntry) func(*vars, *review) (any, error) {
	reference, credentials, q := readText(e.Reference.Value, e.Reference.Pos), readDocument(e.Credentials), readQuery(e.JMESPath)
	return func(v *vars, a *review) (any, error) {
		ref, err := v.fillString(reference)
		if err != nil {
			return nil, err
		}
		c, err := v.fill(credentials)
		if err != nil {
			return nil, err
		}
		data, err := a.world.Image(v.ctx, ref, c)
		if err != nil {
			return nil, err
		}
		return q.apply(v, data)
	}
}

func readGlobalReference(e *policy.GlobalReferenceEntry) func(*vars, *review) (any, error) {
	name, q := readText(e.Name.Value, e.Name.Pos), readQuery(e.JMESPath)
	return func(v *vars, a *review) (any, error) {
		n, err := v.fillString(name)
		if err != nil {
			return nil, err
		}
		data, err := a.world.Global(v.ctx, n)
		if err != nil {
			return nil, err
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
