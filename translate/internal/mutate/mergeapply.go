package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
)

// An apply configuration says what a patch changes where the API server merges each part of
// it: no list or map is atomic, and nothing goes away. Of a list with a key it has all
// elements, those that Kyverno puts in front first, for the order is that of the configuration:
//
//	containers: [Object.spec.containers{name: "a", tty: true}] +
//	  object.spec.containers.filter(c, c.name != "a").map(c, Object.spec.containers{name: c.name})

// mutations are the mutations that make edits.
func (m *merging) mutations(edits []edit, n *policy.Node) []mutating.Mutation {
	if m.canMerge() && m.canApply(edits) {
		return []mutating.Mutation{{Pos: n.Pos, Type: mutating.ApplyConfiguration, Expr: cel.Struct("Object", m.structFields(edits, "Object")...)}}
	}
	return m.asOperations(edits, n.Pos)
}

// canMerge tells whether the API server merges an apply configuration into each object of the
// kind. It does not where an element of a list lacks what tells it apart, as the secrets of a
// ServiceAccount may lack their names, whether or not the patch is about the list.
func (m *merging) canMerge() bool {
	return m.Opts.Merging != nil && !slices.ContainsFunc(m.Opts.Merging.Keyed(m.kind.Group, m.kind.Version, m.kind.Kind), func(list mutating.KeyedList) bool {
		at := m.Object.V
		for _, step := range list.Path {
			if at = at.Settled(); step == mutating.Element {
				at = read.PlaceOf(at.Expr, at.Elem())
			} else {
				at = at.Field(step)
			}
		}
		element := read.PlaceOf(at.Expr, at.Elem())
		return !at.Never && slices.ContainsFunc(list.Keys, func(key string) bool { return !element.Field(key).Certain() })
	})
}

// canApply tells whether an apply configuration can make edits.
func (m *merging) canApply(edits []edit) bool {
	for _, e := range edits {
		how := m.Opts.Merging.Of(m.kind.Group, m.kind.Version, m.kind.Kind, e.path)
		switch {
		case !how.Known || how.Atomic || e.remove || !e.key.IsZero():
			return false
		case e.list != nil:
			elem := m.Opts.Merging.Of(m.kind.Group, m.kind.Version, m.kind.Kind, append(slices.Clone(e.path), mutating.Element))
			if len(how.Keys) != 1 || how.Keys[0] != e.list.key || elem.Atomic || !read.PlaceOf(e.at.Expr, e.at.Elem()).Field(e.list.key).Certain() {
				return false
			}
			for _, item := range e.list.items {
				if !m.canApply(item.fields) {
					return false
				}
			}
		case e.value != nil && !m.mergesValue(e.value, e.path):
			return false
		case !m.canApply(e.fields):
			return false
		}
	}
	return true
}

// mergesValue tells whether an apply configuration can have a value at a path.
func (m *merging) mergesValue(n *policy.Node, path []string) bool {
	if how := m.Opts.Merging.Of(m.kind.Group, m.kind.Version, m.kind.Kind, path); !how.Known || how.Atomic {
		return false
	}
	for _, f := range n.Fields {
		if !m.mergesValue(f.Value, append(slices.Clone(path), f.Key)) {
			return false
		}
	}
	for _, item := range n.Items {
		if !m.mergesValue(item, append(slices.Clone(path), mutating.Element)) {
			return false
		}
	}
	return true
}

// structFields are edits as the fields of an Object of a type.
func (m *merging) structFields(edits []edit, typ string) (out []cel.StructField) {
	for _, e := range edits {
		value, optional := m.applied(e, typ+"."+e.name)
		if optional {
			value = cel.Maybe(value)
		}
		out = append(out, cel.StructField{Name: e.name, Value: value})
	}
	return out
}

// applied is what an edit makes of a field; optional tells of a value that may be none.
func (m *merging) applied(e edit, typ string) (value cel.Value, optional bool) {
	guard := e.guard
	if e.isAdded() {
		guard = both(guard, e.when)
	}
	value = m.appliedAlways(e, typ)
	if guard.IsZero() {
		return value, false
	}
	return cel.Cond(guard, cel.Func(cel.FuncOptionalOf, value), cel.Func(cel.FuncOptionalNone)), true
}

// isAdded tells of a value that is left out where it is there already.
func (e edit) isAdded() bool {
	if e.list != nil || e.fields != nil || e.when.IsTrue() {
		return false
	}
	_, short := e.at.OrElse(cel.Null())
	return e.set.IsZero() || !short
}

