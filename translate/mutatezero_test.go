package translate_test

import (
	"strings"
	"testing"
)

// An API server drops a field that is false, 0 or empty between two mutations, so that a rule
// which asks whether it is there has no native form behind one that writes it.
func TestMutateZero(t *testing.T) {
	t.Parallel()
	for second, want := range map[string]string{
		`{spec: {+(hostNetwork): true}}`:                             "webhook KV201",
		`{spec: {(hostNetwork): false}, metadata: {labels: {a: b}}}`: "webhook KV201",
		`{spec: {+(hostPID): true}}`:                                 "native",
		`{spec: {hostNetwork: true}}`:                                "native",
	} {
		rules := mutateRule("    mutate: {patchStrategicMerge: {spec: {hostNetwork: false}}}") +
			strings.Replace(mutateRule("    mutate: {patchStrategicMerge: "+second+"}"), "name: r", "name: s", 1)
		p := translateText(t, mutateHead+rules, setting{release: 36, mutations: true})
		if native := len(p.result.Mutating) > 0; native != (want == "native") {
			t.Errorf("%s: %s, want %s", second, p.targets(), want)
		}
	}
}

// Nor has one that asks for a field of an element that one before it adds, where an API server
// gives such elements that field in between.
func TestMutateDefaulted(t *testing.T) {
	t.Parallel()
	const asks = `{patchStrategicMerge: {spec: {containers: [{(name): "*", +(imagePullPolicy): Always}]}}}`
	for first, want := range map[string]string{
		`{patchStrategicMerge: {spec: {containers: [{name: s, image: s}]}}}`:                                "webhook KV201",
		`{patchesJson6902: '[{op: add, path: /spec/containers/-, value: {name: s, image: s}}]'}`:            "webhook KV201",
		`{patchStrategicMerge: {spec: {containers: [{name: s, image: s, imagePullPolicy: IfNotPresent}]}}}`: "native",
		`{patchStrategicMerge: {spec: {initContainers: [{name: s, image: s}]}}}`:                            "native",
		`{patchStrategicMerge: {spec: {containers: [{(name): "*", tty: true}]}}}`:                           "native",
	} {
		rules := mutateRule("    mutate: "+first) + strings.Replace(mutateRule("    mutate: "+asks), "name: r", "name: s", 1)
		p := translateText(t, mutateHead+rules, setting{release: 36, mutations: true})
		if native := len(p.result.Mutating) > 0; native != (want == "native") {
			t.Errorf("%s: %s, want %s: %v", first, p.targets(), want, p.result.Diagnostics)
		}
	}
}
