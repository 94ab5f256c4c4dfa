package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/schema"
)

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
