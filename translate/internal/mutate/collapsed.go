package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// Kyverno's merge goes through all of the object: in each list that it knows a key of, it keeps
// the last of the elements that have the same key, whether or not the patch names the list, and
// whether or not its conditions hold. Natively only what the patch says is changed, and no
// expression of a readable length would take such elements away everywhere. So they stay, and
// the rule is told of.

// merges tells of a rule with a patchStrategicMerge.
func merges(m *policy.Mutate) bool {
	return m.Merge != nil || slices.ContainsFunc(m.ForEach, func(f *policy.MutateForEach) bool { return f.Merge != nil })
}

// noteCollapsed tells of the lists in which Kyverno keeps one element of each key.
func noteCollapsed(l *read.Lowering, targets []native.Target) {
	if l.Rule.Expansion != "" || !merges(l.Rule.Mutate) { // what is expanded has the lists of its Pods
		return
	}
	var names []string
	for _, t := range targets {
		for _, list := range collapsedLists(t.GVK) {
			if name := list.Path[len(list.Path)-1]; !list.Unique && list.Path[0] != "status" {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	l.SetPos(l.Rule.Pos)
	l.Note(diag.ElementsOfOneKey, "of elements of the object that have the same key in a list (%s), Kyverno keeps the last, whether or not the patch names the list; natively all stay",
		strings.Join(slices.Compact(names), ", "))
}

// collapsedLists are the lists of a kind in which Kyverno keeps one element of each key.
func collapsedLists(kind schema.GVK) (out []mutating.KeyedList) {
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
	lists := []string{"volumes", "imagePullSecrets", "hostAliases", "topologySpreadConstraints"}
	for _, containers := range []string{"containers", "initContainers", "ephemeralContainers"} {
		lists = append(lists, containers)
		for _, inner := range []string{"env", "volumeMounts", "volumeDevices", "ports"} {
			lists = append(lists, containers+"/"+mutating.Element+"/"+inner)
		}
	}
	for _, list := range lists {
		if how := podListMerge(list); len(how.keys) > 0 {
			add(how.unique, at+"/"+list, how.keys...)
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
