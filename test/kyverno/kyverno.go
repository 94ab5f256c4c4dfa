package kyverno

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
)

// Namespace is where Kyverno is installed.
const Namespace = "kyverno"

// The accounts of its controllers.
const (
	admissionAccount  = "system:serviceaccount:" + Namespace + ":kyverno-admission-controller"
	backgroundAccount = "system:serviceaccount:" + Namespace + ":kyverno-background-controller"
)

// Users are whom Kyverno's controllers are to the API server; a control plane has to know
// them from its start.
func Users() []controlplane.User {
	return []controlplane.User{
		{Name: admissionAccount, Groups: []string{"system:masters"}},
		{Name: backgroundAccount, Groups: []string{"system:masters"}},
	}
}

// A Kyverno runs until its control plane ends.
type Kyverno struct {
	plane       *controlplane.ControlPlane
	client      client.Client
	binaries    string
	address     string
	definitions []controlplane.CRD
}

// Definitions are Kyverno's own, which are built with it.
func Definitions(ctx context.Context, progress io.Writer) ([]controlplane.CRD, error) {
	binaries, err := Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	return controlplane.ReadCRDs(filepath.Join(binaries, definitionsFolder))
}

// Start builds Kyverno if need be, installs it, and returns when it has registered its
// webhooks for policies.
func Start(ctx context.Context, plane *controlplane.ControlPlane, progress io.Writer) (*Kyverno, error) {
	binaries, err := Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	k := &Kyverno{plane: plane, binaries: binaries}
	if k.client, err = client.New(plane.Config(controlplane.Admin), client.Options{}); err != nil {
		return nil, err
	}
	if k.definitions, err = controlplane.ReadCRDs(filepath.Join(binaries, definitionsFolder)); err != nil {
		return nil, err
	}
	if err := k.Define(ctx); err != nil {
		return nil, err
	}
	if err := k.install(ctx); err != nil {
		return nil, err
	}
	if k.address, err = controlplane.FreeAddress(); err != nil {
		return nil, err
	}
	if err := k.StartAdmission(ctx); err != nil {
		return nil, err
	}
	return k, k.StartBackground(ctx)
}

// Define installs Kyverno's definitions, as far as they are not there.
func (k *Kyverno) Define(ctx context.Context) error {
	return k.plane.InstallCRDs(ctx, k.definitions...)
}

// Undefine removes Kyverno's definitions, and with them all objects of its kinds; those of
// reports, which others have too, and those that are named stay.
func (k *Kyverno) Undefine(ctx context.Context, but ...string) error {
	for _, d := range k.definitions {
		if group, _, _ := unstructured.NestedString(d.Object, "spec", "group"); group == "wgpolicyk8s.io" || slices.Contains(but, d.GetName()) {
			continue
		}
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(d.GroupVersionKind())
		o.SetName(d.GetName())
		if err := client.IgnoreNotFound(k.client.Delete(ctx, o)); err != nil {
			return err
		}
	}
	return nil
}

