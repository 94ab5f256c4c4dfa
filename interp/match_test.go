package interp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp/internal/wildcard"
)

func TestKindSelectors(t *testing.T) {
	pod := resourceKind{"", "v1", "Pod", ""}
	exec := resourceKind{"", "v1", "Pod", "exec"}
	ephemeral := resourceKind{"", "v1", "Pod", "ephemeralcontainers"}
	deployment := resourceKind{"apps", "v1", "Deployment", ""}
	scale := resourceKind{"apps", "v1", "Deployment", "scale"}
	tests := []struct {
		selector string
		kind     resourceKind
		want     bool
	}{
		{"Pod", pod, true},
		{"Pod", exec, false},
		{"Pod", ephemeral, true},
		{"v1/Pod", ephemeral, true},
		{"apps/v1/Pod", ephemeral, false},
		{"Pod/exec", exec, true},
		{"Pod.exec", exec, true},
		{"Pod/exec", pod, false},
		{"Pod/*", exec, true},
		{"Pod/*", pod, true},
		{"v1/Pod", pod, true},
		{"v2/Pod", pod, false},
		{"*/Pod", pod, true},
		{"*/Pod", exec, false},
		{"*", pod, true},
		{"*", exec, false},
		{"*/*", exec, true},
		{"*/*/*", scale, true},
		{"*/scale", scale, true},
		{"*/scale", exec, false},
		{"apps/v1/Deployment", deployment, true},
		{"apps/v1/Deployment/scale", scale, true},
		{"apps/v1/Deployment.scale", scale, true},
		{"apps/*/Deployment", deployment, true},
		{"batch/*/Deployment", deployment, false},
		{"*/v1/Deployment", deployment, false}, // version, kind and subresource
		{"v1/Deployment/scale", scale, true},
		{"Deploy*", deployment, true},
		{"core/v1/Pod", pod, false},
		{"a/b/c/d/e", pod, false},
		{"v1beta1/Pod", pod, false},
	}
	for _, tt := range tests {
		s, ok := parseKind(tt.selector)
		if got := ok && s.matches(tt.kind); got != tt.want {
			t.Errorf("%s of %v: want %v, got %v", tt.selector, tt.kind, tt.want, got)
		}
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]bool{
		"*": true, "v1": true, "v12": true, "v1alpha1": true, "v2beta10": true,
		"": false, "v": false, "1": false, "v1gamma1": false, "v1beta": false, "valpha1": false, "v1alpha1x": false,
	} {
		if got := isVersion(text); got != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

func TestWildcards(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"?", "", false}, {"?*", "x", true}, {"a*c", "abbc", true}, {"a*c", "abbd", false},
		{"a/*", "a/b/c", true}, {"?", "é", true}, {"??", "é", false}, {"*é*", "aéb", true}, {"", "", true}, {"", "a", false},
		{"**a", "ba", true}, {"*a*b*", "xaxbx", true}, {"a", "A", false}, {"*\n*", "a\nb", true}, {"a?c", "a\nc", true},
	}
	for _, tt := range tests {
		if got := wildcard.Match(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q of %q: want %v", tt.pattern, tt.text, tt.want)
		}
		glob := word{text: tt.pattern, glob: appendGlob([]globRune{}, tt.pattern, true)}
		if got := glob.matches(tt.text); got != tt.want {
			t.Errorf("glob %q of %q: want %v", tt.pattern, tt.text, tt.want)
		}
	}
}

