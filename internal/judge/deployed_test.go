package judge_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

func deployed(t *testing.T, text string) judge.Deployed {
	t.Helper()
	objects, found := manifest.Read("native.yaml", []byte(text))
	var d judge.Deployed
	for _, o := range objects {
		found = append(found, d.Add(o)...)
	}
	if found = append(found, d.Check(apiserver.NewChecker(cel.Default), cel.Default.String())...); len(found) > 0 {
		t.Fatal(found)
	}
	return d
}

// native is a native policy on Pods, with a binding.
func native(name, annotations, expression, namespaces string) string {
	return `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + name + `, annotations: {` + annotations + `}}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "` + expression + `"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + name + `}
spec:
  policyName: ` + name + `
  validationActions: [Audit]
  matchResources: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [` + namespaces + `]}]}}
`
}

func madeFrom(policy, rule string) string {
	return `kvap.dev/translation: '{"members":[{"policy":"` + policy + `","rule":"` + rule + `"}],"validations":[{"member":0}]}'`
}

// TestDeployed pins what native objects are held against.
func TestDeployed(t *testing.T) {
	for name, c := range map[string]struct{ native, want string }{
		"in place of the translation": {
			native("p", madeFrom("p", "label"), "true", "kube-system"), "p/label allow fail differ",
		},
		"in two parts, of which the first holds": { // as the controller writes a rule that is another one on UPDATE
			strings.Replace(native("p", `kvap.dev/translation: '{"members":[{"policy":"p","rule":"label","path":"spec.rules[0]"},{"policy":"p","rule":"label","path":"spec.rules[0]"}],"validations":[{},{"member":1}]}'`,
				"true", "kube-system"), `[{expression: "true"}]`, `[{expression: "true"}, {expression: "false"}]`, 1), "p/label deny fail",
		},
		"edited by hand": { // so it does not say what it is made of
			native("p", strings.Replace(madeFrom("p", "label"), `[{"member":0}]`, `[]`, 1), "true", "kube-system"),
			"p/label deny fail\np/p allow fail differ",
		},
		"written by hand, with the name of a policy": {
			native("p", "", "false", "kube-system"), "p/label deny fail\np/p deny fail",
		},
		"written by hand": {native("q", "", "false", "kube-system"), "p/label deny fail\nq/q deny none"},
		"of a rule that is gone": {
			native("p", madeFrom("p", "old"), "false", "kube-system"), "p/label deny fail\np/old deny none",
		},
		"of a policy that is not there": {
			native("q", madeFrom("q", "label"), "false", "kube-system"), "p/label deny fail\nq/label deny none",
		},
		"of one rule of several": { // the expansion is deployed nowhere, and says nothing of pods
			native("p", madeFrom("p", "autogen-label"), "true", "kube-system"), "p/label nomatch fail differ\np/autogen-label allow none",
		},
		"where the binding leaves the namespace out": {
			native("p", madeFrom("p", "label"), "false", "default"), "p/label nomatch fail",
		},
		"in two objects, of which the graver counts": {
			native("p", madeFrom("p", "label"), "true", "x") + native("p-1", madeFrom("p", "label"), "false", "x"), "p/label deny fail",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, found := policy.Parse("p.yaml", []byte(labelPolicy("ClusterPolicy", "p", "b")))
			if found.HasErrors() {
				t.Fatal(found)
			}
			j, err := judge.Compile(compile.Input{Policies: f.Policies},
				compile.Options{Translate: translate.Options{Release: cel.Latest, Schemas: schemas(t)}}, judge.ClusterState{Deployed: deployed(t, c.native)})
			if err != nil {
				t.Fatal(err)
			}
			opinions, err := j.Judge(context.Background(), request(t, judge.Client{}, pod))
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, o := range opinions {
				if o.Native == "nomatch" && o.Status == "none" {
					continue
				}
				line := o.Rule.Rule.PolicyName() + "/" + o.Rule.Name + " " + string(o.Native) + " " + string(o.Status)
				if !o.Agree() {
					line += " differ"
				}
				lines = append(lines, line)
			}
			if d := textdiff.Values(c.want, strings.Join(lines, "\n")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestOpenIsOfTheGravest: of two objects of a rule, the failure policy of the one whose error counts
// says whether that admits.
func TestOpenIsOfTheGravest(t *testing.T) {
	f, found := policy.Parse("p.yaml", []byte(labelPolicy("ClusterPolicy", "p", "b")))
	if found.HasErrors() {
		t.Fatal(found)
	}
	errs := native("p", madeFrom("p", "label"), "object.spec.missing == 'a'", "x")
	holds := native("p-1", madeFrom("p", "label"), "true", "x")
	ignored := func(text string) string {
		return strings.Replace(text, "spec:\n", "spec:\n  failurePolicy: Ignore\n", 1)
	}
	for name, c := range map[string]struct {
		native string
		open   bool
	}{
		"the other one ignores": {errs + ignored(holds), false},
		"it ignores":            {ignored(errs) + holds, true},
	} {
		j, err := judge.Compile(compile.Input{Policies: f.Policies},
			compile.Options{Translate: translate.Options{Release: cel.Latest, Schemas: schemas(t)}}, judge.ClusterState{Deployed: deployed(t, c.native)})
		if err != nil {
			t.Fatal(err)
		}
		opinions, err := j.Judge(context.Background(), request(t, judge.Client{}, pod))
		if err != nil {
			t.Fatal(err)
		}
		if o := opinions[0]; o.Native != apiserver.Error || o.Open != c.open {
			t.Errorf("%s: %s, open %v, want error, open %v", name, o.Native, o.Open, c.open)
		}
	}
}
