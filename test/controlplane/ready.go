package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// healthy tells what an address answers, if not 200.
func healthy(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // nothing of it is read
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

// serving tells whether an API server has written its certificate, is healthy, which
// is when all that it does at its start is done, and lets requests through admission,
// which refuses all until it is synced.
func (c *ControlPlane) serving(ctx context.Context, admin *rest.Config) error {
	if _, err := os.Stat(c.certificate()); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	if err := saysHealthy(ctx, admin); err != nil {
		return err
	}
	// The server makes the namespace a moment after it says that it is ready.
	if err := createCanary(ctx, client, "canary"); !denied(err) {
		return err
	}
	return nil
}

// saysHealthy asks an API server what kube-controller-manager asks it, which ends by
// itself where the answer is no for ten seconds.
func saysHealthy(ctx context.Context, admin *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		return err
	}
	return client.RESTClient().Get().AbsPath("/healthz").Do(ctx).Error()
}

// denied tells of a request that came through admission and was found wanting, as by
// policies that were there before the server was: who denies is ready to judge.
func denied(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "denied request") || strings.Contains(err.Error(), "denied the request"))
}

// createCanary asks, dry, for a ConfigMap in the namespace default.
func createCanary(ctx context.Context, client dynamic.Interface, name string) error {
	canary := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}
	_, err := client.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(metav1.NamespaceDefault).
		Create(ctx, canary, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// empowerControllers lets kube-controller-manager do everything: it acts as one
// user here, not as an account for each controller with a role of its own.
func (c *ControlPlane) empowerControllers(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	binding, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "kvap-controllers"}, // the user's own name is taken, for a role with less
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: controllerUser}},
	})
	if err != nil {
		return err
	}
	_, err = client.Resource(rbac("clusterrolebindings")).Create(ctx, &unstructured.Unstructured{Object: binding}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // the folder is the caller's, and was used before
		return nil
	}
	return err
}

// controllersMay tells whether the API server has learned of the binding: what is
// forbidden to kube-controller-manager when it starts, it does not try again for
// long.
func (c *ControlPlane) controllersMay(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.Config(controllerUser))
	if err != nil {
		return err
	}
	_, err = client.Resource(rbac("clusterroles")).List(ctx, metav1.ListOptions{Limit: 1}) // the role with less may not
	return err
}

func rbac(resource string) apischema.GroupVersionResource {
	return rbacv1.SchemeGroupVersion.WithResource(resource)
}