func (m *merging) appliedAlways(e edit, typ string) cel.Value {
	switch {
	case e.list != nil:
		return m.appliedList(e, typ)
	case e.fields != nil && e.at.Kind() == schema.Map:
		return cel.Map(m.entries(e.fields)...)
	case e.fields != nil:
		return cel.Struct(typ, m.structFields(e.fields, typ)...)
	case !e.when.IsTrue() && !e.isAdded():
		kept, _ := e.at.OrElse(e.set)
		return kept
	case !e.set.IsZero():
		return e.set
	case !e.struck.IsZero():
		return e.struck
	}
	return written(m.Lowering, e.value, e.at.Typ, typ)
}

// entries are edits as entries of a map. Where one keeps what is there, its type is not known.
func (m *merging) entries(edits []edit) (out []cel.Entry) {
	mixed := slices.ContainsFunc(edits, func(e edit) bool { return !e.when.IsTrue() }) && len(edits) > 1
	sure := true // that all entries are there
	for _, e := range edits {
		if mixed && e.when.IsTrue() && e.set.IsText() {
			e.set = read.Dyn(e.set)
		}
		key := cel.String(e.name)
		value, optional := m.applied(e, "")
		if optional {
			key = cel.Maybe(key)
		}
		out = append(out, cel.Entry{Key: key, Value: value})
		sure = sure && !optional
	}
	if m.Trigger != nil && !mixed && sure { // what is read of the trigger is of a type that nobody knows
		values := make([]cel.Value, len(out))
		for i, entry := range out {
			values[i] = entry.Value
		}
		for i, value := range sameTyped(values) {
			out[i].Value = value
		}
	}
	return out
}

// appliedList are all elements of a list, those in front that the patch is about.
func (m *merging) appliedList(e edit, typ string) cel.Value {
	source := read.ListOf{V: e.at}.Source(false)
	key := e.list.key
	same := func(x cel.Value) cel.Value {
		return cel.Struct(typ, cel.StructField{Name: key, Value: x.Field(key)})
	}
	// A configuration may not have two elements of one key, which an object may have.
	single := func(cel.Value) cel.Bool { return cel.True() }
	if how, _ := listMergeOf(m.kind, e.path); !how.Unique {
		single = func(x cel.Value) cel.Bool {
			other, release := m.Binders.Bind("other")
			defer release()
			return source.Macro(cel.MacroExistsOne, other, other.Field(key).Eq(x.Field(key)).Value).AsBool()
		}
	}
	if len(e.list.items) > 1 && !e.list.items[0].x.IsZero() {
		return m.appliedTemplates(e, source, typ)
	}
	var ids, front []cel.Value
	for _, item := range e.list.items {
		if !item.x.IsZero() {
			all := append([]cel.StructField{{Name: key, Value: item.x.Field(key)}}, m.structFields(item.fields, typ)...)
			alone := single(item.x)
			filtered := func(is cel.Bool) cel.Value {
				if is = cel.And(is, alone); is.IsTrue() {
					return source
				}
				return source.Macro(cel.MacroFilter, item.x, is.Value)
			}
			chosen := filtered(item.chosen)
			out := chosen.Macro(cel.MacroMap, item.x, cel.Struct(typ, all...))
			if item.chosen.IsTrue() {
				return out
			}
			return out.Plus(filtered(cel.Not(item.chosen)).Macro(cel.MacroMap, item.x, same(item.x)))
		}
		ids = append(ids, item.id)
		front = append(front, cel.Struct(typ, append([]cel.StructField{{Name: key, Value: item.id}}, m.structFields(item.fields, typ)...)...))
	}
	rest := m.Binders.Filter(source, read.Singular(e.name), func(x cel.Value) cel.Bool {
		if len(ids) == 1 {
			return cel.And(x.Field(key).Ne(ids[0]), single(x))
		}
		return cel.And(cel.Not(x.Field(key).In(cel.List(ids...))), single(x))
	})
	return cel.List(front...).Plus(m.Binders.Map(rest, read.Singular(e.name), same))
}

// appliedTemplates are all elements of a list that templates of several rules are about, which
// are of no two the same fields. Each rule has those that it changes come to the front.
func (m *merging) appliedTemplates(e edit, source cel.Value, typ string) cel.Value {
	list, x := cel.List(source), e.list.items[0].x
	var fields []edit
	for i, item := range e.list.items {
		if front := item.front(); !front.IsTrue() && (i == 0 || !cel.Equal(front.Value, e.list.items[i-1].front().Value)) {
			all, release := m.Binders.Bind(e.name)
			list = list.Macro(cel.MacroMap, all, all.Macro(cel.MacroFilter, x, front.Value).Plus(all.Macro(cel.MacroFilter, x, cel.Not(front).Value)))
			release()
		}
		fields, _ = joined(fields, item.guarded())
	}
	if cel.Equal(list, cel.List(source)) {
		list = source
	} else {
		list = list.Index(cel.Int(0))
	}
	all := append([]cel.StructField{{Name: e.list.key, Value: x.Field(e.list.key)}}, m.structFields(fields, typ)...)
	return list.Macro(cel.MacroMap, x, cel.Struct(typ, all...))
}

