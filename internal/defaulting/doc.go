// Package defaulting fills in what an API server fills in before it asks admission: a
// manifest is not what policies see.
//
// In comes an object as somebody wrote it. Out goes a copy, as an API server decodes it: with
// the defaults of its kind, all that its Go struct writes, converted to the version that the
// server works with and back, and without what is unknown. Kubernetes' own functions do it to
// objects of built-in kinds; those of custom kinds get the defaults of their schemas. FillsIn
// tells which fields are there for that reason.
//
// What must hold: filling in what is filled in changes nothing. An object that is none of its
// kind, as where a text stands for a number, is as it was; who judges it says so.
//
// What an API server does besides is not done here, for most of it depends on the cluster:
//
//   - Admission plugins: the service account of a Pod, its token, priority and tolerations; the
//     class of a PersistentVolumeClaim or an Ingress; what a LimitRange says; finalizers of
//     volumes; taints of a Node.
//   - Allocations: addresses, their families and the node ports of a Service.
//   - What is made of who asks and when: uid, creationTimestamp, generation, managedFields, the
//     selector and labels of a Job, user and groups of a CertificateSigningRequest.
//   - What strategies set or take away when an object is created: its status, the finalizer of a
//     Namespace, the AppArmor profile that a Pod has as an annotation or as a field.
//   - APIService, and alpha kinds that releases before 1.37 had.
//
// The functions are those of Kubernetes 1.37. Older releases differ in few fields, which are
// filled in for them too: maxUnavailable of a StatefulSet's update, preventPodSchedulingIfMissing
// of a CSIDriver, an empty status of a CSINode, the status of a condition in the podFailurePolicy
// of a CronJob. They write a creationTimestamp of null into templates, where nothing is here; and
// Kubernetes 1.30 knew the source of a resource claim, an alpha field that is left out.
//
// Importing those functions adds them to the scheme builders of k8s.io/api, so that schemes that
// are made later know them; nobody but this package has a scheme fill anything in.
//
// Start at Defaulter (defaulting.go), then builtin.go and custom.go.
package defaulting
