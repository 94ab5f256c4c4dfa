package translate_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/diag"
)

const validatingPolicy = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata:
  name: team
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        resources: [pods]
  matchConditions:
    - name: not-system
      expression: "!(object.metadata.name.startsWith('system-'))"
    - name: labelled-namespace
      expression: namespaceObject.metadata.?labels.checked.orValue('') == 'yes'
  variables:
    - name: team
      expression: object.metadata.?labels.team.orValue('')
  validations:
    - expression: variables.team != ''
      message: a team, please
    - expression: "!has(object.spec.hostNetwork)"
      messageExpression: "'no host network for ' + variables.team"
`

func TestValidatingPolicy(t *testing.T) {
	t.Parallel()
	p := translateText(t, validatingPolicy, setting{namespaces: map[string]map[string]string{"app": {"checked": "yes"}}})
	if got := p.targets(); got != "native" {
		t.Fatalf("%s\n%v", got, p.result.Diagnostics)
	}
	t.Log(p.yaml(t))
	labelled := `,"labels":{"team":"a"}`
	deployment := func(podLabels, spec string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"app"},"spec":{"template":{"metadata":{"name":"web"` + podLabels + `},"spec":{` + spec + `}}}}`
	}
	p.try(t, []trial{
		{name: "pass", object: pod(labelled, ""), want: "allow"},
		{name: "fail", object: pod("", ""), want: "deny refused: a team, please"},
		{name: "message expression", object: pod(labelled, `"hostNetwork": true`), want: "deny refused: no host network for a"},
		{name: "condition", object: strings.ReplaceAll(pod("", ""), `"web"`, `"system-a"`), want: "nomatch"},
		{name: "namespace", object: strings.ReplaceAll(pod("", ""), `"app"`, `"other"`), want: "allow"},
		{name: "deletion", operation: "DELETE", object: pod("", ""), want: "nomatch"},
		{name: "controller passes", object: deployment(labelled, ""), want: "allow"},
		{name: "controller fails", object: deployment("", ""), want: "deny refused: a team, please"},
		{name: "controller fails in the pod's spec", object: deployment(labelled, `"hostNetwork": true`), want: "deny refused: no host network for a"},
		{name: "cron job fails", object: `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"web","namespace":"app"},"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"name":"web"},"spec":{}}}}}}`, want: "deny refused"},
	})
}

