package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/schema"
)

// clusterTypes is the types of the cluster: those of its release, and of
// custom kinds those that a policy names.
type clusterTypes struct {
	builtin *schema.Set
	direct  client.Reader

	state string            // of the definitions that were read
	kinds map[string]string // by the name of a definition
	taken map[string]bool   // the definitions that are in the set
	set   *schema.Set
	// digest is of all that is in the set.
	digest string
}

// page is how many definitions are read at a time: some are large.
const page = 20

// of are the types for policies. The set stays the same while nothing has changed
// that the policies name.
func (t *clusterTypes) of(ctx context.Context, sources []*policySource, state string) (*schema.Set, error) {
	if t.set == nil || t.state != state || t.namesMore(sources) {
		if err := t.read(ctx, sources, state); err != nil {
			return nil, err
		}
	}
	return t.set, nil
}

// namesMore tells that policies name a kind that is defined and was not read.
func (t *clusterTypes) namesMore(sources []*policySource) bool {
	for definition, kind := range t.kinds {
		plural, _, _ := strings.Cut(definition, ".")
		if !t.taken[definition] && (anyNames(sources, kind) || anyNames(sources, plural)) {
			return true
		}
	}
	return false
}

func anyNames(sources []*policySource, kind string) bool {
	return slices.ContainsFunc(sources, func(s *policySource) bool { return bytes.Contains(s.text, []byte(kind)) })
}

func (t *clusterTypes) read(ctx context.Context, sources []*policySource, state string) error {
	set, kinds, taken, digest := t.builtin, map[string]string{}, map[string]bool{}, ""
	for from := ""; ; {
		var list apiextensionsv1.CustomResourceDefinitionList // a new one: what a page does not say would stay
		if err := t.direct.List(ctx, &list, client.Limit(page), client.Continue(from)); err != nil {
			return err
		}
		for i := range list.Items {
			crd := &list.Items[i]
			kinds[crd.Name] = crd.Spec.Names.Kind
			if !anyNames(sources, crd.Spec.Names.Kind) && !anyNames(sources, crd.Spec.Names.Plural) {
				continue
			}
			crd.APIVersion, crd.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
			crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name}
			crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
			text, err := json.Marshal(crd)
			if err != nil {
				return err
			}
			set, _ = set.WithCRDFile(crd.Name, text) // what cannot be read stays unknown
			taken[crd.Name] = true
			digest = hashOf(digest + string(text))
		}
		if from = list.Continue; from == "" {
			break
		}
	}
	t.state, t.kinds, t.taken = state, kinds, taken
	if t.set == nil || t.digest != digest {
		t.set, t.digest = set, digest
	}
	return nil
}
