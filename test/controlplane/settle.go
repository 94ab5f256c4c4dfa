package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Settle returns when the API server judges by every ValidatingAdmissionPolicy and
// binding that exists, and by none that has been deleted. It makes a pair of its
// own and waits until that warns: a server learns of the objects of a kind in the
// order of their changes, and takes up what it has learned all at once, about once
// a second. The warning comes whatever other policies say of the request.
func (c *ControlPlane) Settle(ctx context.Context) (err error) {
	select {
	case <-c.servers.ended(controllerManager): // else nobody would learn of it: nothing is collected, and that is all
		return c.ended(controllerManager)
	default:
	}
	config := c.Config(Admin)
	heard := &listener{word: "settle-" + strings.ToLower(rand.Text())}
	config.WarningHandler = heard
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, o := range settlePair(heard.word) {
		made := client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(pluralOf(o)))
		if _, err := made.Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, made.Delete(context.WithoutCancel(ctx), o.GetName(), metav1.DeleteOptions{}))
		}()
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for !heard.yes.Load() {
		if err := createCanary(ctx, client, heard.word); ctx.Err() != nil {
			return fmt.Errorf("the API server does not take up policies: %w", errors.Join(ctx.Err(), err))
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// A listener waits for a word in a warning.
type listener struct {
	word string
	yes  atomic.Bool
}

// HandleWarningHeader takes the warnings of a response.
func (l *listener) HandleWarningHeader(_ int, _, text string) {
	if strings.Contains(text, l.word) {
		l.yes.Store(true)
	}
}

// settlePair is a policy that finds fault with one ConfigMap, and its binding.
func settlePair(name string) []*unstructured.Unstructured {
	version := admissionregistrationv1.SchemeGroupVersion.String()
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
					"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
					"operations": []any{"CREATE"}, "resourceNames": []any{name},
				}}},
				"validations": []any{map[string]any{"expression": "false", "message": "all is taken up"}},
			},
		}},
		{Object: map[string]any{
			"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"policyName": name, "validationActions": []any{"Warn"}},
		}},
	}
}

func pluralOf(o *unstructured.Unstructured) string {
	if strings.HasSuffix(o.GetKind(), "Policy") {
		return "validatingadmissionpolicies"
	}
	return "validatingadmissionpolicybindings"
}
