package webhook

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

var update = flag.Bool("update", false, "rewrite what docs/messages.md shows")

// docs/messages.md shows what a user reads of the same denial, by the webhook and by the API server.
func TestPageOfMessages(t *testing.T) {
	const page = "../../docs/messages.md"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile("(?s)```yaml\n(.*?)```\n\n```yaml\n(.*?)```\n\n<!-- webhook -->\n```text\n(.*?)```\n\n<!-- native -->\n```text\n(.*?)```\n")
	sections := 0
	shown := section.ReplaceAllStringFunc(string(data), func(s string) string {
		sections++
		parts := section.FindStringSubmatch(s)
		source, object := parts[1], parts[2]
		body, err := yaml.YAMLToJSON([]byte(object))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("```yaml\n%s```\n\n```yaml\n%s```\n\n<!-- webhook -->\n```text\n%s\n```\n\n<!-- native -->\n```text\n%s\n```\n",
			source, object, deniedByWebhook(t, source, string(body)), deniedNatively(t, source, string(body)))
	})
	if sections < 6 {
		t.Errorf("%d sections", sections)
	}
	if *update {
		if err := os.WriteFile(page, []byte(shown), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := textdiff.Diff(string(data), shown); d != "" {
		t.Errorf("docs/messages.md (-page +code); go test ./controller/webhook -run TestPageOfMessages -update rewrites it:\n%s", d)
	}
}

func deniedByWebhook(t *testing.T, source, object string) string {
	t.Helper()
	c := start(t, Options{})
	c.Set(set(policies(t, source)))
	got := c.ask(t, "/validate/fail", object)
	if got.Allowed || got.Result == nil {
		t.Fatalf("admitted: %s", object)
	}
	return `admission webhook "validate-fail.webhook.kvap.dev" denied the request: ` + strings.TrimRight(got.Result.Message, "\n")
}

func deniedNatively(t *testing.T, source, object string) string {
	t.Helper()
	types, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	done := compile.Policies(compile.Input{Policies: policies(t, source)}, compile.Options{
		Translate: translate.Options{Release: cel.Default, Schemas: types},
	})
	var native []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, o := range done.Objects {
		native, bindings = append(native, o.Policy), append(bindings, o.Bindings...)
	}
	judge, err := apiserver.NewJudge(native, bindings, apiserver.JudgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal([]byte(creation(t, object)), &review); err != nil {
		t.Fatal(err)
	}
	verdicts, err := judge.Review(t.Context(), review.Request, apiserver.Labelled(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Refused {
			return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", v.Policy, v.Binding, v.Message)
		}
	}
	t.Fatalf("natively admitted: %s %v", object, done.Diagnostics)
	return ""
}
