package checking

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/vap"
)

// ReadCluster reads the policies of a cluster, where the run has no others, and the types
// of its custom kinds.
func (run *Run) ReadCluster(ctx context.Context, c *cluster.Connection) (err error) {
	if len(run.Sources) == 0 {
		if run.Sources, err = run.policies(ctx, c); err != nil {
			return err
		}
	}
	run.served, err = run.readServed(ctx, c)
	return err
}

// nativeKinds are the kinds that check looks at, each with its versions.
func nativeKinds() [][]string {
	const group = "admissionregistration.k8s.io"
	return [][]string{
		{group, "ValidatingAdmissionPolicy", "v1"},
		{group, "ValidatingAdmissionPolicyBinding", "v1"},
		{group, "MutatingAdmissionPolicy", "v1", "v1beta1"},
		{group, "MutatingAdmissionPolicyBinding", "v1", "v1beta1"},
	}
}

// policies are the policies and bindings of the cluster, each as a file would have
// it. Of Kyverno-style policies those are left out of which native objects are there:
// these are what counts.
func (run *Run) policies(ctx context.Context, c *cluster.Connection) ([]input.Source, error) {
	var out []input.Source
	deployed := map[string]bool{}
	for _, kind := range slices.Concat(nativeKinds(), cluster.SourceKinds()) {
		if kind[1] == "PolicyTranslation" {
			continue
		}
		err := c.EachOf(ctx, kind, func(err error) { run.Left = append(run.Left, err) }, func(u unstructured.Unstructured) error {
			noteMembers(deployed, u)
			if deployed[identityOf(u)] {
				return nil
			}
			s, err := cluster.SourceOf(u)
			out = append(out, s)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// noteMembers notes of which policies a native object was made.
func noteMembers(deployed map[string]bool, u unstructured.Unstructured) {
	t, ok, err := vap.TranslationOf(u.GetAnnotations())
	if !ok || err != nil {
		return
	}
	for _, m := range t.Members {
		kind := "ValidatingPolicy"
		if strings.HasPrefix(m.Path, "spec.rules") {
			kind = "Policy"
		}
		deployed[kind+" "+m.Policy] = true
	}
}

// identityOf is how members of native objects name a policy.
func identityOf(u unstructured.Unstructured) string {
	kind, name := u.GetKind(), u.GetName()
	switch kind {
	case "ClusterPolicy":
		kind = "Policy"
	case "Policy", "NamespacedValidatingPolicy", "NamespacedMutatingPolicy", "NamespacedGeneratingPolicy", "NamespacedImageValidatingPolicy":
		kind, name = strings.TrimPrefix(kind, "Namespaced"), u.GetNamespace()+"/"+name
	}
	return kind + " " + name
}

// readServed reads the types of the kinds that are served and not built in. Those
// that the sources name come first: of the others there may be too many, and what is
// not known of them is no matter.
func (run *Run) readServed(ctx context.Context, c *cluster.Connection) ([]servedKinds, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	all, err := servedBy(c.Groups)
	if err != nil {
		return nil, err
	}
	var named, others []servedKinds
	for _, k := range all {
		if k.namedIn(run.Sources) {
			named = append(named, k)
		} else {
			others = append(others, k)
		}
	}
	all = append(named, others...)
	room := int64(documentsRoom)
	for i := range all {
		k := &all[i]
		k.document, err = documentOf(ctx, client.RESTClient(), k.path(), room)
		room -= int64(len(k.document))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil && i < len(named) {
			run.Left = append(run.Left, fmt.Errorf("the types of %s/%s: %w", k.Group, k.Version, err))
		}
	}
	return all, nil
}

// documentsRoom is how many bytes of OpenAPI documents are read of a cluster.
const documentsRoom = 64 << 20

// documentOf reads an OpenAPI document, as far as there is room for it.
func documentOf(ctx context.Context, client rest.Interface, path string, room int64) ([]byte, error) {
	body, err := client.Get().AbsPath(path).SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // what was read is judged by itself
	data, err := io.ReadAll(io.LimitReader(body, room+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > room:
		return nil, fmt.Errorf("with it, there are more than %d MB of OpenAPI documents", documentsRoom>>20)
	case !json.Valid(data):
		return nil, fmt.Errorf("what is served at %s is no JSON", path)
	}
	return data, nil
}
