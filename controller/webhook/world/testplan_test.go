package world

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/test/testregistry"
)

// A row of the test plan for image verification runs here, against a registry in this process and
// the verifier that clusters have, by both phases of the webhook; or another test has it; or it
// cannot pass, and says why.
type row struct {
	number, words string
	run           func(*lab)
	elsewhere     string // file:Test
	open          string
}

// openRows is how many rows cannot pass, and partRows how many can but for a part that open names.
const (
	openRows = 0
	partRows = 0
)

func TestPlan(t *testing.T) {
	rows := planRows()
	open, part := 0, 0
	var numbers []string
	for _, r := range rows {
		numbers = append(numbers, r.number)
		if given := []bool{r.run != nil, r.elsewhere != "", r.open != ""}; !slices.Contains(given, true) {
			t.Errorf("%s is neither run nor open", r.number)
		}
		switch {
		case r.open != "" && r.run == nil && r.elsewhere == "":
			open++
		case r.open != "":
			part++
		}
		t.Run(r.number+" "+r.words, func(t *testing.T) {
			if r.open != "" {
				t.Logf("open: %s", r.open)
			}
			for _, place := range strings.Fields(r.elsewhere) {
				file, test, _ := strings.Cut(place, ":")
				text, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(file)))
				if err != nil || !regexp.MustCompile(`(?m)^func `+test+`\(`).Match(text) {
					t.Errorf("%s has no %s (%v)", file, test, err)
				}
			}
			if r.run != nil {
				r.run(newLab(t))
			}
		})
	}
	if open != openRows || part != partRows {
		t.Errorf("%d rows cannot pass, and %d in part; %d and %d are known", open, part, openRows, partRows)
	}
	for i := 1; i <= 73; i++ {
		if !slices.Contains(numbers, fmt.Sprintf("T%02d", i)) {
			t.Errorf("there is no row T%02d", i)
		}
	}
}

// A lab has a registry, two signers and what the cluster has.
type lab struct {
	*testing.T
	*testregistry.Registry

	k1, k2 *testregistry.Signer
	proofs *proofs
	world  *interp.Offline
}

func newLab(t *testing.T) *lab {
	r := testregistry.New(t)
	out := &lab{T: t, Registry: r, k1: testregistry.NewSigner(t), k2: testregistry.NewSigner(t), proofs: proving(t, Options{Registries: []string{"*"}})}
	out.world = &interp.Offline{Proofs: out.proofs, Answers: map[string][]byte{}, Complete: true}
	return out
}

// pushed is an image at a tag, signed by some.
func (l *lab) pushed(tag string, by ...*testregistry.Signer) (pinned string) {
	pinned = l.Push(tag)
	l.signed(pinned, by...)
	return pinned
}

func (l *lab) signed(pinned string, by ...*testregistry.Signer) {
	var layers []testregistry.Layer
	for _, s := range by {
		layers = append(layers, s.Signature(pinned, nil))
	}
	if layers != nil {
		l.Attach(pinned, "sig", layers...)
	}
}

