package interp

import (
	"fmt"
	"strconv"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// A generateTarget is what a generate rule, or an entry of its foreach, makes, read
// once.
type generateTarget struct {
	apiVersion, kind, namespace, name *text
	data                              *template // nil where the object is a copy, or bare
	clone                             *cloneSource
	list                              *cloneList
}

type cloneSource struct{ namespace, name *text }

type cloneList struct {
	namespace *text
	kinds     []*text
	selector  *template
}

func readGenerateTarget(t *policy.GenerateTarget) *generateTarget {
	read := func(t policy.Text) *text { return readText(t.Value, t.Pos) }
	out := &generateTarget{apiVersion: read(t.APIVersion), kind: read(t.Kind), namespace: read(t.Namespace), name: read(t.Name)}
	switch {
	case t.Data != nil:
		out.data = readDocument(t.Data)
	case t.Clone != nil:
		out.clone = &cloneSource{read(t.Clone.Namespace), read(t.Clone.Name)}
	case t.CloneList != nil:
		out.list = &cloneList{namespace: read(t.CloneList.Namespace), selector: readDocument(t.CloneList.SelectorNode)}
		for _, kind := range t.CloneList.Kinds {
			out.list.kinds = append(out.list.kinds, read(kind))
		}
	}
	return out
}

// A generateLoop is an entry of generate.foreach.
type generateLoop struct {
	list          *jmespath.Expr
	listText      string
	listErr       error
	entries       []*contextEntry
	preconditions *conditions
	target        *generateTarget
}

func readGenerateLoop(p *policy.Policy, f *policy.GenerateForEach) *generateLoop {
	l := &generateLoop{
		listText: f.List.Value, entries: readEntries(p, f.Context), preconditions: readConditions(f.Preconditions, denying),
		target: readGenerateTarget(&f.GenerateTarget),
	}
	l.list, l.listErr = parseQuery(f.List.Value, f.List.Pos)
	return l
}

// A filledTarget is a target with its variables filled in.
type filledTarget struct {
	apiVersion, kind, namespace, name string
	data                              any
	sourceNamespace, sourceName       string
	kinds                             []string
}

// A filling is a text and where it goes when it is filled in.
type filling struct {
	into *string
	of   *text
}

func (v *vars) fillAll(parts ...filling) error {
	for _, part := range parts {
		var err error
		if *part.into, err = v.fillString(part.of); err != nil {
			return err
		}
	}
	return nil
}

// fill fills all of a target in at once: whatever fails, all fails.
func (t *generateTarget) fill(v *vars) (f filledTarget, err error) {
	parts := []filling{{&f.apiVersion, t.apiVersion}, {&f.kind, t.kind}, {&f.namespace, t.namespace}, {&f.name, t.name}}
	switch {
	case t.clone != nil:
		parts = append(parts, filling{&f.sourceNamespace, t.clone.namespace}, filling{&f.sourceName, t.clone.name})
	case t.list != nil:
		parts = append(parts, filling{&f.sourceNamespace, t.list.namespace})
		f.kinds = make([]string, len(t.list.kinds))
		for i, kind := range t.list.kinds {
			parts = append(parts, filling{&f.kinds[i], kind})
		}
	}
	if err := v.fillAll(parts...); err != nil {
		return f, err
	}
	if t.data != nil {
		data, err := v.fill(t.data)
		if err != nil {
			return f, err
		}
		f.data = data.Data
	}
	return f, err
}

// within keeps a namespaced policy in its namespace, whatever its variables say.
func (f filledTarget) within(p *policy.Policy, copies bool) error {
	if !p.Namespaced() {
		return nil
	}
	if f.namespace != p.Namespace {
		return fmt.Errorf("the policy of namespace %s cannot generate into the namespace %q", p.Namespace, f.namespace)
	}
	if copies && f.sourceNamespace != p.Namespace {
		return fmt.Errorf("the policy of namespace %s cannot copy from the namespace %q", p.Namespace, f.sourceNamespace)
	}
	return nil
}

// object is the target made of data.
func (f filledTarget) object() (map[string]any, error) {
	data, ok := f.data.(map[string]any)
	if !ok && f.data != nil {
		return nil, fmt.Errorf("the data of a target must be a map, not %s", datum.TypeName(f.data))
	}
	object := copied(data)
	if object == nil {
		object = map[string]any{}
	}
	if kind, _ := object["kind"].(string); kind == "" {
		object["kind"] = f.kind
	}
	object["apiVersion"] = f.apiVersion
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	meta["name"] = f.name
	delete(meta, "namespace")
	if f.namespace != "" {
		meta["namespace"] = f.namespace
	}
	for _, key := range []string{"labels", "annotations"} {
		asTexts(meta[key])
	}
	return object, nil
}

// asTexts makes texts of the numbers and booleans of a map, as of elementIndex: the
// API server takes nothing else for a label.
func asTexts(v any) {
	m, _ := v.(map[string]any)
	for key, value := range m {
		switch value := value.(type) {
		case bool:
			m[key] = strconv.FormatBool(value)
		case int64:
			m[key] = strconv.FormatInt(value, 10)
		case float64:
			m[key] = floatText(value, 'f')
		}
	}
}

// copied is a copy of a map that shares nothing with it.
func copied(m map[string]any) map[string]any {
	c, _ := copiedValue(m).(map[string]any)
	return c
}

func copiedValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = copiedValue(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = copiedValue(item)
		}
		return out
	}
	return v
}