func TestValidatingPolicyForms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, from, to, want string }{
		{"all controllers", "", "", "team: pods; team-autogen: daemonsets deployments replicasets statefulsets, jobs; team-autogen-cronjob: cronjobs"},
		{"some controllers", "  validationActions", "  autogen: {podControllers: {controllers: [deployments, cronjobs]}}\n  validationActions", "team: pods; team-autogen: deployments; team-autogen-cronjob: cronjobs"},
		{"none", "  validationActions", "  autogen: {podControllers: {controllers: []}}\n  validationActions", "team: pods"},
		{"not only pods", "[pods]", "[pods, services]", "team: pods services"},
		{"by name", "resources: [pods]", "resources: [pods]\n        resourceNames: [a]", "team: pods"},
		{"by label", "    resourceRules", "    objectSelector: {matchLabels: {a: b}}\n    resourceRules", "team: pods"},
		{"namespaced", "kind: ValidatingPolicy\nmetadata:", "kind: NamespacedValidatingPolicy\nmetadata:\n  namespace: app", "app.team: pods Namespaced; app.team-autogen: daemonsets deployments replicasets statefulsets Namespaced, jobs Namespaced; app.team-autogen-cronjob: cronjobs Namespaced"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := translateText(t, strings.Replace(validatingPolicy, tt.from, tt.to, 1), setting{})
			var forms []string
			for _, o := range p.result.Objects {
				var rules []string
				for _, r := range o.Policy.Spec.MatchConstraints.ResourceRules {
					words := slices.Clone(r.Resources)
					if *r.Scope != "*" {
						words = append(words, string(*r.Scope))
					}
					rules = append(rules, strings.Join(words, " "))
				}
				forms = append(forms, o.Policy.Name+": "+strings.Join(rules, ", "))
			}
			if got := strings.Join(forms, "; "); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestValidatingPolicyTargets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, from, to, want, message string }{
		{"native", "", "", "native", ""},
		{"JSON", "  validationActions", "  evaluation: {mode: JSON}\n  validationActions", "unsupported KV215", "JSON documents"},
		{"background", "  validationActions", "  evaluation: {admission: {enabled: false}}\n  validationActions", "unsupported KV210", "background scans"},
		{"function of Kyverno", "variables.team != ''", "resource.Get('v1', 'configmaps', 'app', 'a').data.x == 'y'", "webhook KV202", "resource.Get"},
		{"variable of Kyverno", "variables.team != ''", "images.containers.size() > 0", "webhook KV202", "images"},
		{"syntax", "variables.team != ''", "variables.team !=", "webhook KV112", "at 1:18"},
		{"condition on a variable", "!(object.metadata.name.startsWith('system-'))", "variables.team != ''", "webhook KV112", "undeclared reference to 'variables'"},
		{"no bool", "variables.team != ''", "object.metadata.name", "webhook KV201", "must evaluate to bool"},
		{"newer function", "variables.team != ''", "variables.team.split('').distinct().size() > 0", "webhook KV213", "distinct needs Kubernetes 1.35"},
		{"message of the wrong type", "'no host network for ' + variables.team", "1", "native KV303", "messageExpression"},
		{"no rules", "    resourceRules:\n      - apiGroups: [\"\"]\n        apiVersions: [v1]\n        operations: [CREATE, UPDATE]\n        resources: [pods]", "    resourceRules: []", "webhook KV207", "resourceRules"},
		{"risky annotation", "  validations:", "  auditAnnotations: [{key: a, valueExpression: object.metadata.annotations.b}]\n  validations:", "native KV310", "audit annotation a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := translateText(t, strings.Replace(validatingPolicy, tt.from, tt.to, 1), setting{})
			if got := p.targets(); got != tt.want {
				t.Errorf("got %s, want %s\n%v", got, tt.want, p.result.Diagnostics)
			}
			text := ""
			for _, d := range p.result.Diagnostics {
				if d.Severity != diag.Note {
					text += d.Message + "\n"
				}
			}
			if !strings.Contains(text, tt.message) || (tt.message == "") != (text == "") {
				t.Errorf("got %q, want %q in it", text, tt.message)
			}
		})
	}
}

func TestNamespacedValidatingPolicy(t *testing.T) {
	t.Parallel()
	text := strings.Replace(validatingPolicy, "kind: ValidatingPolicy\nmetadata:", "kind: NamespacedValidatingPolicy\nmetadata:\n  namespace: app", 1)
	p := translateText(t, text, setting{namespaces: map[string]map[string]string{"app": {"checked": "yes"}, "other": {"checked": "yes"}}})
	p.try(t, []trial{
		{name: "its namespace", object: pod("", ""), want: "deny refused"},
		{name: "another namespace", object: strings.ReplaceAll(pod("", ""), `"app"`, `"other"`), want: "nomatch"},
	})
}

func TestValidatingPolicyActions(t *testing.T) {
	t.Parallel()
	for actions, want := range map[string]string{"[Deny]": "Deny", "[Audit, Warn]": "Warn Audit", "[Warn, Deny, Audit]": "Deny Audit"} {
		p := translateText(t, strings.Replace(validatingPolicy, "[Deny]", actions, 1), setting{})
		var got []string
		for _, a := range p.result.Objects[0].Bindings[0].Spec.ValidationActions {
			got = append(got, string(a))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", actions, got, want)
		}
	}
}

// An error of a ValidatingPolicy is what its failure policy makes of it.
func TestValidatingPolicyErrors(t *testing.T) {
	t.Parallel()
	risky := strings.Replace(validatingPolicy, "variables.team != ''", "object.metadata.annotations.team != ''", 1)
	for policy, want := range map[string]string{"Fail": "error refused", "Ignore": "error"} {
		text := strings.Replace(risky, "spec:", "spec:\n  failurePolicy: "+policy, 1)
		p := translateText(t, text, setting{namespaces: map[string]map[string]string{"app": {"checked": "yes"}}})
		outcome, refused, _ := p.verdict(t, objectRequest(t, string(admissionv1.Create), pod("", ""), ""))
		got := string(outcome)
		if refused {
			got += " refused"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", policy, got, want)
		}
	}
}