// install makes what a chart installs, and the processes ask for.
func (k *Kyverno) install(ctx context.Context) error {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: Namespace, Name: name} }
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kyverno-controllers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	for _, u := range Users() { // Kyverno asks what they may, by their names alone
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u.Name})
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		binding,
		&corev1.ConfigMap{ObjectMeta: meta("kyverno"), Data: map[string]string{
			"defaultRegistry": "docker.io", "enableDefaultRegistryMutation": "true", "generateSuccessEvents": "false", "excludeGroups": "system:nodes",
			"resourceFilters": "[Event,*,*] [*/*,kube-system,*] [*/*,kube-public,*] [*/*,kube-node-lease,*] [Node,*,*] [Node/?*,*,*] [*/*,kyverno,*]",
			"webhooks": `{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system"]},` +
				`{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kyverno"]}]}}`,
		}},
		&corev1.ConfigMap{ObjectMeta: meta("kyverno-metrics"), Data: map[string]string{"namespaces": `{"include":[],"exclude":[]}`}},
	} {
		if err := k.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// environment is what a Pod of Kyverno has in its own.
func environment(name string) []string {
	return []string{
		"KYVERNO_NAMESPACE=" + Namespace, "KYVERNO_POD_NAME=" + name + "-0", "KYVERNO_DEPLOYMENT=" + name,
		"KYVERNO_SERVICEACCOUNT_NAME=" + name, "KYVERNO_ROLE_NAME=" + name, "KYVERNO_SVC=kyverno-svc",
		"INIT_CONFIG=kyverno", "METRICS_CONFIG=kyverno-metrics",
	}
}

// flags are those of both controllers.
func (k *Kyverno) flags(account string) ([]string, error) {
	metrics, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(metrics)
	return []string{
		"--metricsHost=" + host, "--metricsPort=" + port, // they are served though they are disabled
		"--kubeconfig=" + k.plane.Kubeconfig(account), "--disableMetrics=true", "--controllerRuntimeMetricsAddress=0",
		"--enablePolicyException=true", "--exceptionNamespace=*", "--leaderElectionRetryPeriod=2s", "--autoMemLimitEnabled=false", "--v=2",
	}, err
}

// StartAdmission starts the admission controller, and returns when it has registered its
// webhooks for policies.
func (k *Kyverno) StartAdmission(ctx context.Context) error {
	host, port, err := net.SplitHostPort(k.address)
	if err != nil {
		return err
	}
	flags, err := k.flags(admissionAccount)
	if err != nil {
		return err
	}
	const prefix = "kyverno-svc." + Namespace + ".svc."
	return k.plane.Run(ctx, controlplane.Program{
		Name: admissionController, Path: filepath.Join(k.binaries, admissionController), Environment: environment("kyverno-admission-controller"),
		Flags: append(flags,
			"--serverIP="+k.address, "--webhookServerHost="+host, "--webhookServerPort="+port,
			"--caSecretName="+prefix+"kyverno-tls-ca", "--tlsSecretName="+prefix+"kyverno-tls-pair",
			"--backgroundServiceAccountName="+backgroundAccount),
	}, func() error { return k.asks(ctx) })
}

// StartBackground starts the background controller.
func (k *Kyverno) StartBackground(ctx context.Context) error {
	flags, err := k.flags(backgroundAccount)
	if err != nil {
		return err
	}
	return k.plane.Run(ctx, controlplane.Program{
		Name: backgroundController, Path: filepath.Join(k.binaries, backgroundController), Environment: environment("kyverno-background-controller"),
		Flags: flags,
	}, func() error { return k.leads(ctx, "kyverno-background-controller") })
}

// Kill ends both controllers at once; their webhooks stay registered.
func (k *Kyverno) Kill() error {
	if err := k.plane.Kill(backgroundController); err != nil {
		return err
	}
	return k.plane.Kill(admissionController)
}

// asks tells whether policies are refused and admitted by Kyverno.
func (k *Kyverno) asks(ctx context.Context) error {
	bad := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "kyverno-answers"},
		"spec": map[string]any{"background": false, "admission": false, "rules": []any{map[string]any{
			"name": "none", "match": map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"ConfigMap"}}}}},
			"validate": map[string]any{"message": "none", "pattern": map[string]any{"kind": "ConfigMap"}},
		}}},
	}}
	err := k.client.Create(ctx, bad, client.DryRunAll)
	if err == nil {
		return fmt.Errorf("Kyverno has not registered its webhook for policies")
	}
	if apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) { // it has judged the policy
		return nil
	}
	return err
}

// leads tells whether a controller of Kyverno has its lease.
func (k *Kyverno) leads(ctx context.Context, lease string) error {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("coordination.k8s.io/v1")
	o.SetKind("Lease")
	if err := k.client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: lease}, o); err != nil {
		return err
	}
	if holder, _, _ := unstructured.NestedString(o.Object, "spec", "holderIdentity"); holder == "" {
		return fmt.Errorf("nobody holds the lease %s", lease)
	}
	return nil
}

// Uninstall ends Kyverno, removes its webhook configurations, and then its definitions,
// with all objects of its kinds, but for those that are named.
func (k *Kyverno) Uninstall(ctx context.Context, but ...string) error {
	if err := k.Kill(); err != nil {
		return err
	}
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("admissionregistration.k8s.io/v1")
		o.SetKind(kind)
		if err := k.client.DeleteAllOf(ctx, o, client.HasLabels{"webhook.kyverno.io/managed-by"}); err != nil {
			return err
		}
	}
	return k.Undefine(ctx, but...)
}
