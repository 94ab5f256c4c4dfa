package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Settle returns when the API server judges by every ValidatingAdmissionPolicy and
// binding that exists, and by none that has been deleted. It makes a pair of its
// own and waits until that denies: a server learns of the objects of a kind in the
// order of their changes, and takes up what it has learned all at once, about once
// a second. Where other policies deny every ConfigMap in the namespace default, it
// cannot tell.
func (c *ControlPlane) Settle(ctx context.Context) (err error) {
	client, err := dynamic.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	name := "settle-" + strings.ToLower(rand.Text())
	policies := client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"))
	bindings := client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"))
	if _, err := policies.Create(ctx, denyOnly(name), metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, policies.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}))
	}()
	if _, err := bindings.Create(ctx, bindTo(name), metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, bindings.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}))
	}()
	return awaitDenial(ctx, client, name)
}

// awaitDenial asks until the policy of that name is what denies.
func awaitDenial(ctx context.Context, client dynamic.Interface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := createCanary(ctx, client, name)
		if err != nil && strings.Contains(err.Error(), "'"+name+"'") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server does not take up policies: %w", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// denyOnly is a policy that denies one ConfigMap.
func denyOnly(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": admissionregistrationv1.SchemeGroupVersion.String(),
		"kind":       "ValidatingAdmissionPolicy",
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
				"operations": []any{"CREATE"}, "resourceNames": []any{name},
			}}},
			"validations": []any{map[string]any{"expression": "false", "message": "all is taken up"}},
		},
	}}
}

func bindTo(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": admissionregistrationv1.SchemeGroupVersion.String(),
		"kind":       "ValidatingAdmissionPolicyBinding",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"policyName": name, "validationActions": []any{"Deny"}},
	}}
}