// An object that a request does not have is an empty one in Kyverno, and null natively.
func TestValidatingPolicyWithoutOldObject(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, DELETE], resources: [configmaps]}, {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}
  validations: [{expression: "EXPRESSION", message: bad}]
`
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"app"}}`
	for expression, want := range map[string]string{
		"oldObject == null": "deny refused: bad",
		"oldObject != null": "allow",
		"oldObject == {}":   "allow",
		"size(oldObject) == 0 && !has(oldObject.metadata) && oldObject.?metadata.name.orValue('z') == 'z'": "allow",
		"(request.operation == 'DELETE' ? oldObject : object).metadata.name == 'web'":                      "allow",
	} {
		p := translateText(t, strings.ReplaceAll(text, "EXPRESSION", expression), setting{})
		if got := p.targets(); got != "native" {
			t.Fatalf("%s: %s\n%v", expression, got, p.result.Diagnostics)
		}
		p.try(t, []trial{{name: expression, object: object, want: want}})
	}
}

// Functions and variables of Kyverno's own are named by what they are called with.
func TestValidatingPolicyOfKyvernosFunctions(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"resource.get('v1', 'configmaps', 'a', 'b').data.k == 'v'": "no function resource.get",
		"hash.md5(object.metadata.name) == ''":                     "no function hash.md5",
		"base64.encode(b'a') == ''":                                "no function base64.encode",
		"math.greatest(1, 2) == 2":                                 "no function math.greatest",
		"regex.replace('a', 'a', 'b') == 'b'":                      "no function regex.replace",
		"size(exceptions) == 0":                                    "no variable exceptions",
	} {
		text := strings.Replace(validatingPolicy, "variables.team != ''", `"`+expression+`"`, 1)
		p := translateText(t, text, setting{})
		if !slices.ContainsFunc(p.result.Diagnostics, func(d diag.Diagnostic) bool {
			return d.Code == diag.NoFunction && strings.Contains(d.Message, want)
		}) {
			t.Errorf("%s: %v", expression, p.result.Diagnostics)
		}
	}
}

// A condition on the namespace guards the validations, where it is false beside one that errs.
func TestValidatingPolicyConditionsBesideTheNamespace(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  validationActions: [Deny]
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  matchConditions:
  - {name: a, expression: "namespaceObject.metadata.?labels.?checked.orValue('') == 'yes'"}
  - {name: b, expression: "object.metadata.labels.app == 'a'"}
  validations: [{expression: "false"}]
`
	for checked, want := range map[string]string{"no": "allow", "yes": "error"} {
		p := translateText(t, text, setting{namespaces: map[string]map[string]string{"app": {"checked": checked}}})
		outcome, _, message := p.verdict(t, objectRequest(t, string(admissionv1.Create), pod("", ""), ""))
		if string(outcome) != want {
			t.Errorf("checked %s: %s (%s), want %s", checked, outcome, message, want)
		}
	}
}

// In Kyverno the namespace of a Namespace is the one that is stored; natively there is none.
func TestValidatingPolicyOnNamespaces(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  validationActions: [Deny]
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [RESOURCES], operations: [OPERATION]}]}
  validations: [{expression: "namespaceObject.metadata.name == 'app'"}]
`
	for of, want := range map[string]string{
		"namespaces UPDATE": "webhook KV201", "'*' UPDATE": "webhook KV201", "namespaces CREATE": "native", "pods UPDATE": "native",
	} {
		resources, operation, _ := strings.Cut(of, " ")
		p := translateText(t, strings.NewReplacer("RESOURCES", resources, "OPERATION", operation).Replace(text), setting{})
		if got, _, _ := strings.Cut(p.targets(), " KV3"); got != want {
			t.Errorf("%s: %s, want %s", of, got, want)
		}
	}
}
