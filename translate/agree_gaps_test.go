package translate_test

import (
	"testing"

	"github.com/kvap/kvap/translate"
)

// Constructs that were once read in another way than the interpreter reads them.
func TestGapsAgree(t *testing.T) {
	schemas := builtin(t, 34)
	for _, s := range []sample{
		{"a length among fractions", "v1", "Pod", `validate: {allowExistingViolations: false, foreach: [{list: request.object.metadata.finalizers, deny: {conditions: {all: [{key: "{{ length(images.containers.*.registry) }}", operator: AnyIn, value: [1.5]}]}}}]}`,
			`[{containers: []}, {containers: [{name: a, image: a}]}]`},
		{"elements of a typed list in a range", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.containers[].ports[].containerPort }}", operator: AnyNotIn, value: "80-90"}]}}}`,
			`[{containers: [{name: a, ports: [{containerPort: 80}]}]}, {containers: [{name: a, ports: [{containerPort: 80}, {containerPort: 91}]}]}, {containers: [{name: a}]}]`},
		{"all of a selection whose parts are missing", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.[a, b] }}", operator: AllIn, value: [x, "y*"]}]}}}`,
			`[{}, {a: x}, {a: x, b: "yz"}, {a: x, b: z}, {a: [x], b: x}, {a: null, b: x}]`},
		{"not all of a selection whose parts are missing", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.[a, b] }}", operator: AnyNotIn, value: [x, "y*"]}]}}}`,
			`[{}, {a: x}, {a: x, b: "yz"}, {a: x, b: z}, {a: null, b: x}]`},
		{"none of a selection whose parts are missing", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.[nodeName, schedulerName] }}", operator: AllIn, value: ["a*"]}, {key: "{{ request.object.spec.[nodeName, schedulerName] }}", operator: AnyIn, value: ["<*"]}]}}}`,
			`[{containers: []}, {containers: [], nodeName: ab}, {containers: [], nodeName: ab, schedulerName: ac}]`},
		{"keys of what is missing", "x.io/v1", "Gadget", "validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: \"{{ keys(request.object.spec.m) || ['a'] }}\", operator: AnyIn, value: [a]}]}}}",
			`[{}, {m: {a: 1}}, {m: {}}, {m: {b: 1}}, {m: [a]}, {m: null}, {m: a}]`},
		{"keys of what is missing in a known kind", "v1", "Pod", "validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: \"{{ keys(request.object.metadata.labels) || `[\\\"a\\\"]` }}\", operator: AnyIn, value: [a]}]}}}",
			`[{containers: []}]`},
		{"keys of a default", "x.io/v1", "Gadget", "validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: \"{{ keys(request.object.spec.m || `{}`) }}\", operator: AnyIn, value: [a]}]}}}",
			`[{}, {m: {a: 1}}, {m: {}}, {m: {b: 1}}, {m: [a]}, {m: null}, {m: a}, {m: []}]`},
		{"values of what is missing", "x.io/v1", "Gadget", "validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: \"{{ values(request.object.spec.m) || ['a'] }}\", operator: AnyIn, value: [a]}]}}}",
			`[{}, {m: {a: a}}, {m: {}}, {m: {b: 1}}, {m: [a]}, {m: null}, {m: a}]`},
		{"a field of parts that are missing", "x.io/v1", "Gadget", "validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: \"{{ request.object.spec.[a, b][].c }}\", operator: AnyIn, value: [x]}]}}}",
			`[{}, {a: {c: x}}, {a: [{c: x}], b: "y"}, {a: z, b: x}, {a: null, b: {}}]`},
		{"a text of the request as a pattern", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.nodeName }}", operator: Equals, value: "{{ request.object.spec.schedulerName }}"}]}}}`,
			`[{containers: [], nodeName: ab, schedulerName: ab}, {containers: [], nodeName: ab, schedulerName: "a*"}, {containers: [], nodeName: "a*", schedulerName: ab}, {containers: [], nodeName: 1h, schedulerName: 60m}, {containers: [], nodeName: "1000m", schedulerName: "1"}, {containers: [], nodeName: "5", schedulerName: "*"}, {containers: [], nodeName: "0", schedulerName: 0s}, {containers: [], nodeName: "a.b", schedulerName: "a?b"}, {containers: [], nodeName: ab}, {containers: []}]`},
		{"a text of the request as a pattern that must not match", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.nodeName }}", operator: NotEquals, value: "{{ request.object.spec.schedulerName }}"}, {key: "ab", operator: Equals, value: "{{ request.object.spec.schedulerName }}"}, {key: "1h", operator: Equals, value: "{{ request.object.spec.schedulerName }}"}]}}}`,
			`[{containers: [], nodeName: ab, schedulerName: ab}, {containers: [], nodeName: ab, schedulerName: "a*"}, {containers: [], nodeName: "a*", schedulerName: ab}, {containers: [], nodeName: 60m, schedulerName: 60m}, {containers: [], nodeName: "5", schedulerName: "*"}, {containers: [], nodeName: ab}]`},
		{"a word in a text that may be JSON", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: b, operator: AnyIn, value: "{{ request.object.spec.nodeName }}"}]}}}`,
			`[{containers: [], nodeName: "b"}, {containers: [], nodeName: "*"}, {containers: [], nodeName: "b*"}, {containers: [], nodeName: "a-b"}, {containers: [], nodeName: "[\"b\"]"}, {containers: [], nodeName: "[\"a\", \"b\"]"}, {containers: [], nodeName: " [ \"a\" , \"b\"\n] "}, {containers: [], nodeName: "[\"*\"]"}, {containers: [], nodeName: "[\"a\"]"}, {containers: [], nodeName: "[]"}, {containers: [], nodeName: "[\"b\", 1]"}, {containers: [], nodeName: "[\"b\", null]"}, {containers: [], nodeName: "[\"b\", [null]]"}, {containers: [], nodeName: "[\"b\""}, {containers: [], nodeName: "[\"b\"]x"}, {containers: [], nodeName: "[\"b\",]"}, {containers: [], nodeName: "[\"\\u0062\"]"}, {containers: [], nodeName: "[\"\\u0062\\q\"]"}, {containers: [], nodeName: "[\"a\\\\u0062\"]"}, {containers: [], nodeName: "[\"b\", \"\\q\"]"}, {containers: [], nodeName: "[\"b\", \"\\n\\uD83D\"]"}, {containers: [], nodeName: "[\"b\", \"\\u12\"]"}, {containers: [], nodeName: "[\"b\", \"\t\"]"}, {containers: [], nodeName: "\f[\"b\"]"}, {containers: [], nodeName: "{\"a\": [\"b\"]}"}, {containers: [], nodeName: "\"b\""}, {containers: [], nodeName: "null"}, {containers: [], nodeName: ""}, {containers: []}]`},
		{"a word with signs in a text that may be JSON", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: 'é/\x"😀', operator: AllIn, value: "{{ request.object.spec.nodeName }}"}]}}}`,
			`[{containers: [], nodeName: '["é/\\x\"😀"]'}, {containers: [], nodeName: '["\u00E9\/\u005c\u0078\u0022\ud83d\uDE00"]'}, {containers: [], nodeName: '["\u00e9\/\\x\u0022\ud83d"]'}, {containers: [], nodeName: 'é/\x"😀'}]`},
		{"no word in a text that may be JSON", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "", operator: AnyIn, value: "{{ request.object.spec.nodeName }}"}]}}}`,
			`[{containers: [], nodeName: '["a", null]'}, {containers: [], nodeName: '[""]'}, {containers: [], nodeName: '[null]'}, {containers: [], nodeName: '[]'}, {containers: [], nodeName: ''}, {containers: [], nodeName: 'null'}, {containers: [], nodeName: '["a"]'}]`},
		{"a function that errs of every element, of no elements", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.l[?starts_with(tags[], 'a')].img || 'abc' }}", operator: Equals, value: abc}]}}}`,
			`[{}, {l: []}, {l: null}, {l: [{tags: []}]}, {l: [{img: a}]}]`},
		{"variables each of the one before, twice", "x.io/v1", "Gadget", `context: [{name: a, variable: {jmesPath: "request.object.spec.m.q"}}, {name: b, variable: {jmesPath: "a || request.object.spec.w || a"}}, {name: c, variable: {jmesPath: "b || request.object.spec.z || b || 'x'"}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ c || request.object.spec.w || b }}", operator: Equals, value: x}]}}}`,
			`[{}, {m: {q: x}}, {m: {q: ""}}, {m: {q: null}}, {m: []}, {w: x}, {w: x, m: {q: a}}, {w: "", m: {q: x}}, {w: 0, m: {q: x}}, {z: x}, {z: x, m: {q: ""}}, {z: "", m: {q: false}}]`},
		{"alternatives of alternatives, and their opposite", "x.io/v1", "Gadget", `context: [{name: a, variable: {jmesPath: "request.object.spec.m.q || request.object.spec.w", default: x}}, {name: b, variable: {jmesPath: "a && request.object.spec.z || !a || a"}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ b || a }}", operator: Equals, value: x}]}}}`,
			`[{}, {m: {q: x}}, {m: {q: ""}}, {m: {q: null}}, {m: []}, {w: x}, {w: x, m: {q: a}}, {w: "", m: {q: x}}, {w: 0, m: {q: x}}, {z: x}, {z: x, m: {q: ""}}, {z: "", m: {q: false}}]`},
		{"labels each of the one before, twice", "v1", "Pod", `context: [{name: a, variable: {jmesPath: "request.object.spec.nodeName || request.object.spec.schedulerName || request.object.spec.nodeName"}}, {name: b, variable: {jmesPath: "a || request.object.spec.hostname || a"}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ b || a }}", operator: Equals, value: x}]}}}`,
			`[{containers: []}, {containers: [], nodeName: x}, {containers: [], nodeName: ""}, {containers: [], nodeName: "", schedulerName: x}, {containers: [], schedulerName: x}, {containers: [], schedulerName: "", hostname: x}, {containers: [], nodeName: "", hostname: x}, {containers: [], hostname: x}, {containers: [], nodeName: a, hostname: x}]`},
		{"a condition in a text, of what an update changes", "v1", "Pod", `validate: {deny: {conditions: {any: [{key: "p-{{ request.object.spec.nodeName && request.object.spec.schedulerName }}", operator: NotEquals, value: x}]}}}`,
			`[{containers: [], hostname: c}, {containers: []}, {containers: [], nodeName: a}, {containers: [], nodeName: a, hostname: c}, {containers: [], nodeName: a, schedulerName: b}, {containers: [], nodeName: a, schedulerName: b, hostname: c}, {containers: [], nodeName: "", hostname: c}, {containers: [], nodeName: "", schedulerName: b}]`},
		{"conditions in a text, of what an update changes", "v1", "Pod", `validate: {deny: {conditions: {any: [{key: "p-{{ request.object.spec.nodeName && request.object.spec.schedulerName }}-{{ request.object.spec.hostname }}", operator: NotEquals, value: x}]}}}`,
			`[{containers: [], hostname: c}, {containers: []}, {containers: [], nodeName: a}, {containers: [], nodeName: a, hostname: c}, {containers: [], nodeName: a, schedulerName: b}, {containers: [], nodeName: a, schedulerName: b, hostname: c}, {containers: [], nodeName: "", hostname: c}, {containers: [], nodeName: "", schedulerName: b}]`},
		{"a default for what names an entry that fails", "v1", "Pod", `context: [{name: c, variable: {jmesPath: "request.object.spec.schedulerName || request.object.spec.nodeName"}}, {name: d, variable: {jmesPath: "request.object.spec.nodeName || c && request.object.spec.hostname || !(c)", default: x}}], validate: {deny: {conditions: {all: [{key: "{{ to_string(d) }}", operator: AnyIn, value: [x, y]}]}}}`,
			`[{containers: []}, {containers: [], nodeName: a}, {containers: [], nodeName: x}, {containers: [], schedulerName: x}, {containers: [], nodeName: "", schedulerName: x}]`},
		{"a function of what may be in no list, in a word", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {all: [{key: "{{ ends_with(request.object.spec.containers[0].name, 'b') }}", operator: In, value: ['a | b']}]}}}`,
			`[{containers: [{name: b}]}, {containers: []}]`},
		{"a field after a field, and no key", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {all: [{operator: LessThan, value: "{{ (request.object.spec.nodeName) && (request.object.spec.schedulerName) }}"}]}}}`,
			`[{containers: []}, {containers: [], nodeName: a}, {containers: [], nodeName: a, schedulerName: b}, {containers: [], nodeName: ""}]`},
		{"a field after an old field, and no key", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {all: [{operator: LessThan, value: "{{ (request.oldObject.spec.nodeName) && (request.object.spec.schedulerName) }}"}]}}}`,
			`[{containers: [], nodeName: a}, {containers: []}, {containers: [], schedulerName: b}]`},
		{"a field after a number or nothing, and no key", "v1", "Pod", `preconditions: {any: [{operator: Equals, value: "{{ (request.object.spec.priority || '') && (request.object.spec.nodeName) }}"}]}, validate: {allowExistingViolations: false, deny: {}}`,
			`[{containers: []}, {containers: [], priority: 1}, {containers: [], priority: 1, nodeName: a}, {containers: [], nodeName: a}]`},
		{"a field after a field, among words", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {all: [{key: a, operator: AnyIn, value: "{{ request.object.spec.nodeName && request.object.spec.containers }}"}]}}}`,
			`[{containers: []}, {containers: [], nodeName: a}, {containers: [{name: a}], nodeName: ""}]`},
		{"a default that is not there, and a default for it", "x.io/v1", "Gadget", `context: [{name: v, variable: {default: "{{ request.object.spec.a }}"}}], preconditions: {any: [{key: "{{ v || '5' }}", operator: AnyIn}]}, validate: {allowExistingViolations: false, deny: {}}`,
			`[{}, {a: b}, {a: null}, {a: [1]}]`},
		{"a default that is not there, and part of it", "v1", "Pod", "context: [{name: v, variable: {jmesPath: request.object.spec.nodeName || `true`, default: '{{ request.object.spec.schedulerName }}'}}], preconditions: {all: [{key: \"{{ (v || `[]`) | [0] }}\", operator: LessThanOrEquals}]}, validate: {allowExistingViolations: false, deny: {}}",
			`[{containers: []}, {containers: [], nodeName: a}, {containers: [], schedulerName: a}]`},
		{"a default that is not there, which nobody needs", "v1", "Pod", "context: [{name: v, variable: {jmesPath: request.object.spec.nodeName, default: '{{ request.object.spec.schedulerName }}'}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: '{{ v }}', operator: Equals, value: a}]}}}",
			`[{containers: []}, {containers: [], nodeName: a}, {containers: [], nodeName: b}, {containers: [], schedulerName: a}, {containers: [], nodeName: b, schedulerName: a}, {containers: [], nodeName: a, schedulerName: b}]`},
		{"a default that is null", "x.io/v1", "Gadget", "context: [{name: v, variable: {jmesPath: request.object.spec.a, default: '{{ request.object.spec.b }}'}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: '{{ v }}', operator: Equals, value: a}]}}}",
			`[{}, {a: a}, {b: a}, {b: null}, {a: a, b: null}, {a: null, b: null}, {a: null, b: a}, {a: b, b: a}]`},
		{"a default in a text", "v1", "Pod", "context: [{name: v, variable: {jmesPath: request.object.spec.nodeName, default: 'a{{ request.object.spec.schedulerName }}'}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: '{{ v }}', operator: Equals, value: aa}]}}}",
			`[{containers: []}, {containers: [], nodeName: aa}, {containers: [], nodeName: b}, {containers: [], schedulerName: a}, {containers: [], nodeName: b, schedulerName: a}, {containers: [], nodeName: aa, schedulerName: b}]`},
		{"keys in no order", "v1", "Pod", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.metadata.name && keys(request.object.spec.nodeSelector) }}", operator: LessThan, value: 5}]}}}`,
			`[{containers: []}, {containers: [], nodeSelector: {a: b}}, {containers: [], nodeSelector: {}}]`},
		{"keys of a value, in no order", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.metadata.name && keys(request.object.spec.m) }}", operator: LessThan, value: 5}]}}}`,
			`[{}, {m: {a: b}}, {m: {}}, {m: null}, {m: a}, {m: [a]}]`},
	} {
		t.Run(s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
	}
}
