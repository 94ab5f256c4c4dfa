package merge

import (
	"slices"
	"strings"
)

// The table is that of Kubernetes 1.21, which Kyverno's merge has built in. Kinds
// and versions that came later are no built-in kinds to it.

// builtin is the shape of a built-in kind; nil for any other.
func builtin(apiVersion, kind string) *mergeSchema {
	if !slices.Contains(strings.Fields(kindsOf(apiVersion)), kind) {
		return nil
	}
	fields := map[string]*mergeSchema{"metadata": metadata()}
	if kind != "HorizontalPodAutoscaler" {
		fields["status"] = mapSchema("conditions", keyed(nil, "type"))
	}
	switch kind {
	case "Pod":
		fields["spec"] = podSpec()
		fields["status"] = mapSchema("conditions", keyed(nil, "type"), "podIPs", keyed(nil, "ip"))
	case "PodTemplate":
		fields["template"] = podTemplate()
	case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job":
		fields["spec"] = mapSchema("template", podTemplate())
	case "CronJob":
		job := mapSchema("template", podTemplate())
		fields["spec"] = mapSchema("jobTemplate", mapSchema("metadata", metadata(), "spec", job))
	case "Service":
		fields["spec"] = mapSchema("ports", keyed(nil, "port", "protocol"))
	case "ServiceAccount":
		fields["secrets"] = keyed(nil, "name")
	case "Node":
		fields["spec"] = mapSchema("podCIDRs", &mergeSchema{set: true})
		fields["status"] = mapSchema("conditions", keyed(nil, "type"), "addresses", keyed(nil, "type"))
	case "ComponentStatus":
		fields["conditions"] = keyed(nil, "type")
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		fields["webhooks"] = keyed(nil, "name")
	case "CSINode":
		fields["spec"] = mapSchema("drivers", keyed(nil, "name"))
	}
	return &mergeSchema{fields: fields}
}

// mapSchema is the shape of a map, of keys and the shapes of their values.
func mapSchema(pairs ...any) *mergeSchema {
	s := &mergeSchema{fields: make(map[string]*mergeSchema, len(pairs)/2)}
	for i := 0; i < len(pairs); i += 2 {
		s.fields[pairs[i].(string)] = pairs[i+1].(*mergeSchema)
	}
	return s
}

// keyed is the shape of a list whose elements are told apart by keys.
func keyed(element *mergeSchema, keys ...string) *mergeSchema {
	return &mergeSchema{keys: keys, element: element}
}

func metadata() *mergeSchema {
	return mapSchema("ownerReferences", keyed(nil, "uid"), "finalizers", &mergeSchema{set: true})
}

func podTemplate() *mergeSchema { return mapSchema("metadata", metadata(), "spec", podSpec()) }

func podSpec() *mergeSchema {
	ephemeral := container()
	delete(ephemeral.fields, "ports")
	return mapSchema(
		"containers", keyed(container(), "name"),
		"initContainers", keyed(container(), "name"),
		"ephemeralContainers", keyed(ephemeral, "name"),
		"volumes", keyed(nil, "name"),
		"imagePullSecrets", keyed(nil, "name"),
		"hostAliases", keyed(nil, "ip"),
		"topologySpreadConstraints", keyed(nil, "topologyKey", "whenUnsatisfiable"),
	)
}

func container() *mergeSchema {
	return mapSchema(
		"env", keyed(nil, "name"),
		"ports", keyed(nil, "containerPort", "protocol"),
		"volumeMounts", keyed(nil, "mountPath"),
		"volumeDevices", keyed(nil, "devicePath"),
	)
}

// kindsOf names the kinds of a group and version.
func kindsOf(apiVersion string) string {
	switch apiVersion {
	case "v1":
		return "Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim" +
			" Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount"
	case "apps/v1":
		return "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"
	case "batch/v1":
		return "CronJob Job"
	case "batch/v1beta1":
		return "CronJob"
	case "autoscaling/v1", "autoscaling/v2beta1", "autoscaling/v2beta2":
		return "HorizontalPodAutoscaler"
	case "policy/v1":
		return "PodDisruptionBudget"
	case "policy/v1beta1":
		return "Eviction PodDisruptionBudget PodSecurityPolicy"
	case "extensions/v1beta1":
		return "Ingress"
	case "networking.k8s.io/v1":
		return "Ingress IngressClass NetworkPolicy"
	case "networking.k8s.io/v1beta1":
		return "Ingress IngressClass"
	case "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1alpha1":
		return "ClusterRole ClusterRoleBinding Role RoleBinding"
	case "admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1":
		return "MutatingWebhookConfiguration ValidatingWebhookConfiguration"
	case "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1":
		return "CustomResourceDefinition"
	case "apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1beta1":
		return "APIService"
	}
	return lesserKinds(apiVersion)
}

func lesserKinds(apiVersion string) string {
	switch apiVersion {
	case "storage.k8s.io/v1":
		return "CSIDriver CSINode StorageClass VolumeAttachment"
	case "storage.k8s.io/v1beta1":
		return "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment"
	case "storage.k8s.io/v1alpha1":
		return "CSIStorageCapacity VolumeAttachment"
	case "scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha1":
		return "PriorityClass"
	case "coordination.k8s.io/v1", "coordination.k8s.io/v1beta1":
		return "Lease"
	case "node.k8s.io/v1", "node.k8s.io/v1beta1", "node.k8s.io/v1alpha1":
		return "RuntimeClass"
	case "discovery.k8s.io/v1", "discovery.k8s.io/v1beta1":
		return "EndpointSlice"
	case "events.k8s.io/v1", "events.k8s.io/v1beta1":
		return "Event"
	case "certificates.k8s.io/v1", "certificates.k8s.io/v1beta1":
		return "CertificateSigningRequest"
	case "flowcontrol.apiserver.k8s.io/v1beta1", "flowcontrol.apiserver.k8s.io/v1alpha1":
		return "FlowSchema PriorityLevelConfiguration"
	}
	return ""
}
