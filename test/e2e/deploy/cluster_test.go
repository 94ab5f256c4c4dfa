//go:build e2e

package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller/cleanup"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A cluster has what the kustomize base installs, but for the Pods.
type cluster struct {
	*testcluster.Cluster
	installed []*unstructured.Unstructured
}

// shared is made by TestMain.
var shared *cluster

func TestMain(m *testing.M) {
	var definitions []controlplane.CRD
	for _, foreign := range []struct {
		group, version, kind, plural string
	}{
		{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"},
		{"monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"},
		{"cert-manager.io", "v1", "Certificate", "certificates"},
		{"cert-manager.io", "v1", "Issuer", "issuers"},
	} {
		gvk := apischema.GroupVersionKind{Group: foreign.group, Version: foreign.version, Kind: foreign.kind}
		definitions = append(definitions, controlplane.StandIn(gvk, foreign.plural, true))
	}
	for _, k := range cleanup.Kinds() {
		definitions = append(definitions, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...))
	}
	os.Exit(testcluster.Run(m, testcluster.Options{Definitions: definitions}, func(c *testcluster.Cluster) (func(), error) {
		shared = &cluster{Cluster: c}
		return nil, shared.install(context.Background())
	}))
}

// install makes what kustomize would apply.
func (c *cluster) install(ctx context.Context) error {
	for _, file := range []string{"namespace.yaml", "kvap.yaml"} {
		objects, err := readFile(filepath.Join("../../../deploy/kustomize/base", file))
		if err != nil {
			return err
		}
		for _, o := range objects {
			c.installed = append(c.installed, o)
			if err := c.Create(ctx, o.DeepCopy()); err != nil {
				return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	return nil
}

func readFile(file string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return readAll(data)
}

func readAll(data []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// of is what is installed of a kind.
func (c *cluster) of(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range c.installed {
		if o.GetKind() == kind {
			return o
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

// apply makes or changes objects.
func (c *cluster) apply(t *testing.T, text string) {
	t.Helper()
	objects, err := readAll([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		have := o.DeepCopy()
		err := c.Get(t.Context(), client.ObjectKeyFromObject(o), have)
		if apierrors.IsNotFound(err) {
			err = c.Create(t.Context(), o)
		} else if err == nil {
			o.SetResourceVersion(have.GetResourceVersion())
			err = c.Update(t.Context(), o)
		}
		if err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func (c *cluster) remove(t *testing.T, text string) {
	t.Helper()
	objects, err := readAll([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// list is all objects of a kind.
func (c *cluster) list(t *testing.T, apiVersion, kind string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	if err := c.List(t.Context(), list); err != nil && !meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	return list.Items
}

// The API server takes all that the chart can render, with the webhook and reports, and
// keeps it as it is: what is applied a second time changes nothing.
func TestEveryObjectIsTaken(t *testing.T) {
	if err := shared.Plane.Settle(t.Context()); err != nil { // what another test has made is gone
		t.Fatal(err)
	}
	objects, err := readFile("../../../deploy/chart/testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		o.SetName("full-" + strings.ReplaceAll(o.GetName(), ":", "-"))
		apply := func() (version string, err error) {
			again := o.DeepCopy()
			err = shared.Patch(t.Context(), again, client.Apply, client.FieldOwner("test"), client.FieldValidation(metav1.FieldValidationStrict)) //nolint:staticcheck // of objects that have no Go type
			return again.GetResourceVersion(), err
		}
		first, err := apply()
		if err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			continue
		}
		t.Cleanup(func() {
			if err := shared.Delete(context.Background(), o.DeepCopy()); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
		if second, err := apply(); err != nil || second != first {
			t.Errorf("%s %s, applied again: from %s to %s: %v", o.GetKind(), o.GetName(), first, second, err)
		}
	}
}
