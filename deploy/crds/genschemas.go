//go:build ignore

// Genschemas writes the JSON schemas in deploy/schemas, for editors, from the definitions of the kinds of policies.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/deploy/crds"
)

func main() {
	definitions, err := crds.All()
	if err != nil {
		log.Fatal(err)
	}
	for _, u := range definitions {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
			log.Fatal(err)
		}
		if !strings.HasSuffix(d.Name, "policies.kvap.dev") {
			continue
		}
		for _, v := range d.Spec.Versions {
			closeMaps(v.Schema.OpenAPIV3Schema)
			text, err := json.MarshalIndent(v.Schema.OpenAPIV3Schema, "", " ")
			if err != nil {
				log.Fatal(err)
			}
			file := "deploy/schemas/" + d.Spec.Names.Singular + "_" + v.Name + ".json"
			if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
				log.Fatal(err)
			}
		}
	}
}

// closeMaps has an editor mark each field that the API server would drop.
func closeMaps(s *apiextensionsv1.JSONSchemaProps) {
	if keep := s.XPreserveUnknownFields; len(s.Properties) > 0 && (keep == nil || !*keep) {
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{}
	}
	for name, p := range s.Properties {
		closeMaps(&p)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		closeMaps(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		closeMaps(s.AdditionalProperties.Schema)
	}
}
