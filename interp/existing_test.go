package interp

import "testing"

func TestExistingViolations(t *testing.T) {
	const bad, worse, good = `{metadata: {name: a, namespace: team}, spec: {x: 2}}`, `{metadata: {name: a, namespace: team}, spec: {x: 3, z: 1}}`, `{metadata: {name: a, namespace: team}, spec: {x: 1}}`
	const enforced = "validate: {failureAction: Enforce, pattern: {spec: {x: 1}}}"
	tests := []struct {
		note, rule, old, new string
		want                 Status
	}{
		{"the old one violates too", enforced, bad, worse, Skip},
		{"the old one does not", enforced, good, bad, Fail},
		{"the new one does not", enforced, bad, good, Pass},
		{"Audit exempts nothing", "validate: {failureAction: Audit, pattern: {spec: {x: 1}}}", bad, worse, Fail},
		{"not allowed", "validate: {failureAction: Enforce, allowExistingViolations: false, pattern: {spec: {x: 1}}}", bad, worse, Fail},
		{"rules with preconditions are never exempted", "preconditions: {all: [{key: a, operator: Equals, value: a}]}\n" + enforced, bad, worse, Fail},
		{"foreach as a whole", "validate: {failureAction: Enforce, foreach: [{list: request.object.spec.l, pattern: {x: 1}}]}",
			`{spec: {l: [{x: 9}]}}`, `{spec: {l: [{x: 1}, {x: 2}]}}`, Skip},
		{"deny looks at the old object as if created", `validate: {failureAction: Enforce, deny: {conditions: {all: [{key: "{{ request.operation }}", operator: Equals, value: UPDATE}]}}}`, bad, worse, Fail},
		{"the old object has no old object", `validate: {failureAction: Enforce, deny: {conditions: {all: [{key: "{{ request.oldObject.spec.x }}", operator: Equals, value: 2}]}}}`, bad, worse, Fail},
		{"patterns keep the new object's values", `validate: {failureAction: Enforce, pattern: {spec: {x: "{{ request.object.spec.w }}"}}}`,
			`{spec: {x: 1, w: 2}}`, `{spec: {x: 2, w: 1}}`, Fail},
		{"entries that were loaded keep their values", `
context: [{name: c, variable: {jmesPath: request.object.spec.x}}]
validate: {failureAction: Enforce, deny: {conditions: {all: [{key: "{{ c }}", operator: Equals, value: 2}]}}}`,
			`{spec: {x: 1}}`, `{spec: {x: 2}}`, Skip},
		{"what Kyverno calls an error excuses nothing", "validate: {failureAction: Enforce, pattern: {spec: {^(l): [{a: b}], r: 3}}}", `{spec: {r: 4}}`, `{spec: {r: 5}}`, Fail},
		{"nor on one side", "validate: {failureAction: Enforce, pattern: {spec: {^(l): [{a: b}], r: 3}}}", `{spec: {r: 4}}`, `{spec: {r: 5, l: [{a: b}]}}`, Fail},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := judgeOne(t, widgetPolicy(tt.rule), &Request{Admission: admissionRequest("UPDATE", object(t, tt.new), object(t, tt.old))}, nil)
			if got.Status != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}

func TestExistingViolationsMatchTheOldObject(t *testing.T) {
	tests := []struct {
		note, filter string
		want         Status
	}{
		{"by kind", `{resources: {kinds: [Widget]}}`, Skip},
		{"the old object does not match", `{resources: {kinds: [Widget], selector: {matchLabels: {new: "yes"}}}}`, Fail},
		{"rules for updates are never exempted", `{resources: {kinds: [Widget], operations: [UPDATE]}}`, Fail},
		{"nor rules by user", `{resources: {kinds: [Widget]}, subjects: [{kind: User, name: "*"}]}`, Fail},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := judgeOne(t, matchPolicy("any: ["+tt.filter+"]"), &Request{Action: "Enforce", Admission: admissionRequest("UPDATE",
				object(t, `{metadata: {name: a, labels: {new: "yes"}}}`), object(t, `{metadata: {name: a}}`))}, nil)
			if got.Status != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}

func TestExistingPodSecurity(t *testing.T) {
	source := `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  background: false
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {failureAction: Enforce, podSecurity: {level: baseline}}
`
	bad, good := object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {hostPID: true}}`), object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {}}`)
	for _, tt := range []struct {
		object, old map[string]any
		want        Status
	}{{bad, bad, Skip}, {bad, good, Fail}, {good, bad, Pass}, {good, good, Pass}} {
		if got := judgeOne(t, source, &Request{Admission: admissionRequest("UPDATE", tt.object, tt.old)}, nil); got.Status != tt.want {
			t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
		}
	}
}
