package translate_test

import (
	"testing"

	"github.com/kvap/kvap/translate"
)

const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.x.io}
spec:
  group: x.io
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              l: {type: array, items: {type: string, nullable: true}}
              m: {type: object, additionalProperties: {type: string, nullable: true}}
              o: {type: array, items: {type: object, nullable: true, properties: {a: {type: string}}}}
`

// Elements that a definition lets be null are of no type that is known.
func TestElementsThatMayBeNullAgree(t *testing.T) {
	t.Parallel()
	schemas, found := builtin(t, 34).WithCRDs([]byte(gadgets))
	if len(found) > 0 {
		t.Fatal(found)
	}
	deny := func(key, operator, value string) string {
		return `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "` + key + `", operator: ` + operator + `, value: ` + value + `}]}}}`
	}
	const lists = `[{}, {l: []}, {l: [a]}, {l: [null]}, {l: [a, null]}, {l: [b, ""]}, {m: {k: null}}, {m: {k: a}}, {o: [null]}, {o: [{a: x}, null]}, {o: [{}]}]`
	for _, s := range []sample{
		{"a pattern of a list", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, pattern: {spec: {l: ["a*"]}}}`, lists},
		{"a pattern of a map", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, pattern: {spec: {m: {k: "?*"}}}}`, lists},
		{"a pattern of objects", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, pattern: {spec: {o: [{a: x}]}}}`, lists},
		{"members", "x.io/v1", "Gadget", deny("{{ request.object.spec.l || `[]` }}", "AnyIn", "[a]"), lists},
		{"a function", "x.io/v1", "Gadget", deny("{{ request.object.spec.l[?starts_with(@, 'a')] || `[]` }}", "Equals", "[a]"), lists},
		{"a field of an element", "x.io/v1", "Gadget", deny("{{ request.object.spec.o[0].a || '' }}", "Equals", "x"), lists},
		{"each", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, foreach: [{list: request.object.spec.o, deny: {conditions: {any: [{key: "{{ element.a || '' }}", operator: Equals, value: x}]}}}]}`, lists},
	} {
		t.Run(s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
	}
}
