package registration

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

var update = flag.Bool("update", false, "rewrite the expected files from current output")

// builtin is what a release serves.
type builtin struct{ set *schema.Set }

func (b builtin) Resources(group, version, kind string) []Resource {
	var out []Resource
	for _, r := range b.set.Resources(group, version, kind) {
		if !r.Guessed {
			out = append(out, Resource{Group: r.Group, Version: r.Version, Kind: r.Kind, Plural: r.Plural, Namespaced: r.Namespaced})
		}
	}
	return out
}

func kinds(t *testing.T) Kinds {
	t.Helper()
	set, err := schema.Builtin("1.36")
	if err != nil {
		t.Fatal(err)
	}
	return builtin{set}
}

func options() Options {
	return Options{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "kvap", Name: "kvap-webhook"}, Bundle: []byte("bundle"),
		ExcludeNamespaces: []string{"kube-public"}, ExcludeGroups: []string{"system:nodes"},
	}
}

func parse(t testing.TB, text []byte) []*policy.Policy {
	t.Helper()
	f, ds := policy.Parse("policies.yaml", text)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return f.Policies
}

// Each file of policies has one with the configurations that they need.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.policies.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			objects, problems := Configure(parse(t, text), kinds(t), options())
			got := render(t, objects, problems)
			golden := strings.TrimSuffix(file, ".policies.yaml") + ".want.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if err := Check(objects); err != nil {
				t.Error(err)
			}
		})
	}
}

func render(t *testing.T, o Configurations, problems []Problem) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, object := range []any{o.Validating, o.Mutating} {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	for _, p := range problems {
		fmt.Fprintf(&out, "# %s: %s (refused: %v)\n", p.Policy.FullName(), p.Message, p.Refused)
	}
	return out.Bytes()
}

func TestNothingRemains(t *testing.T) {
	if o, problems := Configure(nil, kinds(t), options()); o.Validating != nil || o.Mutating != nil || problems != nil {
		t.Errorf("%v %v", o, problems)
	}
}

// The order of the policies makes no difference, nor does calling twice.
func TestSameInputSameObjects(t *testing.T) {
	text, err := os.ReadFile("testdata/places.policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := parse(t, text)
	one, _ := Configure(list, kinds(t), options())
	slices.Reverse(list)
	other, _ := Configure(list, kinds(t), options())
	if a, b := render(t, one, nil), render(t, other, nil); !bytes.Equal(a, b) {
		t.Errorf("got:\n%s\nand:\n%s", a, b)
	}
}

// A check that looks at the objects only finds what could lock the cluster up.
func TestCheck(t *testing.T) {
	fail, ignore := admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	pods := []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, Resources: []string{"pods"}}}}
	reviews := []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"*"}}}}
	notIn := func(names ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: nameLabel, Operator: "NotIn", Values: names}}}
	}
	service := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "own"}}
	for name, test := range map[string]struct {
		webhook admissionregistrationv1.ValidatingWebhook
		bad     bool
	}{
		"all left out":       {admissionregistrationv1.ValidatingWebhook{ClientConfig: service, FailurePolicy: &fail, Rules: pods, NamespaceSelector: notIn("own", "kube-system", "kube-node-lease")}, false},
		"its own namespace":  {admissionregistrationv1.ValidatingWebhook{ClientConfig: service, FailurePolicy: &fail, Rules: pods, NamespaceSelector: notIn("kube-system", "kube-node-lease")}, true},
		"kube-system":        {admissionregistrationv1.ValidatingWebhook{FailurePolicy: &fail, Rules: pods, NamespaceSelector: notIn("kube-node-lease")}, true},
		"no failure policy":  {admissionregistrationv1.ValidatingWebhook{Rules: pods}, true},
		"need not answer":    {admissionregistrationv1.ValidatingWebhook{FailurePolicy: &ignore, Rules: pods}, false},
		"asked while asking": {admissionregistrationv1.ValidatingWebhook{FailurePolicy: &fail, Rules: reviews, NamespaceSelector: notIn("kube-system", "kube-node-lease")}, true},
	} {
		err := Check(Configurations{Validating: &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{test.webhook}}})
		if (err != nil) != test.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}