// Where an apply configuration says most of a patch, and an atomic list or map in it nothing can
// but a JSON patch, one mutation of each kind says it in fewer words than a JSON patch of all:
//
//	containers:
//	- (name): "*"
//	  securityContext:
//	    privileged: false          the apply configuration
//	    capabilities: {drop: [ALL]}  the JSON patch behind it
//
// The second sees what the first made. It is made only where that is the same to it: nothing that
// it reads or asks is what the first writes, and no element moves.

// parts are the mutations that make edits in two steps, where these are shorter than whole; none
// where they are not.
func (m *merging) parts(edits []edit, n *policy.Node, whole []mutating.Mutation) []mutating.Mutation {
	if !m.canMerge() || len(whole) != 1 || whole[0].Type != mutating.JSONPatch {
		return nil
	}
	first, second := m.split(edits)
	if len(first) == 0 || len(second) == 0 || moves(first) || moves(second) || m.meet(first, second) {
		return nil
	}
	behind := *m
	behind.given = m.makes(first)
	out := slices.Concat(m.mutations(first, n), behind.mutations(second, n))
	if len(out) != 2 || length(out)+secondMutation > length(whole) {
		return nil
	}
	return out
}

// secondMutation is what another mutation is worth, in characters.
const secondMutation = 60

func length(mutations []mutating.Mutation) (n int) {
	for _, m := range mutations {
		n += len(m.Expr.Short().String())
	}
	return n
}

// split parts edits into those that an apply configuration makes, and the others.
func (m *merging) split(edits []edit) (first, second []edit) {
	for _, e := range edits {
		how := m.Opts.Merging.Of(m.kind.Group, m.kind.Version, m.kind.Kind, e.path)
		a, b := e, e
		switch {
		case m.canApply([]edit{e}):
			first = append(first, e)
			continue
		case e.fields != nil && how.Known && !how.Atomic && e.key.IsZero():
			a.fields, b.fields = m.split(e.fields)
		case e.list != nil && m.canApply([]edit{e.withItems(func(itemEdit) []edit { return nil })}):
			a = e.withItems(func(i itemEdit) []edit { f, _ := m.split(i.fields); return f })
			b = e.withItems(func(i itemEdit) []edit { _, s := m.split(i.fields); return s })
		default:
			second = append(second, e)
			continue
		}
		if a.changes() {
			first = append(first, a)
		}
		if b.changes() {
			second = append(second, b)
		}
	}
	return first, second
}

// makes are the paths of maps that edits write something into, and make if they have to.
func (m *merging) makes(edits []edit) (out [][]string) {
	for _, e := range edits {
		if e.list != nil {
			for _, item := range e.list.items {
				out = append(out, m.makes(item.fields)...)
			}
		}
		if slices.ContainsFunc(e.fields, edit.isSet) {
			out = append(out, e.path)
		}
		out = append(out, m.makes(e.fields)...)
	}
	return out
}

// isSet tells of an edit that leaves something, whatever was there.
func (e edit) isSet() bool {
	if e.fields != nil {
		return slices.ContainsFunc(e.fields, edit.isSet)
	}
	return e.list == nil && !e.remove && e.when.IsTrue()
}

// withItems is an edit of a list with other edits of its elements.
func (e edit) withItems(fields func(itemEdit) []edit) edit {
	list := *e.list
	list.items = slices.Clone(list.items)
	for i := range list.items {
		list.items[i].fields = fields(list.items[i])
	}
	e.list = &list
	return e
}

// changes tells of an edit of fields, or of elements, that has some.
func (e edit) changes() bool {
	if e.list != nil {
		return slices.ContainsFunc(e.list.items, func(i itemEdit) bool { return len(i.fields) > 0 })
	}
	return len(e.fields) > 0
}

// moves tells of edits that write elements, or some of a list, which come to its front.
func moves(edits []edit) bool {
	return slices.ContainsFunc(edits, func(e edit) bool {
		return moves(e.fields) || e.list != nil && slices.ContainsFunc(e.list.items, func(i itemEdit) bool {
			return i.x.IsZero() || !i.chosen.IsTrue() || moves(i.fields)
		})
	})
}

// meet tells that what some edits write decides about others.
func (m *merging) meet(first, second []edit) bool {
	before, behind := m.effectOf(first, nil), m.effectOf(second, nil)
	return slices.ContainsFunc(behind.reads, func(r placedValue) bool { return r.meets(before.writes, map[string]cel.Value{}) }) ||
		slices.ContainsFunc(behind.writes, func(path []string) bool { return meets(path, before.writes) })
}

// How Kyverno merges lists is in a table of the built-in kinds of Kubernetes 1.21: the keys of
// those whose elements are told apart, and sets. All other lists are replaced.

