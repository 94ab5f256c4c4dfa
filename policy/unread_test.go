package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// Every kind of Kyverno's newer group and of other engines that enforces something is
// in the File, with a warning; what is none is not.
func TestUnread(t *testing.T) {
	for object, want := range map[string]diag.Code{
		"policies.kyverno.io/v1 EnvoyAuthorization":                 diag.UnreadKind,
		"policies.kyverno.io/v1 NamespacedEnvoyAuthorization":       diag.UnreadKind,
		"policies.kyverno.io/v9 OfTomorrow":                         diag.UnreadKind,
		"templates.gatekeeper.sh/v1beta1 ConstraintTemplate":        diag.OtherEngine,
		"constraints.gatekeeper.sh/v1beta1 K8sAllowedRepos":         diag.OtherEngine,
		"mutations.gatekeeper.sh/v1 AssignMetadata":                 diag.OtherEngine,
		"policies.kubewarden.io/v1 ClusterAdmissionPolicy":          diag.OtherEngine,
		"policies.kubewarden.io/v1alpha2 AdmissionPolicyGroup":      diag.OtherEngine,
		"policies.kubewarden.io/v1 PolicyServer":                    diag.OtherKind,
		"config.gatekeeper.sh/v1alpha1 Config":                      diag.OtherKind,
		"apiextensions.k8s.io/v1 CustomResourceDefinition":          diag.OtherKind,
		"apps/v1 Deployment":                                        diag.OtherKind,
		"kyverno.io/v2 UpdateRequest":                               diag.OtherKind,
		"kustomize.config.k8s.io/v1beta1 Kustomization":             diag.OtherKind,
		"notconstraints.gatekeeper.sh.example.com/v1 K8sSomething":  diag.OtherKind,
		"constraints.gatekeeper.sh.example.com/v1beta1 K8sAnything": diag.OtherKind,
	} {
		apiVersion, kind, _ := strings.Cut(object, " ")
		text := "# why\napiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: a, namespace: b}\n"
		f, ds := policy.Parse("p.yaml", []byte("---\nkind: X\n---\n"+text))
		i := slices.IndexFunc(ds, func(d diag.Diagnostic) bool { return d.Line == 5 })
		if i < 0 || ds[i].Code != want || len(f.Policies)+len(f.Exceptions) > 0 {
			t.Errorf("%s: %v", object, ds)
			continue
		}
		if want == diag.OtherKind {
			if len(f.Unread) > 0 || ds[i].Severity != diag.Note {
				t.Errorf("%s: %d unread, %v", object, len(f.Unread), ds)
			}
			continue
		}
		if len(f.Unread) != 1 || ds[i].Severity != diag.Warning {
			t.Fatalf("%s: %d unread, %v", object, len(f.Unread), ds)
		}
		u := f.Unread[0]
		if u.Kind != kind || u.Name != "a" || u.Namespace != "b" || u.Code != want || u.Reason != ds[i].Message || string(u.Text) != "---\n"+text || u.Pos.Line != 5 {
			t.Errorf("%s: %+v\n%s", object, u, u.Text)
		}
		if !policy.MayHold([]byte(text)) {
			t.Errorf("%s: a folder would pass the file over", object)
		}
	}
}

// What was written stays as it is: line ends, comments, a template's braces. Items of a
// list have no text of their own.
func TestUnreadText(t *testing.T) {
	const head = "apiVersion: policies.kyverno.io/v1\r\nkind: EnvoyAuthorization\r\n"
	for text, want := range map[string]string{
		head + "metadata: {name: a} # b\r\n\r\n":                                                                                        head + "metadata: {name: a} # b\r\n\r\n",
		"\ufeff" + head + "metadata: {name: a}":                                                                                         head + "metadata: {name: a}",
		head + "metadata: {name: a}\n...\n# behind\n":                                                                                   head + "metadata: {name: a}\n",
		head + "metadata: {name: 'a'}\nspec: {x: '{{ .Values.x }}'}\n":                                                                  head + "metadata: {name: 'a'}\nspec: {x: '{{ .Values.x }}'}\n",
		`{"kind":"EnvoyAuthorization","apiVersion":"policies.kyverno.io/v1"} {"kind":"X"}`:                                              `{"kind":"EnvoyAuthorization","apiVersion":"policies.kyverno.io/v1"}`,
		` {"kind":"X"}{ "kind":"EnvoyAuthorization","apiVersion":"policies.kyverno.io/v1" }` + "\n":                                     `{ "kind":"EnvoyAuthorization","apiVersion":"policies.kyverno.io/v1" }`,
		"kind: List\napiVersion: v1\nitems:\n- kind: EnvoyAuthorization\n  apiVersion: policies.kyverno.io/v1\n  metadata: {name: 1}\n": "kind: EnvoyAuthorization\napiVersion: policies.kyverno.io/v1\nmetadata:\n  name: 1\n",
	} {
		f, ds := policy.Parse("p.yaml", []byte(text))
		if len(f.Unread) != 1 || ds.HasErrors() {
			t.Errorf("%q: %d unread, %v", text, len(f.Unread), ds)
		} else if got := string(f.Unread[0].Text); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", text, got, want)
		}
	}
}