func TestMatch(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: team-a, labels: {app: web, tier: front}, annotations: {a/b: c}}}`
	const cluster = `{apiVersion: x.io/v1, kind: Widget, metadata: {name: w}}`
	const namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {app: web}}}`
	tests := []struct {
		note, match, object string
		want                bool
	}{
		{"kind", `any: [{resources: {kinds: [Pod]}}]`, pod, true},
		{"another kind", `any: [{resources: {kinds: [Job]}}]`, pod, false},
		{"any: one is enough", `any: [{resources: {kinds: [Job]}}, {resources: {kinds: [Pod]}}]`, pod, true},
		{"all: every one", `all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod], names: [x]}}]`, pod, false},
		{"legacy", `resources: {kinds: [Pod]}`, pod, true},
		{"name", `any: [{resources: {kinds: [Pod], name: "web-*"}}]`, pod, true},
		{"names", `any: [{resources: {kinds: [Pod], names: [x, "web-?"]}}]`, pod, true},
		{"name and names", `any: [{resources: {kinds: [Pod], name: "web-*", names: [x]}}]`, pod, false},
		{"generateName", `any: [{resources: {kinds: [Pod], name: "web-*"}}]`, `{apiVersion: v1, kind: Pod, metadata: {generateName: web-, namespace: a}}`, true},
		{"namespaces", `any: [{resources: {kinds: [Pod], namespaces: ["team-*"]}}]`, pod, true},
		{"other namespaces", `any: [{resources: {kinds: [Pod], namespaces: [prod]}}]`, pod, false},
		{"namespaces of a Namespace", `any: [{resources: {kinds: [Namespace], namespaces: ["team-*"]}}]`, namespace, true},
		{"* of no namespace", `any: [{resources: {kinds: [Widget], namespaces: ["*"]}}]`, cluster, true},
		{"?* of no namespace", `any: [{resources: {kinds: [Widget], namespaces: ["?*"]}}]`, cluster, false},
		{"operations", `any: [{resources: {kinds: [Pod], operations: [CREATE]}}]`, pod, true},
		{"other operations", `any: [{resources: {kinds: [Pod], operations: [UPDATE, DELETE]}}]`, pod, false},
		{"annotations", `any: [{resources: {kinds: [Pod], annotations: {"a/*": "?"}}}]`, pod, true},
		{"annotations not there", `any: [{resources: {kinds: [Pod], annotations: {"a/*": "x"}}}]`, pod, false},
		{"selector", `any: [{resources: {kinds: [Pod], selector: {matchLabels: {app: web}}}}]`, pod, true},
		{"selector with wildcards", `any: [{resources: {kinds: [Pod], selector: {matchLabels: {"t*": "f?ont"}}}}]`, pod, true},
		{"selector that finds nothing", `any: [{resources: {kinds: [Pod], selector: {matchLabels: {"t*": back}}}}]`, pod, false},
		{"zeros stand for wildcards", `any: [{resources: {kinds: [Pod], selector: {matchLabels: {app: "w*z"}}}}]`, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b, labels: {app: w0z}}}`, true},
		{"selector expressions", `any: [{resources: {kinds: [Pod], selector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}}}]`, pod, false},
		{"namespaceSelector", `any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {env: "p*"}}}}]`, pod, true},
		{"namespaceSelector of a cluster-scoped object", `any: [{resources: {kinds: [Widget], namespaceSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}}}]`, cluster, true},
		{"namespaceSelector of a Namespace", `any: [{resources: {kinds: [Namespace], namespaceSelector: {matchLabels: {env: prod}}}}]`, namespace, false},
		{"user", `any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: "ali*"}]}]`, pod, true},
		{"group", `any: [{resources: {kinds: [Pod]}, subjects: [{kind: Group, name: dev}]}]`, pod, true},
		{"service account", `any: [{resources: {kinds: [Pod]}, subjects: [{kind: ServiceAccount, name: alice, namespace: a}]}]`, pod, false},
		{"roles", `any: [{resources: {kinds: [Pod]}, roles: ["ns:editor"]}]`, pod, true},
		{"roles have no wildcards", `any: [{resources: {kinds: [Pod]}, roles: ["ns:*"]}]`, pod, false},
		{"cluster roles and subjects", `any: [{resources: {kinds: [Pod]}, clusterRoles: [view], subjects: [{kind: User, name: bob}]}]`, pod, false},
		{"any in front of all", `{any: [{resources: {kinds: [Job]}}], all: [{resources: {kinds: [Pod]}}]}`, pod, false},
		{"excluded", "any: [{resources: {kinds: [Pod]}}]\nexclude: any: [{resources: {names: [web-1]}}]", pod, false},
		{"not excluded", "any: [{resources: {kinds: [Pod]}}]\nexclude: any: [{resources: {names: [web-2]}}]", pod, true},
		{"excluded by all", "any: [{resources: {kinds: [Pod]}}]\nexclude: all: [{resources: {names: [web-1]}}, {resources: {kinds: [Job]}}]", pod, true},
		{"excluded by user", "any: [{resources: {kinds: [Pod]}}]\nexclude: any: [{subjects: [{kind: User, name: alice}]}]", pod, false},
		{"excluded by operation", "any: [{resources: {kinds: [Pod]}}]\nexclude: any: [{resources: {operations: [CREATE]}}]", pod, false},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			request := &Request{
				Admission: create(object(t, tt.object)), Roles: []string{"ns:editor"}, ClusterRoles: []string{"view"},
			}
			if metaText(object(t, tt.object), "namespace") != "" {
				request.NamespaceLabels = map[string]string{"env": "prod"}
			}
			got := judgeOne(t, matchPolicy(tt.match), request, nil)
			if (got.Status == Fail) != tt.want {
				t.Errorf("want %v, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}

// matchPolicy denies whatever it matches. match is the block; exclude may follow.
func matchPolicy(match string) string {
	match, exclude, _ := strings.Cut(match, "\nexclude: ")
	block := func(name, text string) string {
		switch {
		case text == "":
			return ""
		case !strings.HasPrefix(text, "{"):
			text = "{" + text + "}"
		}
		return "    " + name + ": " + text + "\n"
	}
	return `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  background: false
  rules:
  - name: r