// keys are a set of attestors by keys.
func keys(by ...*testregistry.Signer) string {
	var out []string
	for _, s := range by {
		out = append(out, "{keys: {rekor: {ignoreTlog: true}, publicKeys: "+quote(s.PEM())+"}}")
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func quote(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }

// entry is one of verifyImages about the lab's registry.
func (l *lab) entry(rest string) string {
	return `{imageReferences: ["` + l.Host + `/*"], imageRegistryCredentials: {allowInsecureRegistry: true}, ` + rest + "}"
}

// notary is an entry of the type Notary, by certificates.
func (l *lab) notary(chain string) string {
	return l.entry("type: Notary, " + by("[{certificates: {certChain: "+quote(chain)+"}}]"))
}

func by(sets ...string) string {
	for i, s := range sets {
		sets[i] = "{entries: " + s + "}"
	}
	return "attestors: [" + strings.Join(sets, ", ") + "]"
}

func rule(name string, entries ...string) string {
	return `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: ` + name + `}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages: [` + strings.Join(entries, ", ") + "]\n"
}

// A verdict is what becomes of a request.
type verdict struct {
	status  interp.Status // the worst
	message string
	warned  string
	object  map[string]any // as it is stored, or was last
}

// create puts a Pod through both phases.
func (l *lab) create(policies string, images ...string) verdict {
	l.Helper()
	return l.request(policies, "CREATE", pod(images...), nil)
}

// judge is the second phase alone.
func (l *lab) judge(policies string, images ...string) verdict {
	l.Helper()
	return l.validate(policies, admission("CREATE", pod(images...), nil))
}

func (l *lab) engine(text string) *interp.Interpreter {
	l.Helper()
	f, ds := policy.Parse("policy.yaml", []byte(text))
	if ds.HasErrors() {
		l.Fatal(ds)
	}
	return interp.New(f.Policies, f.Exceptions, l.world, interp.Limits{})
}

func (l *lab) request(policies, operation string, object, old map[string]any) verdict {
	l.Helper()
	pins := l.engine(policies).PinImages(l.Context(), &interp.Request{Admission: admission(operation, object, old)})
	for _, r := range pins.Rules {
		if r.Status == interp.Error {
			return verdict{status: interp.Error, message: r.Message, object: object}
		}
	}
	return l.validate(policies, admission(operation, pins.After, old))
}

func (l *lab) validate(policies string, request map[string]any) verdict {
	l.Helper()
	object, _ := request["object"].(map[string]any)
	out := verdict{status: interp.None, object: object}
	gravity := []interp.Status{interp.None, interp.Skip, interp.Pass, interp.Error, interp.Fail}
	for _, r := range l.engine(policies).Judge(l.Context(), &interp.Request{Admission: request}) {
		if slices.Index(gravity, r.Status) > slices.Index(gravity, out.status) {
			out.status, out.message = r.Status, r.Message
			out.warned = strings.Join(r.Warnings, "; ")
		}
	}
	return out
}

// refused holds a policy to be refused when it is read.
func (l *lab) refused(text, message string) {
	l.Helper()
	if _, ds := policy.Parse("policy.yaml", []byte(text)); !ds.HasErrors() || !strings.Contains(fmt.Sprint(ds), message) {
		l.Errorf("want %q, got %s", message, ds)
	}
}

// is holds a verdict to what is wanted.
func (l *lab) is(what string, got verdict, want interp.Status, message ...string) {
	l.Helper()
	for _, m := range append(message, "") {
		if got.status != want || !strings.Contains(got.message, m) {
			l.Errorf("%s: want %s with %q, got %s %q", what, want, m, got.status, got.message)
		}
	}
}

// warns holds a verdict to what a user hears.
func (l *lab) warns(got verdict, want string) {
	l.Helper()
	if (got.warned == "") != (want == "") || !strings.Contains(got.warned, want) {
		l.Errorf("want the warning %q, got %q", want, got.warned)
	}
}

// runs are the images of a Pod.
func runs(object map[string]any) (out []string) {
	spec, _ := object["spec"].(map[string]any)
	for _, group := range []string{"initContainers", "containers", "ephemeralContainers"} {
		items, _ := spec[group].([]any)
		for _, item := range items {
			image, _ := item.(map[string]any)["image"].(string)
			out = append(out, image)
		}
	}
	return out
}

func pod(images ...string) map[string]any {
	var containers []any
	for i, image := range images {
		containers = append(containers, map[string]any{"name": fmt.Sprint("c", i), "image": image})
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "namespace": "team"}, "spec": map[string]any{"containers": containers}}
}

func admission(operation string, object, old map[string]any) map[string]any {
	of := object
	if of == nil {
		of = old
	}
	group, version, found := strings.Cut(of["apiVersion"].(string), "/")
	if !found {
		group, version = "", group
	}
	out := map[string]any{
		"uid": "1", "operation": operation, "name": "a", "namespace": "team", "userInfo": map[string]any{"username": "ann"},
		"kind":     map[string]any{"group": group, "version": version, "kind": of["kind"]},
		"resource": map[string]any{"group": group, "version": version, "resource": strings.ToLower(of["kind"].(string)) + "s"},
	}
	if object != nil {
		out["object"] = object
	}
	if old != nil {
		out["oldObject"] = old
	}
	return out
}

func (l *lab) read(text string) map[string]any {
	l.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	var out map[string]any
	if err == nil {
		err = kjson.Unmarshal(data, &out)
	}
	if err != nil {
		l.Fatal(err)
	}
	return out
}

// index is an image of two platforms, and one of those.
func (l *lab) index(tag string) (pinned, platform string) {
	l.Helper()
	made, err := random.Index(64, 1, 2)
	if err != nil {
		l.Fatal(err)
	}
	ref, err := name.ParseReference(l.Host+"/"+tag, name.Insecure)
	if err == nil {
		err = remote.WriteIndex(ref, made)
	}
	digest, err2 := made.Digest()
	manifest, err3 := made.IndexManifest()
	if err != nil || err2 != nil || err3 != nil {
		l.Fatal(err, err2, err3)
	}
	repository, _, _ := strings.Cut(tag, ":")
	at := l.Host + "/" + repository + "@"
	return at + digest.String(), at + manifest.Manifests[0].Digest.String()
}

// alternates answers each HEAD of a tag with another of some digests.
func (l *lab) alternates(tag string, pinned ...string) *atomic.Int64 {
	var count atomic.Int64
	l.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.HasSuffix(q.URL.Path, "/manifests/"+tag) {
			return false
		}
		of := pinned[int(count.Add(1)-1)%len(pinned)]
		w.Header().Set("Docker-Content-Digest", testregistry.Digest(of))
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Content-Length", "10")
		return true
	})
	return &count
}

// imagePolicy is an ImageValidatingPolicy about the lab's registry.
func (l *lab) imagePolicy(name, validation, rest string) string {
	return `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: ` + name + `}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}
  credentials: {allowInsecureRegistry: true}
  attestors:
  - {name: k1, cosign: {key: {data: ` + quote(l.k1.PEM()) + `}, ctlog: {insecureIgnoreTlog: true}}}
  - {name: k2, cosign: {key: {data: ` + quote(l.k2.PEM()) + `}, ctlog: {insecureIgnoreTlog: true}}}
  attestations: [{name: slsa, intoto: {type: slsa}}]
  validations: [{expression: "` + validation + `", message: refused}]
` + rest
}
