package report

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// fullReports are reports with all that a result may have, in a namespace and of the cluster.
func fullReports(group string) (all []map[string]any) {
	for _, namespace := range []string{"team", ""} {
		s := scanned()
		s.Namespace = namespace
		for _, result := range append(OptionalResults(), "fail") {
			for _, severity := range []string{"critical", "high", "medium", "low", "info", ""} {
				s.Results = append(s.Results, ScanResult{
					Policy: "team/p", Rule: result + severity, Result: result, Message: "m", Category: "c", Severity: severity, Scored: result != "warn",
					Exceptions: []string{"a", "b"}, Properties: map[string]string{"team": "a"}, Admission: severity == "high",
				})
			}
		}
		all = append(all, ObjectReport(s, ObjectOptions{Group: group, List: OptionalResults(), Max: 100}, 7))
	}
	return all
}

// The Go types of OpenReports know each field of a report, and lose nothing of it.
func TestOpenReportsTypes(t *testing.T) {
	for i, into := range []any{&openreports.Report{}, &openreports.ClusterReport{}} {
		wrote := fullReports(OpenReports)[i]
		text, err := json.Marshal(wrote)
		if err != nil {
			t.Fatal(err)
		}
		strict, err := kjson.UnmarshalStrict(text, into)
		if err != nil || len(strict) > 0 {
			t.Errorf("%T: %v, %v", into, strict, err)
		}
		again, err := json.Marshal(into)
		if err != nil {
			t.Fatal(err)
		}
		var read map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(again, &read); err != nil {
			t.Fatal(err)
		}
		for _, r := range entries(wrote) {
			if r["scored"] == false { // which the type leaves out
				delete(r, "scored")
			}
		}
		if !reflect.DeepEqual(read, wrote) {
			t.Errorf("%T:\nread  %v\nwrote %v", into, read, wrote)
		}
	}
}

// The definitions of wgpolicyk8s.io take reports as they are: an API server keeps each field. The
// module with its Go types is not published.
func TestPolicyReportsDefinitions(t *testing.T) {
	for i, file := range []string{"testdata/wgpolicyk8s.io_policyreports.yaml", "testdata/wgpolicyk8s.io_clusterpolicyreports.yaml"} {
		props := definedBy(t, file)
		structural, err := structuralschema.NewStructural(props)
		if err != nil {
			t.Fatal(err)
		}
		wrote := fullReports(PolicyReports)[i]
		pruned := pruning.PruneWithOptions(wrote, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		if len(pruned) > 0 {
			t.Errorf("%s: pruned are %v", file, pruned)
		}
		validator, _, err := validation.NewSchemaValidator(props)
		if err != nil {
			t.Fatal(err)
		}
		if errs := validation.ValidateCustomResource(field.NewPath(""), wrote, validator); len(errs) > 0 {
			t.Errorf("%s: %v", file, errs.ToAggregate())
		}
	}
}

// definedBy is the schema of a definition's version that reports are written in.
func definedBy(t *testing.T, file string) *apiextensions.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == "v1alpha2" {
			props := &apiextensions.JSONSchemaProps{}
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, props, nil); err != nil {
				t.Fatal(err)
			}
			return props
		}
	}
	t.Fatalf("%s has no v1alpha2", file)
	return nil
}
