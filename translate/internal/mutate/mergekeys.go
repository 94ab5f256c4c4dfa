package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/schema"
)

// How Kyverno merges lists is in a table of the built-in kinds of Kubernetes 1.21: the keys of
// those whose elements are told apart, and sets. All other lists are replaced.

// A listMerge is how a list is merged.
type listMerge struct {
	keys   []string
	set    bool
	unique bool // an API server refuses elements of one key, and those without the first
}

// listMergeOf is how Kyverno merges the list at a path of a kind; ok is false where nobody has
// looked that up.
func listMergeOf(kind schema.GVK, path []string) (m listMerge, ok bool) {
	at := strings.Join(path, "/")
	switch {
	case strings.HasPrefix(at, "status/"), !hasMergeTable(kind):
		return m, false
	case strings.HasSuffix(at, "metadata/ownerReferences"):
		return listMerge{keys: []string{"uid"}}, true
	case strings.HasSuffix(at, "metadata/finalizers"):
		return listMerge{set: true}, true
	case kind.Kind == "Service" && at == "spec/ports":
		return listMerge{keys: []string{"port", "protocol"}, unique: true}, true
	case kind.Kind == "ServiceAccount" && at == "secrets":
		return listMerge{keys: []string{"name"}}, true
	}
	if inPod, is := strings.CutPrefix(at, podSpecOf(kind)+"/"); is && podSpecOf(kind) != "" {
		return podListMerge(inPod), true
	}
	return m, true
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

func podListMerge(at string) listMerge {
	first, rest, _ := strings.Cut(at, "/")
	if strings.HasSuffix(first, "ontainers") {
		rest = strings.TrimPrefix(rest, "[]/")
		switch {
		case at == first:
			return listMerge{keys: []string{"name"}, unique: true}
		case rest == "env":
			return listMerge{keys: []string{"name"}}
		case rest == "volumeMounts":
			return listMerge{keys: []string{"mountPath"}, unique: true}
		case rest == "volumeDevices":
			return listMerge{keys: []string{"devicePath"}, unique: true}
		case rest == "ports" && first != "ephemeralContainers":
			return listMerge{keys: []string{"containerPort", "protocol"}}
		}
		return listMerge{}
	}
	switch at {
	case "volumes":
		return listMerge{keys: []string{"name"}, unique: true}
	case "imagePullSecrets":
		return listMerge{keys: []string{"name"}}
	case "hostAliases":
		return listMerge{keys: []string{"ip"}}
	case "topologySpreadConstraints":
		return listMerge{keys: []string{"topologyKey", "whenUnsatisfiable"}, unique: true}
	}
	return listMerge{}
}
