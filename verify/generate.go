package verify

import (
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// A generator makes requests that policies are likely to care for.
type generator struct {
	hints   *hints
	focus   *focus
	schemas *schema.Set
	// shape is what objects of kinds without a schema may look like.
	shape      *schema.Type
	targets    []requestTarget
	named      int // how many of the targets the policy is about; the rest are others
	operations []string
	users      []string
	groups     []string
	namespaces []string
	// accounts are names of service accounts that conditions name, and accountNamespaces theirs.
	accounts          []string
	accountNamespaces []string
	selectors         []*policy.Selector // of namespaces
	selected          []*policy.Selector // of objects
	annotated         []*policy.Selector // of their annotations
	labels            []string           // keys of labels of namespaces that expressions read
	notes             []string           // of their annotations
}

// A requestTarget is a resource, or a subresource of one, that requests are about.
type requestTarget struct {
	resource schema.Resource
	sub      *schema.Subresource
}

func newGenerator(about Subject, schemas *schema.Set) *generator {
	g := &generator{hints: about.hints(), schemas: schemas, focus: &focus{}}
	g.users = []string{"alice", "system:serviceaccount:default:robot", "system:admin"}
	g.groups = []string{"system:authenticated", "dev"}
	g.namespaces = []string{"default", "prod", "kube-system"}
	for _, p := range about.Policies {
		g.policy(p)
	}
	g.shape = g.focus.shape()
	for _, e := range about.Exceptions {
		g.block(e.Match)
	}
	for _, p := range about.Policies {
		if p.Namespaced() {
			g.namespaces = add(g.namespaces, p.Namespace)
		}
	}
	g.named = len(g.targets)
	for _, k := range []string{"Pod", "ConfigMap", "Namespace"} {
		g.kind(k)
	}
	return g
}

// policy has the generator care for what a policy is about.
func (g *generator) policy(p *policy.Policy) {
	for _, r := range p.Rules {
		g.expressions(r)
	}
	for _, r := range policy.Expand(p) {
		g.block(r.Match)
		g.block(r.Exclude)
		for _, m := range mentions(r) {
			g.focus.add(m)
		}
	}
	g.conditionValues(p.Source)
	for _, name := range append(slices.Clip(g.accounts), "robot") {
		for _, namespace := range append(slices.Clip(g.accountNamespaces), "default") {
			g.subject(policy.Subject{Kind: "ServiceAccount", Name: name, Namespace: namespace})
		}
	}
	switch {
	case p.Validating != nil:
		var asked []policy.CEL
		for _, v := range p.Validating.Validations {
			asked = append(asked, policy.CEL{Expression: v.Expression})
		}
		g.expressed(p.Validating.MatchConstraints, p.Validating.Variables, append(asked, p.Validating.MatchConditions...))
	case p.Mutating != nil:
		var asked []policy.CEL
		for _, m := range p.Mutating.Mutations {
			asked = append(asked, policy.CEL{Expression: m.Expression})
		}
		g.expressed(p.Mutating.MatchConstraints, p.Mutating.Variables, append(asked, p.Mutating.MatchConditions...))
	}
}

func (g *generator) block(b *policy.MatchBlock) {
	if b == nil {
		return
	}
	filters := append(slices.Clone(b.Any), b.All...)
	if b.Legacy != nil {
		filters = append(filters, b.Legacy)
	}
	for _, f := range filters {
		for _, k := range f.Kinds {
			g.kind(k.Value)
		}
		for _, n := range f.Namespaces {
			g.namespace(n.Value)
		}
		g.selector(f.NamespaceSelector)
		g.selectObjects(f.Selector)
		g.annotated = append(g.annotated, &policy.Selector{MatchLabels: f.Annotations})
		for _, op := range f.Operations {
			g.operations = add(g.operations, op)
		}
		for _, s := range f.Subjects {
			g.subject(s)
		}
	}
}

// namespace adds the namespaces that a pattern may stand for.
func (g *generator) namespace(pattern string) {
	for _, s := range instances(pattern) {
		if objectName.MatchString(s) {
			g.namespaces = add(g.namespaces, s)
		}
	}
}

// conditionValues adds the users, groups and namespaces that conditions compare those of the
// request with:
//
//	key: "{{ request.userInfo.groups }}"
//	operator: AnyIn
//	value: [platform-admins]
func (g *generator) conditionValues(n *policy.Node) {
	if n == nil {
		return
	}
	if key := n.Get("key"); key != nil {
		for _, of := range []struct {
			path string
			add  func(string)
		}{
			{"userInfo.groups", func(s string) { g.subject(policy.Subject{Kind: "Group", Name: s}) }},
			{"userInfo.username", func(s string) { g.subject(policy.Subject{Kind: "User", Name: s}) }},
			{"serviceAccountName", func(s string) { g.accounts = add(g.accounts, s) }},
			{"serviceAccountNamespace", func(s string) { g.accountNamespaces = add(g.accountNamespaces, s) }},
			{"request.namespace", g.namespace},
		} {
			if strings.Contains(key.Str, of.path) {
				eachText(n.Get("value"), of.add)
			}
		}
	}
	for _, f := range n.Fields {
		g.conditionValues(f.Value)
	}
	for _, item := range n.Items {
		g.conditionValues(item)
	}
}

// eachText visits a text, or those of a list.
func eachText(value *policy.Node, visit func(string)) {
	switch {
	case value == nil:
	case value.Kind == policy.List:
		for _, item := range value.Items {
			eachText(item, visit)
		}
	case value.Str != "":
		visit(value.Str)
	}
}

func (g *generator) subject(s policy.Subject) {
	for _, name := range instances(s.Name) {
		switch s.Kind {
		case "Group":
			g.groups = add(g.groups, name)
		case "ServiceAccount":
			for _, ns := range instances(s.Namespace) {
				g.users = add(g.users, "system:serviceaccount:"+ns+":"+name)
			}
		default:
			if name != "" {
				g.users = add(g.users, name)
			}
		}
	}
}

// kind adds the resources that a kind selector may mean. It need not read
// selectors right: what it misses or adds changes only what is tried.
func (g *generator) kind(selector string) {
	g.subresources(selector)
	for _, part := range strings.FieldsFunc(selector, func(r rune) bool { return r == '/' || r == '.' }) {
		if strings.ToLower(part) == part {
			continue
		}
		resources := g.schemas.Resources("*", "*", part)
		if published := g.schemas.Published("*", "*", part); len(published) > 0 && resources[0].Guessed {
			resources = published
		}
		for i, r := range resources {
			if i >= 8 || r.Guessed && strings.ContainsAny(part, "*?") {
				break
			}
			if r.Guessed {
				r.GVK = guessedKind(selector, part)
			}
			g.target(requestTarget{resource: r})
			for _, sub := range r.Subresources {
				if strings.Contains(selector, sub.Name) || part == "Pod" && sub.Name == "ephemeralcontainers" {
					g.target(requestTarget{resource: r, sub: &sub})
				}
			}
		}
	}
}

// subresources adds some of the subresources that a selector with a wildcard for the kind
// means, as apps/v1/*/scale does.
func (g *generator) subresources(selector string) {
	k, ok := policy.ParseKind(selector)
	if !ok || k.Subresource == "" || !strings.ContainsAny(k.Kind, "*?") {
		return
	}
	n := 0
	for _, r := range g.schemas.Resources(k.Group, k.Version, k.Kind) {
		for _, sub := range r.Subresources {
			if n < 8 && (k.Subresource == "*" || k.Subresource == sub.Name) {
				g.target(requestTarget{resource: r, sub: &sub})
				n++
			}
		}
	}
}

// guessedKind is the kind that a selector names of a resource that is not known.
func guessedKind(selector, kind string) schema.GVK {
	gvk := schema.GVK{Group: "x.io", Version: "v1", Kind: kind}
	before, _, _ := strings.Cut(selector, kind)
	parts := strings.Split(strings.Trim(before, "/"), "/")
	if len(parts) == 2 && !strings.ContainsAny(before, "*?") {
		gvk.Group, gvk.Version = parts[0], parts[1]
	}
	return gvk
}

func (g *generator) target(t requestTarget) {
	for _, have := range g.targets {
		if have.resource.GVK == t.resource.GVK && (have.sub == nil) == (t.sub == nil) && (t.sub == nil || *have.sub == *t.sub) {
			return
		}
	}
	g.targets = append(g.targets, t)
}

// request makes a request.
func (g *generator) request(c *choice) *Request {
	t := g.targets[0]
	switch kind := c.of(20); {
	case kind == 19:
		t = one(c, g.targets...)
	case kind >= 9 && g.named > 1:
		t = one(c, g.targets[:g.named]...)
	}
	r := &Request{
		Group: t.resource.Group, Version: t.resource.Version, Resource: t.resource.Plural, Kind: t.resource.GVK,
		Operation: g.operation(c, t),
		User:      one(c, g.users...),
		DryRun:    c.of(30) == 29,
		world:     c.of(worlds),
	}
	for _, group := range g.groups {
		if c.of(2) == 0 {
			r.Groups = append(r.Groups, group)
		}
	}
	if t.sub != nil {
		r.Subresource = t.sub.Name
		r.Kind = t.sub.GVK
	}
	g.place(c, t, r)
	g.objects(c, r)
	return r
}

func (g *generator) operation(c *choice, t requestTarget) string {
	if t.sub != nil {
		switch t.sub.Name {
		case "exec", "attach", "portforward", "proxy":
			return "CONNECT"
		case "binding", "eviction", "token":
			return "CREATE"
		}
		return "UPDATE"
	}
	return one(c, "CREATE", "CREATE", "UPDATE", "UPDATE", "DELETE")
}

// place gives the request a name and, where it has one, a namespace.
func (g *generator) place(c *choice, t requestTarget, r *Request) {
	r.Name = one(c, g.hints.all.names...)
	switch {
	case t.resource.Group == "" && t.resource.Kind == "Namespace":
		r.Name = one(c, append(slices.Clone(g.namespaces), g.hints.all.names...)...)
		r.Namespace = r.Name
	case t.resource.Namespaced:
		r.Namespace = one(c, g.namespaces...)
		if c.percent(5) {
			r.Namespace = one(c, g.hints.all.names...)
		}
	default:
		return
	}
	r.NamespaceLabels = g.namespaceLabels(c)
	r.NamespaceLabels[namespaceName] = r.Namespace
	r.NamespaceAnnotations = g.namespaceAnnotations(c)
}

// objects gives the request what its operation has.
func (g *generator) objects(c *choice, r *Request) {
	if r.Operation == "CONNECT" {
		r.Object = g.connection(c, r.Kind)
		return
	}
	first := g.object(c, r)
	switch r.Operation {
	case "DELETE":
		r.OldObject = first
		return
	case "UPDATE":
		r.OldObject = first
		switch other := g.object(c, r); c.of(5) {
		case 0:
			r.OldObject = other
		case 1:
			// no change
		default:
			r.OldObject = cross(c, first, other, 3)
		}
	}
	r.Object = first
	if r.Operation == "CREATE" && c.percent(3) {
		r.Name = "" // as for an object with generateName
	}
}

// connection is what a connection is made with. An API server always has the command of an exec.
func (g *generator) connection(c *choice, kind schema.GVK) map[string]any {
	out := map[string]any{"apiVersion": kind.APIVersion(), "kind": kind.Kind}
	if kind.Kind != "PodExecOptions" {
		return out
	}
	m := &maker{choice: c, hints: g.hints}
	command := []any{m.text("command")}
	for range c.of(3) {
		command = append(command, m.text("command"))
	}
	out["command"] = command
	return out
}

// cross is a with some parts as in b.
func cross(c *choice, a, b map[string]any, depth int) map[string]any {
	out := maps.Clone(a)
	for _, key := range sortedKeys(b) {
		if key == "apiVersion" || key == "kind" {
			continue
		}
		x, ok1 := a[key].(map[string]any)
		y, ok2 := b[key].(map[string]any)
		switch {
		case ok1 && ok2 && depth > 0:
			out[key] = cross(c, x, y, depth-1)
		case key != "name" && key != "namespace" && c.of(3) == 2:
			out[key] = b[key]
		}
	}
	return out
}

// object makes an object of the target's kind in the form that the API server
// has it in. Where what was made does not fit, a plainer one takes its place.
func (g *generator) object(c *choice, r *Request) map[string]any {
	typ := g.schemas.Type(r.Kind)
	loose := typ == nil
	if loose {
		typ = g.shape
	}
	for attempt := range 3 {
		m := &maker{choice: c, hints: g.hints, loose: loose, left: 120}
		if attempt == 2 {
			m.choice = replay(nil)
		}
		out := map[string]any{}
		if typ.Kind == schema.Object {
			shape := *typ
			shape.Fields = maps.Clone(typ.Fields)
			for _, name := range []string{"apiVersion", "kind", "metadata"} {
				delete(shape.Fields, name)
			}
			shape.Open = false
			out = m.object(&shape, g.focus, 0)
		}
		out["apiVersion"], out["kind"] = r.Kind.APIVersion(), r.Kind.Kind
		meta := m.metadata(g.schemas.ObjectMeta(), g.focus.at("metadata"), r)
		m.has(meta, "labels", g.selected)
		m.has(meta, "annotations", g.annotated)
		out["metadata"] = meta
		out, err := apiserver.Canonical(out, apischema.GroupVersionKind(r.Kind))
		if err == nil && (loose || typ.Missing(out) == "") {
			return out
		}
	}
	return map[string]any{"apiVersion": r.Kind.APIVersion(), "kind": r.Kind.Kind, "metadata": map[string]any{"name": r.Name, "namespace": r.Namespace}}
}

// metadata is what every stored object has, whatever its schema: labels and
// annotations are texts and their keys are valid.
func (m *maker) metadata(typ *schema.Type, f *focus, r *Request) map[string]any {
	loose := m.loose
	m.loose = false
	defer func() { m.loose = loose }()
	out := m.object(typ, f, 1)
	for _, name := range []string{"name", "namespace", "managedFields"} {
		delete(out, name)
	}
	out["name"] = r.Name
	if r.Namespace != "" && (r.Resource != "namespaces" || r.Group != "") {
		out["namespace"] = r.Namespace
	}
	return out
}

// has has metadata meet selectors of labels, or of annotations.
func (m *maker) has(meta map[string]any, name string, selectors []*policy.Selector) {
	values, _ := meta[name].(map[string]any)
	m.meet(selectors, func(key, value string) {
		if values == nil {
			values = map[string]any{}
			meta[name] = values
		}
		values[key] = value
	}, func(key string) { delete(values, key) })
}
