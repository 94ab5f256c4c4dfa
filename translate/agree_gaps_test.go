package translate_test

import (
	"testing"

	"github.com/kvap/kvap/translate"
)

// Constructs that were once read in another way than the interpreter reads them.
func TestGapsAgree(t *testing.T) {
	schemas := builtin(t, 34)
	for _, s := range []sample{
		{"a list in a range", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.x }}", operator: AnyNotIn, value: "5-100"}]}}}`,
			`[{x: [7]}, {x: [7, 101]}, {x: [abc]}, {x: ["5-100"]}, {x: ["7", "5-100"]}, {x: []}, {x: [null]}, {x: [true]}, {x: "5-100"}, {x: abc}, {x: 3}, {x: [[7]]}, {x: [{a: 1}]}]`},
		{"no list in a range", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.x }}", operator: AllNotIn, value: "5-100"}]}}}`,
			`[{x: [7]}, {x: [7, 101]}, {x: [abc]}, {x: ["5-100"]}, {x: ["7", "5-100"]}, {x: []}, {x: [null]}, {x: "5-100"}, {x: abc}]`},
		{"some of a list in a range", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.x }}", operator: AnyIn, value: "0-100"}]}}}`,
			`[{x: [7]}, {x: [7, 101]}, {x: [abc]}, {x: ["0-100"]}, {x: ["a", "0-100"]}, {x: []}, {x: [null]}]`},
		{"all of a list in a range", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.x }}", operator: AllIn, value: "0-100"}]}}}`,
			`[{x: [7]}, {x: [7, 101]}, {x: ["0-100"]}, {x: []}, {x: [null, 5]}, {x: [1.5]}]`},
		{"a list in a range that has a sign", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.x }}", operator: AnyNotIn, value: "-5-10"}]}}}`,
			`[{x: [7]}, {x: [7, 101]}, {x: [abc]}, {x: ["-5-10"]}, {x: []}, {x: [-7]}]`},
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
		{"a function over parts that are missing", "x.io/v1", "Gadget", "validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: \"{{ request.object.spec.[a, b][].to_upper(@) }}\", operator: AnyIn, value: [X]}]}}}",
			`[{}, {a: x}, {a: x, b: "y"}, {a: z, b: x}, {a: [x], b: x}, {a: null, b: x}]`},
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
		{"an entry of a name that is taken", "x.io/v1", "Gadget", `context: [{name: b, variable: {jmesPath: "request.object.spec.m.q"}}, {name: b, variable: {jmesPath: "request.object.spec.w || b", default: none}}, {name: d, variable: {jmesPath: "b"}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ request.object.spec.z || d }}", operator: Equals, value: x}]}}}`,
			`[{}, {m: {q: x}}, {m: {q: ""}}, {m: {q: null}}, {m: []}, {w: x}, {w: x, m: {q: a}}, {w: "", m: {q: x}}, {w: 0, m: {q: x}}, {z: x}, {z: x, m: {q: ""}}, {z: "", m: {q: false}}]`},
		{"a variable that takes itself twice", "x.io/v1", "Gadget", `context: [{name: b, variable: {jmesPath: "request.object.spec.m.q"}}, {name: b, variable: {jmesPath: "b || request.object.spec.w || b"}}, {name: b, variable: {jmesPath: "b || request.object.spec.z || b", default: none}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ b }}", operator: Equals, value: x}]}}}`,
			`[{}, {m: {q: x}}, {m: {q: ""}}, {m: {q: null}}, {m: []}, {w: x}, {w: x, m: {q: a}}, {w: "", m: {q: x}}, {w: 0, m: {q: x}}, {z: x}, {z: x, m: {q: ""}}, {z: "", m: {q: false}}]`},
		{"variables each of the one before, twice", "x.io/v1", "Gadget", `context: [{name: a, variable: {jmesPath: "request.object.spec.m.q"}}, {name: b, variable: {jmesPath: "a || request.object.spec.w || a"}}, {name: c, variable: {jmesPath: "b || request.object.spec.z || b || 'x'"}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ c || request.object.spec.w || b }}", operator: Equals, value: x}]}}}`,
			`[{}, {m: {q: x}}, {m: {q: ""}}, {m: {q: null}}, {m: []}, {w: x}, {w: x, m: {q: a}}, {w: "", m: {q: x}}, {w: 0, m: {q: x}}, {z: x}, {z: x, m: {q: ""}}, {z: "", m: {q: false}}]`},
		{"alternatives of alternatives, and their opposite", "x.io/v1", "Gadget", `context: [{name: a, variable: {jmesPath: "request.object.spec.m.q || request.object.spec.w", default: x}}, {name: b, variable: {jmesPath: "a && request.object.spec.z || !a || a"}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ b || a }}", operator: Equals, value: x}]}}}`,
			`[{}, {m: {q: x}}, {m: {q: ""}}, {m: {q: null}}, {m: []}, {w: x}, {w: x, m: {q: a}}, {w: "", m: {q: x}}, {w: 0, m: {q: x}}, {z: x}, {z: x, m: {q: ""}}, {z: "", m: {q: false}}]`},
		{"labels each of the one before, twice", "v1", "Pod", `context: [{name: a, variable: {jmesPath: "request.object.spec.nodeName || request.object.spec.schedulerName || request.object.spec.nodeName"}}, {name: b, variable: {jmesPath: "a || request.object.spec.hostname || a"}}], validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "{{ b || a }}", operator: Equals, value: x}]}}}`,
			`[{containers: []}, {containers: [], nodeName: x}, {containers: [], nodeName: ""}, {containers: [], nodeName: "", schedulerName: x}, {containers: [], schedulerName: x}, {containers: [], schedulerName: "", hostname: x}, {containers: [], nodeName: "", hostname: x}, {containers: [], hostname: x}, {containers: [], nodeName: a, hostname: x}]`},
		{"a list in a text, after what is missing", "x.io/v1", "Gadget", `validate: {allowExistingViolations: false, deny: {conditions: {any: [{key: "p-{{ request.object.spec.z }}-{{ request.object.spec.z || request.object.spec.x }}", operator: Equals, value: p-a-a}]}}}`,
			`[{x: [a]}, {x: {a: b}}, {x: a}, {z: a}, {z: a, x: [a]}, {z: [a], x: b}, {z: "", x: [a]}, {z: null, x: a}, {}]`},
		{"a condition in a text, of what an update changes", "v1", "Pod", `validate: {deny: {conditions: {any: [{key: "p-{{ request.object.spec.nodeName && request.object.spec.schedulerName }}", operator: NotEquals, value: x}]}}}`,
			`[{containers: [], hostname: c}, {containers: []}, {containers: [], nodeName: a}, {containers: [], nodeName: a, hostname: c}, {containers: [], nodeName: a, schedulerName: b}, {containers: [], nodeName: a, schedulerName: b, hostname: c}, {containers: [], nodeName: "", hostname: c}, {containers: [], nodeName: "", schedulerName: b}]`},
		{"conditions in a text, of what an update changes", "v1", "Pod", `validate: {deny: {conditions: {any: [{key: "p-{{ request.object.spec.nodeName && request.object.spec.schedulerName }}-{{ request.object.spec.hostname }}", operator: NotEquals, value: x}]}}}`,
			`[{containers: [], hostname: c}, {containers: []}, {containers: [], nodeName: a}, {containers: [], nodeName: a, hostname: c}, {containers: [], nodeName: a, schedulerName: b}, {containers: [], nodeName: a, schedulerName: b, hostname: c}, {containers: [], nodeName: "", hostname: c}, {containers: [], nodeName: "", schedulerName: b}]`},
		{"a default for what names an entry that fails", "v1", "Pod", `context: [{name: c, variable: {jmesPath: "request.object.spec.schedulerName || request.object.spec.nodeName"}}, {name: d, variable: {jmesPath: "request.object.spec.nodeName || c && request.object.spec.hostname || !(c)", default: x}}], validate: {deny: {conditions: {all: [{key: "{{ to_string(d) }}", operator: AnyIn, value: [x, y]}]}}}`,
			`[{containers: []}, {containers: [], nodeName: a}, {containers: [], nodeName: x}, {containers: [], schedulerName: x}, {containers: [], nodeName: "", schedulerName: x}]`},
	} {
		t.Run(s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
	}
}
