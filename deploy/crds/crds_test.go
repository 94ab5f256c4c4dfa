package crds_test

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/deploy/crds"
)

// definitions are all, as their type has them; it knows every field.
func definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	objects, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, o := range objects {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, crd, true); err != nil {
			t.Fatal(err)
		}
		all = append(all, crd)
	}
	return all
}

// An API server takes each definition: its schema is structural, and its CEL
// compiles and costs little enough.
func TestDefinitionsAreAccepted(t *testing.T) {
	all := definitions(t)
	for _, crd := range all {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		internal := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
			t.Fatal(err)
		}
		internal.Status.StoredVersions = []string{v1alpha1.Version}
		for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
			t.Errorf("%s: %v", crd.Name, err)
		}
	}
}

// Each kind of the scheme has a definition, and no other.
func TestEveryKindIsDefined(t *testing.T) {
	all := definitions(t)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	known := scheme.KnownTypes(v1alpha1.GroupVersion())
	for _, crd := range all {
		for _, kind := range []string{crd.Spec.Names.Kind, crd.Spec.Names.ListKind} {
			if _, ok := known[kind]; !ok {
				t.Errorf("%s defines %s, which is no type", crd.Name, kind)
			}
		}
	}
	if len(all) != 8 {
		t.Errorf("there are %d definitions, and 8 kinds", len(all))
	}
}