` + block("match", match) + block("exclude", exclude) + "    validate: {deny: {}}\n"
}

func TestUnknownUser(t *testing.T) {
	admission := create(object(t, `{}`))
	delete(admission, "userInfo")
	source := matchPolicy(`any: [{resources: {kinds: [Widget]}, subjects: [{kind: User, name: bob}]}]`)
	if got := judgeOne(t, source, &Request{Admission: admission}, nil); got.Status != Fail {
		t.Errorf("match by user counts only if there is one; got %s", got.Status)
	}
	source = matchPolicy("any: [{resources: {kinds: [Widget]}}]\nexclude: any: [{subjects: [{kind: User, name: bob}]}]")
	if got := judgeOne(t, source, &Request{Admission: admission}, nil); got.Status != Fail {
		t.Errorf("nobody is excluded without a user; got %s", got.Status)
	}
}

// TestUpdateMatchesTheNewObject pins that taking the label away escapes the rule.
func TestUpdateMatchesTheNewObject(t *testing.T) {
	source := matchPolicy(`any: [{resources: {kinds: [Widget], selector: {matchLabels: {app: web}}}}]`)
	with, without := object(t, `{metadata: {labels: {app: web}}}`), object(t, `{metadata: {}}`)
	for _, tt := range []struct {
		operation   string
		object, old map[string]any
		want        Status
	}{
		{"UPDATE", without, with, None},
		{"UPDATE", with, without, Fail},
		{"DELETE", nil, with, Fail},
	} {
		if got := judgeOne(t, source, &Request{Admission: admissionRequest(tt.operation, tt.object, tt.old)}, nil); got.Status != tt.want {
			t.Errorf("%s: want %s, got %s", tt.operation, tt.want, got.Status)
		}
	}
}

// TestSubresource pins that kinds are those of the resource, not of the object.
func TestSubresource(t *testing.T) {
	admission := map[string]any{
		"operation": "UPDATE", "subResource": "scale", "name": "a", "namespace": "b",
		"kind":     map[string]any{"group": "autoscaling", "version": "v1", "kind": "Scale"},
		"resource": map[string]any{"group": "apps", "version": "v1", "resource": "deployments"},
		"object":   object(t, `{metadata: {name: a, namespace: b}, spec: {replicas: 3}}`),
		"userInfo": map[string]any{"username": "alice"},
	}
	for kind, want := range map[string]Status{"Deployment/scale": Fail, "Scale": None, "Deployment": None, "*/scale": Fail} {
		got := judgeOne(t, matchPolicy(`any: [{resources: {kinds: ["`+kind+`"]}}]`), &Request{Admission: admission}, nil)
		if got.Status != want {
			t.Errorf("%s: want %s, got %s", kind, want, got.Status)
		}
	}
}

// labelled is a World whose namespaces have labels, or cannot be asked.
type labelled struct {
	*Offline
	err error
}

func (l labelled) Namespace(context.Context, string) (map[string]any, error) {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"env": "prod"}}}, l.err
}

func TestNamespaceLabelsOfTheWorld(t *testing.T) {
	source := matchPolicy(`any: [{resources: {kinds: [Widget], namespaceSelector: {matchLabels: {env: prod}}}}]`)
	request := &Request{Admission: create(object(t, `{metadata: {name: a, namespace: team}}`))}
	if got := judgeOne(t, source, request, labelled{&Offline{}, nil}); got.Status != Fail {
		t.Errorf("got %s", got.Status)
	}
	if got := judgeOne(t, source, request, labelled{&Offline{}, errors.New("no cluster")}); got.Status != Error || !strings.Contains(got.Message, "no cluster") {
		t.Errorf("got %s (%s)", got.Status, got.Message)
	}
}