// listMergeOf is how Kyverno merges the list at a path of a kind, the zero KeyedList for one that
// it replaces; ok is false where nobody has looked that up.
func listMergeOf(kind schema.GVK, path []string) (m mutating.KeyedList, ok bool) {
	if path[0] == "status" || !hasMergeTable(kind) {
		return m, false
	}
	if i := slices.Index(path, "metadata"); i >= 0 { // of what is within the object, too
		path = path[i:]
	}
	for _, list := range keyedLists(kind) {
		if slices.Equal(list.Path, path) {
			return list, true
		}
	}
	return m, true
}

// keyedLists are the lists of a kind of whose elements Kyverno keeps one of each key.
func keyedLists(kind schema.GVK) (out []mutating.KeyedList) {
	if !slices.Contains(mergedGroups(), kind.Group) {
		return nil
	}
	add := func(unique bool, path string, keys ...string) {
		out = append(out, mutating.KeyedList{Path: strings.Split(path, "/"), Keys: keys, Unique: unique})
	}
	metadata := func(above string) {
		add(false, above+"metadata/finalizers")
		add(false, above+"metadata/ownerReferences", "uid")
	}
	metadata("")
	add(false, "status/conditions", "type")
	switch kind.Kind {
	case "Pod":
		add(false, "status/podIPs", "ip")
	case "Node":
		add(false, "spec/podCIDRs")
		add(false, "status/addresses", "type")
	case "Service":
		add(true, "spec/ports", "port", "protocol")
	case "ServiceAccount":
		add(false, "secrets", "name")
	case "ComponentStatus":
		add(false, "conditions", "type")
	case "CSINode":
		add(true, "spec/drivers", "name")
	}
	at := podSpecOf(kind)
	if kind.Kind == "PodTemplate" {
		at = "template/spec"
	}
	if at == "" {
		return out
	}
	if template, ok := strings.CutSuffix(at, "/spec"); ok {
		metadata(template + "/")
	}
	if kind.Kind == "CronJob" {
		metadata("spec/jobTemplate/")
	}
	add(true, at+"/volumes", "name")
	add(false, at+"/imagePullSecrets", "name")
	add(false, at+"/hostAliases", "ip")
	add(true, at+"/topologySpreadConstraints", "topologyKey", "whenUnsatisfiable")
	for _, containers := range []string{"containers", "initContainers", "ephemeralContainers"} {
		add(true, at+"/"+containers, "name")
		container := at + "/" + containers + "/" + mutating.Element
		add(false, container+"/env", "name")
		add(true, container+"/volumeMounts", "mountPath")
		add(true, container+"/volumeDevices", "devicePath")
		if containers != "ephemeralContainers" {
			add(false, container+"/ports", "containerPort", "protocol")
		}
	}
	return out
}

// mergedGroups are the groups whose kinds Kyverno's table may have. That it has not all of
// their kinds and versions takes nothing from what is told.
func mergedGroups() []string {
	return strings.Split(",apps,batch,autoscaling,policy,extensions,networking.k8s.io,rbac.authorization.k8s.io,admissionregistration.k8s.io,"+
		"apiextensions.k8s.io,apiregistration.k8s.io,storage.k8s.io,scheduling.k8s.io,coordination.k8s.io,node.k8s.io,discovery.k8s.io,events.k8s.io,"+
		"certificates.k8s.io,flowcontrol.apiserver.k8s.io", ",")
}

// hasMergeTable tells of the kinds that are in the table, and of which the lists are known.
func hasMergeTable(kind schema.GVK) bool {
	kinds := map[schema.GVK]string{
		{Version: "v1"}:                                     "ConfigMap LimitRange Namespace PersistentVolume PersistentVolumeClaim Pod ReplicationController ResourceQuota Secret Service ServiceAccount",
		{Group: "apps", Version: "v1"}:                      "DaemonSet Deployment ReplicaSet StatefulSet",
		{Group: "batch", Version: "v1"}:                     "CronJob Job",
		{Group: "networking.k8s.io", Version: "v1"}:         "Ingress IngressClass NetworkPolicy",
		{Group: "policy", Version: "v1"}:                    "PodDisruptionBudget",
		{Group: "rbac.authorization.k8s.io", Version: "v1"}: "ClusterRole ClusterRoleBinding Role RoleBinding",
	}
	return slices.Contains(strings.Fields(kinds[schema.GVK{Group: kind.Group, Version: kind.Version}]), kind.Kind)
}

// podSpecOf is where a kind has the spec of a Pod; "" for nowhere.
func podSpecOf(kind schema.GVK) string {
	switch kind.Kind {
	case "Pod":
		return "spec"
	case "CronJob":
		return "spec/jobTemplate/spec/template/spec"
	case "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet":
		return "spec/template/spec"
	}
	return ""
}
