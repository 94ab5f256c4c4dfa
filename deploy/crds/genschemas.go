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
			root := v.Schema.OpenAPIV3Schema
			closeMaps(root)
			closeRules(root)
			text, err := json.MarshalIndent(root, "", " ")
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

// closeRules has an editor mark the fields of a rule that the definitions leave open, since
// below them stand objects of any kind, and that no kind of rule has.
func closeRules(s *apiextensionsv1.JSONSchemaProps) {
	rules, ok := s.Properties["spec"].Properties["rules"]
	if !ok {
		return
	}
	texts := apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}}
	resources := closed("kinds name names namespaces operations annotations selector namespaceSelector")
	for _, name := range []string{"kinds", "names", "namespaces", "operations"} {
		resources.Properties[name] = texts
	}
	filter := closed("resources roles clusterRoles subjects")
	filter.Properties["resources"] = resources
	match := closed("any all resources roles clusterRoles subjects")
	match.Properties["resources"] = resources
	for _, name := range []string{"any", "all"} {
		match.Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &filter}}
	}
	of := rules.Items.Schema.Properties
	for name, p := range map[string]apiextensionsv1.JSONSchemaProps{
		"match":    match,
		"exclude":  match,
		"validate": closed("message failureAction failureActionOverrides allowExistingViolations pattern anyPattern deny foreach podSecurity cel manifests assert"),
		"mutate":   closed("targets foreach mutateExistingOnPolicyUpdate patchStrategicMerge patchesJson6902"),
		"generate": closed("generateExisting synchronize orphanDownstreamOnPolicyDelete foreach apiVersion kind namespace name uid data clone cloneList"),
	} {
		p.Description = of[name].Description
		of[name] = p
	}
}

// closed is an object with some fields, of which nothing is said, and no others.
func closed(fields string) apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}, AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{}}
	for _, name := range strings.Fields(fields) {
		s.Properties[name] = apiextensionsv1.JSONSchemaProps{}
	}
	return s
}
