//go:build e2e

package background

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

const registered = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: registered}
spec:
  rules:
  - name: register
    match: {any: [{resources: {kinds: [cluster.x-k8s.io/v1beta1/Cluster]}}]}
    context:
    - name: access
      apiCall:
        urlPath: "/api/v1/namespaces/{{ request.object.metadata.namespace }}/secrets/{{ request.object.metadata.name }}-kubeconfig"
        jmesPath: "parse_yaml(base64_decode(data.value))"
    - name: labels
      variable:
        jmesPath: "merge(request.object.metadata.labels || ` + "`{}`" + `, {\"argocd.argoproj.io/secret-type\": 'cluster'})"
    - name: config
      variable:
        value:
          bearerToken: "{{ access.users[0].user.token }}"
          tlsClientConfig: {caData: "{{ access.clusters[0].cluster.\"certificate-authority-data\" }}"}
    generate:
      generateExisting: true
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: "{{ join('-', ['cluster', request.object.metadata.namespace, request.object.metadata.name]) }}"
      namespace: argocd
      data:
        type: Opaque
        metadata: {labels: "{{ labels }}"}
        data:
          name: "{{ base64_encode(request.object.metadata.name) }}"
          server: "{{ base64_encode(access.clusters[0].cluster.server) }}"
          config: "{{ base64_encode(to_string(config)) }}"
`

// workload is a cluster of the Cluster API, and its access.
func workload(name, tier string) string {
	return `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: ` + name + `, namespace: fleet, labels: {tier: ` + tier + `}}, spec: {}}`
}

func kubeconfig(name, server string) string {
	text := `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "` + server + `", certificate-authority-data: Q0E=}}], users: [{name: u, user: {token: t0k3n}}]}`
	return `{apiVersion: v1, kind: Secret, metadata: {name: ` + name + `-kubeconfig, namespace: fleet}, data: {value: ` + base64.StdEncoding.EncodeToString([]byte(text)) + `}}`
}

// decoded is a field of a Secret's data.
func decoded(t *testing.T, o *unstructured.Unstructured, key string) string {
	t.Helper()
	text, _, _ := unstructured.NestedString(o.Object, "data", key)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Clusters of the Cluster API are registered with Argo CD: those that are there, and
// those whose kubeconfig comes later. What is registered follows the cluster and goes
// with it.
func TestArgoCD(t *testing.T) {
	c := shared
	c.tells(t)
	c.Namespace(t, "fleet", nil)
	c.Namespace(t, "argocd", nil)
	c.Apply(t, kubeconfig("old", "https://old:6443"))
	c.Apply(t, workload("old", "gold"))
	c.Apply(t, registered)
	c.serving(t, "registered")
	o := c.await(t, "v1", "Secret", "argocd", "cluster-fleet-old", there)
	if o.GetLabels()["argocd.argoproj.io/secret-type"] != "cluster" || o.GetLabels()["tier"] != "gold" {
		t.Errorf("labels %v", o.GetLabels())
	}
	if got := decoded(t, o, "server"); got != "https://old:6443" {
		t.Errorf("server %s", got)
	}
	var config map[string]any
	if err := json.Unmarshal([]byte(decoded(t, o, "config")), &config); err != nil || config["bearerToken"] != "t0k3n" {
		t.Errorf("config %v: %v", config, err)
	}

	next := testcluster.Read(t, workload("next", "iron"))[0]
	if err := c.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), next) })
	c.Apply(t, kubeconfig("next", "https://next:6443"))
	c.await(t, "v1", "Secret", "argocd", "cluster-fleet-next", there)

	next = c.get(t, "cluster.x-k8s.io/v1beta1", "Cluster", "fleet", "next")
	next.SetLabels(map[string]string{"tier": "lead"})
	if err := c.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	o = c.await(t, "v1", "Secret", "argocd", "cluster-fleet-next", func(o *unstructured.Unstructured) bool {
		return o != nil && o.GetLabels()["tier"] == "lead"
	})
	o.Object["data"] = map[string]any{"server": "eA=="}
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "Secret", "argocd", "cluster-fleet-next", func(o *unstructured.Unstructured) bool {
		return o != nil && decoded(t, o, "server") == "https://next:6443"
	})
	if err := c.Delete(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	c.await(t, "v1", "Secret", "argocd", "cluster-fleet-next", gone)
}
