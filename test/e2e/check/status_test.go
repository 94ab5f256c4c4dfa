//go:build e2e

package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/check"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// release is that of the control plane.
func release(t *testing.T) cel.Release {
	t.Helper()
	r, err := cel.ParseRelease(controlplane.Version())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What check says that the cluster will write into the status is what it writes: for
// the same expressions, about the same kinds, the same errors. And what the API server
// refuses, check has an error of.
func TestStatus(t *testing.T) {
	t.Parallel()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop()
	crds, err := controlplane.ReadCRDs(filepath.Join("..", "..", "..", "deploy", "crds"))
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.InstallCRDs(t.Context(), append(crds, custom(t))...); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(plane.Config(controlplane.Admin))
	if err != nil {
		t.Fatal(err)
	}
	set := schemas(t)
	all := policies(t, set)
	accepted := create(t, client, all, set)
	t.Logf("%d policies, of which the API server takes %d", len(all), len(accepted))
	predicted := apiserver.NewStatusChecker(set, release(t))
	warnings := 0
	for name, got := range awaitStatus(t, client, len(accepted)) {
		want := predicted.Check(accepted[name])
		warnings += len(got)
		compare(t, accepted[name], want, got)
	}
	t.Logf("%d warnings", warnings)
}

// compare holds the warnings against each other, their texts too, save for the digits
// that the cluster puts behind the names of types.
func compare(t *testing.T, p *admissionregistrationv1.ValidatingAdmissionPolicy, want []apiserver.TypeWarning, got []admissionregistrationv1.ExpressionWarning) {
	t.Helper()
	texts := map[string]string{}
	for _, w := range got {
		texts[w.FieldRef] = withoutDigits(w.Warning)
	}
	for _, w := range want {
		if text, ok := texts[w.Field]; !ok || text != withoutDigits(w.Warning) {
			t.Errorf("%s %s: check says\n%s\nand the cluster\n%s", p.Annotations[subject], w.Field, w.Warning, text)
		}
		delete(texts, w.Field)
	}
	for field, text := range texts {
		t.Errorf("%s %s: check says nothing, and the cluster\n%s", p.Annotations[subject], field, text)
	}
}

func withoutDigits(text string) string {
	for _, m := range regexp.MustCompile(`Kind=(\w+)`).FindAllStringSubmatch(text, -1) {
		text = regexp.MustCompile(`\b`+m[1]+`\d+\b`).ReplaceAllString(text, m[1])
	}
	return text
}

// subject is the annotation that says what a policy is.
const subject = "kvap.dev/e2e-subject"

func custom(t *testing.T) controlplane.CRD {
	t.Helper()
	file := filepath.Join(t.TempDir(), "widgets.yaml")
	if err := os.WriteFile(file, []byte(widgets), 0o644); err != nil {
		t.Fatal(err)
	}
	crds, err := controlplane.ReadCRDs(filepath.Dir(file))
	if err != nil || len(crds) != 1 {
		t.Fatal(crds, err)
	}
	return crds[0]
}

func schemas(t *testing.T) *schema.Set {
	t.Helper()
	set, err := schema.Builtin(release(t).String())
	if err != nil {
		t.Fatal(err)
	}
	set, ds := set.WithCRDs([]byte(widgets))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return set
}

// policies are all that are to be checked, by a name of their own.
func policies(t *testing.T, set *schema.Set) map[string]*admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	out := map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{}
	add := func(what string, p *admissionregistrationv1.ValidatingAdmissionPolicy) {
		p = p.DeepCopy()
		p.Name = fmt.Sprintf("e2e-%d", len(out))
		p.Annotations = map[string]string{subject: what}
		vap.DefaultPolicy(p)
		out[p.Name] = p
	}
	mistakes, err := mistaken()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range mistakes {
		add(p.Name+" "+p.Spec.Validations[0].Expression, p)
	}
	for _, f := range fixtures.All() {
		for _, p := range converted(t, set, f.Name, f.Policy) {
			add("fixture "+f.Name, p)
		}
	}
	for _, file := range files(t, filepath.Join("..", "..", "..", "check", "testdata"), ".yaml") {
		for _, p := range written(t, file) {
			add(file, p)
		}
	}
	for _, file := range files(t, filepath.Join("..", "..", "..", "..", "shared", "corpus", "policies"), ".yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(file, "-test") {
			for _, p := range converted(t, set, file, data) {
				add(file, p)
			}
		}
	}
	return out
}

// files are those below a folder; none where it is not at hand.
func files(t *testing.T, root, ending string) []string {
	t.Helper()
	var out []string
	if _, err := os.Stat(root); err != nil {
		t.Logf("not at hand: %s", root)
		return nil
	}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ending) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func written(t *testing.T, file string) []*admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, _ := check.Written(file, data)
	var out []*admissionregistrationv1.ValidatingAdmissionPolicy
	for _, o := range objects {
		if o.Policy != nil {
			out = append(out, o.Policy)
		}
	}
	return out
}

func converted(t *testing.T, set *schema.Set, name string, data []byte) []*admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	f, found := policy.Parse(name, data)
	done := compile.Policies(compile.Input{Policies: f.Policies, Exceptions: f.Exceptions, Found: found}, compile.Options{Translate: translate.Options{
		Release: release(t), Schemas: set, Pack: translate.PackPolicy, Params: translate.ParamsConfigMap, Existing: translate.AllowExisting,
	}})
	var out []*admissionregistrationv1.ValidatingAdmissionPolicy
	for _, o := range done.Objects {
		out = append(out, o.Policy)
	}
	return out
}

// create makes the policies, and gives those that the API server takes. What it does
// not take, check must have an error of.
func create(t *testing.T, client kubernetes.Interface, all map[string]*admissionregistrationv1.ValidatingAdmissionPolicy, set *schema.Set) map[string]*admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	accepted := map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{}
	var mutex sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, 4)
	checker := apiserver.NewChecker(release(t))
	for name, p := range all {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), p, metav1.CreateOptions{})
			mutex.Lock()
			defer mutex.Unlock()
			if errs := checker.Validate(p); (len(errs) > 0) != (err != nil) {
				t.Errorf("%s: the API server says %v, and check %v", p.Annotations[subject], err, errs)
			}
			if err == nil {
				accepted[name] = p
			}
		})
	}
	group.Wait()
	return accepted
}

// awaitStatus is the type checking of each policy, when there is one of what is stored.
func awaitStatus(t *testing.T, client kubernetes.Interface, want int) map[string][]admissionregistrationv1.ExpressionWarning {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		list, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(context.Background(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string][]admissionregistrationv1.ExpressionWarning{}
		for _, p := range list.Items {
			if p.Status.ObservedGeneration == p.Generation {
				out[p.Name] = nil
				if p.Status.TypeChecking != nil {
					out[p.Name] = p.Status.TypeChecking.ExpressionWarnings
				}
			}
		}
		if len(out) == want {
			return out
		}
	}
	t.Fatalf("not in time: %d policies have been type-checked", want)
	return nil
}
