package translate_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// A translated policy is ready to judge.
type translated struct {
	policy *policy.Policy
	result compile.Result
	judge  *apiserver.Judge
}

// A setting is what a test changes of the usual translation.
type setting struct {
	release    cel.Release
	pack       translate.Pack
	params     []string
	exceptions []*policy.Exception
	namespaces map[string]map[string]string // labels, by name
	own        translate.Params
	guard      translate.Guard
	mutations  bool
	repeatable bool
	packed     bool
}

// stored are the namespaces as an API server has them.
func (s setting) stored() map[string]*corev1.Namespace {
	out := map[string]*corev1.Namespace{}
	for name, labels := range s.namespaces {
		out[name] = apiserver.Labelled(labels)
	}
	return out
}

func builtin(t *testing.T, release cel.Release) *schema.Set {
	t.Helper()
	return releaseOf(t, release).schemas
}

// known is what tests share of a release: to make it takes longer than most of them.
type known struct {
	schemas *schema.Set
	sync.Mutex
	cache *compile.Cache // for one compilation at a time
}

var releases sync.Map

func releaseOf(t *testing.T, release cel.Release) *known {
	t.Helper()
	if k, done := releases.Load(release); done {
		return k.(*known)
	}
	s, err := schema.Builtin(release.String())
	if err != nil {
		t.Fatal(err)
	}
	k, _ := releases.LoadOrStore(release, &known{schemas: s, cache: compile.NewCache()})
	return k.(*known)
}

// compileText compiles the policies and exceptions of a file.
func compileText(t *testing.T, text string, s setting) compile.Result {
	t.Helper()
	if s.release == 0 {
		s.release = 34
	}
	file, found := policy.Parse("p.yaml", []byte(text))
	if found.HasErrors() || len(file.Policies) == 0 {
		t.Fatalf("%d policies: %v", len(file.Policies), found)
	}
	k := releaseOf(t, s.release)
	k.Lock()
	defer k.Unlock()
	return compile.Policies(compile.Input{Policies: file.Policies, Exceptions: append(file.Exceptions, s.exceptions...), Found: found}, compile.Options{
		Translate: translate.Options{Release: s.release, Schemas: k.schemas, Pack: s.pack, Params: s.own, Guard: s.guard, PackMutations: s.packed, Mutations: s.mutations, Repeatable: s.repeatable},
		Emit:      vap.EmitOptions{ExcludeNamespaces: []string{}},
		Cache:     s.cache(k),
	})
}

// cache is that of the release: what it knows holds for the usual choices.
func (s setting) cache(k *known) *compile.Cache {
	if s.mutations {
		return nil
	}
	return k.cache
}

// translateText compiles a file so that its objects can be asked.
func translateText(t *testing.T, text string, s setting) translated {
	t.Helper()
	out := translated{result: compileText(t, text, s)}
	out.policy = out.result.Policies[0]
	var policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, o := range out.result.Objects {
		policies, bindings = append(policies, o.Policy), append(bindings, o.Bindings...)
	}
	var params []*unstructured.Unstructured
	for _, p := range s.params {
		params = append(params, &unstructured.Unstructured{Object: object(t, p)})
	}
	var err error
	if out.judge, err = apiserver.NewJudge(policies, bindings, apiserver.JudgeOptions{Params: params, Namespaces: s.stored()}); err != nil {
		t.Fatal(err)
	}
	return out
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// yaml is the objects as they are written.
func (p translated) yaml(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, o := range p.result.Objects {
		for _, x := range o.All() {
			text, err := yaml.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString("---\n" + string(text))
		}
	}
	return b.String()
}

// A verdict is what all policies and bindings say together: refused, or else the
// gravest outcome, with the bindings in which anything was judged.
func (p translated) verdict(t *testing.T, r *admissionv1.AdmissionRequest) (outcome apiserver.Outcome, refused bool, message string) {
	t.Helper()
	verdicts, err := p.judge.Review(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	rank := map[apiserver.Outcome]int{apiserver.NoMatch: 0, apiserver.Allow: 1, apiserver.Error: 2, apiserver.Deny: 3}
	outcome = apiserver.NoMatch
	for _, v := range verdicts {
		refused = refused || v.Refused
		if rank[v.Outcome] > rank[outcome] {
			outcome, message = v.Outcome, v.Message
		}
	}
	return outcome, refused, message
}

// target is where the rules went, as in "native", "webhook KV201".
func (p translated) targets() string {
	var words []string
	for _, r := range p.result.Rules {
		words = append(words, strings.Join(append([]string{string(r.Target)}, codes(r)...), " "))
	}
	return strings.Join(words, ", ")
}

// codes are a rule's codes but those of what comes out rewritten, of what needs no object, and
// of what a rule does to all objects, which have tests of their own.
func codes(r *compile.Rule) []string {
	var out []string
	for _, c := range r.Codes {
		if c != diag.Rewritten && c != diag.NeedsNoObject && (c < diag.DeniesEvery || c > diag.OptionalField) {
			out = append(out, c.String())
		}
	}
	return out
}

// podRequest is a request about a pod, or another kind if the object says so. The
// object is the old one of a deletion, and both of an update that says no other.
func objectRequest(t *testing.T, operation, text, old string) *admissionv1.AdmissionRequest {
	t.Helper()
	o := object(t, text)
	u := unstructured.Unstructured{Object: o}
	kind := u.GroupVersionKind()
	r := &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind(kind), Name: u.GetName(), Namespace: u.GetNamespace(),
		Resource:  metav1.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"},
		Operation: admissionv1.Operation(operation),
		UserInfo:  authenticationv1.UserInfo{Username: "alice", Groups: []string{"devs"}},
	}
	if kind.Kind == "Namespace" {
		r.Namespace = r.Name
	}
	raw := func(o map[string]any) runtime.RawExtension {
		return runtime.RawExtension{Object: &unstructured.Unstructured{Object: o}}
	}
	switch operation {
	case "DELETE":
		r.OldObject = raw(o)
	case "UPDATE":
		r.Object, r.OldObject = raw(o), raw(o)
		if old != "" {
			r.OldObject = raw(object(t, old))
		}
	default:
		r.Object = raw(o)
	}
	return r
}

// A trial is one request and what must come out, as in "deny refused".
type trial struct {
	name, operation, object, old string
	want                         string
	edit                         func(*admissionv1.AdmissionRequest)
}

func (p translated) try(t *testing.T, trials []trial) {
	t.Helper()
	for _, tt := range trials {
		t.Run(tt.name, func(t *testing.T) {
			operation := tt.operation
			if operation == "" {
				operation = "CREATE"
			}
			r := objectRequest(t, operation, tt.object, tt.old)
			if tt.edit != nil {
				tt.edit(r)
			}
			outcome, refused, message := p.verdict(t, r)
			got := string(outcome)
			if refused {
				got += " refused"
			}
			if want, text, ok := strings.Cut(tt.want, ": "); ok {
				if got != want || !strings.Contains(message, text) {
					t.Errorf("got %s: %s, want %s", got, message, tt.want)
				}
			} else if got != tt.want {
				t.Errorf("got %s (%s), want %s", got, message, tt.want)
			}
		})
	}
}

func pod(meta, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"app"%s},"spec":{%s}}`, meta, spec)
}
