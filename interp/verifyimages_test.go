package interp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// signedImages is a registry that knows who signed what: by the text of keys, which are names here.
type signedImages struct {
	tags     map[string]string   // to digests, by repository:tag
	signed   map[string][]string // keys, by digest
	attested map[string][]any    // predicates, by digest, type and key
	down     bool

	mu    sync.Mutex
	asked []string
}

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	pemOne  = "-----BEGIN PUBLIC KEY-----\nb25l\n-----END PUBLIC KEY-----\n"
	pemTwo  = "-----BEGIN PUBLIC KEY-----\ndHdv\n-----END PUBLIC KEY-----\n"
)

func (s *signedImages) ask(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, what)
	if s.down {
		return fmt.Errorf("%w: it is down", ErrUnreachable)
	}
	return nil
}

func (s *signedImages) Pinned(_ context.Context, reference string, _ Access) (string, error) {
	if strings.Contains(reference, "@") {
		return reference, nil
	}
	if err := s.ask(reference); err != nil {
		return "", err
	}
	digest, ok := s.tags[reference]
	if !ok {
		return "", errors.New("there is no such tag")
	}
	return reference[:strings.LastIndexByte(reference, ':')] + "@" + digest, nil
}

func (s *signedImages) Signed(_ context.Context, image string, by Attestor, _ Access) error {
	_, digest, _ := strings.Cut(image, "@")
	if err := s.ask(image); err != nil {
		return err
	}
	if k := by.Keyless; k != nil && slices.Contains(s.signed[digest], k.Subject+" "+k.Issuer) {
		return nil
	}
	if !slices.Contains(s.signed[digest], by.Key) {
		return errors.New("it is by another key")
	}
	return nil
}

func (s *signedImages) Attested(_ context.Context, image, kind string, by Attestor, _ Access) ([]map[string]any, error) {
	_, digest, _ := strings.Cut(image, "@")
	if err := s.ask(image); err != nil {
		return nil, err
	}
	if found := s.attested[digest+" "+kind+" "+by.Key]; len(found) > 0 {
		var out []map[string]any
		for _, predicate := range found {
			out = append(out, map[string]any{"predicateType": kind, "predicate": predicate})
		}
		return out, nil
	}
	return nil, errors.New("there is no attestation of the type")
}

// quoted is a text in double quotes, for a flow of YAML.
func quoted(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }

func byKeys(keys ...string) string {
	var entries []string
	for _, k := range keys {
		entries = append(entries, "{keys: {publicKeys: "+quoted(k)+"}}")
	}
	return "[" + strings.Join(entries, ", ") + "]"
}

func imageRule(entry string) string {
	return `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: images, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod, Task]}}]}
    verifyImages: [` + entry + "]\n"
}

func podRunning(t *testing.T, images ...string) map[string]any {
	t.Helper()
	var containers []string
	for i, image := range images {
		containers = append(containers, fmt.Sprintf("{name: c%d, image: %q}", i, image))
	}
	return object(t, "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {containers: ["+strings.Join(containers, ", ")+"]}}")
}

func TestVerifyImages(t *testing.T) {
	registry := &signedImages{
		tags:   map[string]string{"reg.test/app:v1": digestA, "reg.test/app:v2": digestB},
		signed: map[string][]string{digestA: {pemOne, "ann ca"}},
		attested: map[string][]any{
			digestA + " slsa " + pemOne: {map[string]any{"builder": map[string]any{"id": "x"}, "request": map[string]any{"namespace": "y"}, "star": "*"}},
			digestA + " two " + pemOne:  {map[string]any{"ok": "yes"}, map[string]any{"ok": "no"}},
			digestA + " text " + pemOne: {"no map"},
		},
	}
	const refs = `imageReferences: ["reg.test/*"], `
	one := refs + "attestors: [{entries: " + byKeys(pemOne) + "}]"
	untagged := one + ", verifyDigest: false"
	attested := func(kind, more string) string {
		return "{" + refs + "attestations: [{type: " + kind + ", attestors: [{entries: " + byKeys(pemOne) + "}]" + more + "}]}"
	}
	condition := func(key, value string) string {
		return `, conditions: [{all: [{key: "{{ ` + key + ` }}", operator: Equals, value: "` + value + `"}]}]`
	}
	signed, unsigned := "reg.test/app:v1@"+digestA, "reg.test/app@"+digestB
	for _, tt := range []struct {
		name, entry string
		images      []string
		want        Status
		message     string
	}{
		{"signed", "{" + one + "}", []string{signed}, Pass, "verified image signatures for " + signed},
		{"by another key", "{" + refs + "attestors: [{entries: " + byKeys(pemTwo) + "}]}", []string{signed}, Fail, ".attestors[0].entries[0].keys: it is by another key"},
		{"unsigned beside a signed one", "{" + one + "}", []string{signed, unsigned}, Fail, unsigned},
		{"no image beside a signed one", "{" + one + "}", []string{signed, "reg.test/App:v1"}, Fail, "reg.test/App:v1"},
		{"no image, where a tag is enough", "{" + untagged + "}", []string{"reg.test/App:v1"}, Fail, "failed to verify image reg.test/App:v1"},
		{"as many as are verified", "{" + one + "}", slices.Repeat([]string{signed}, maxImages), Pass, ""},
		{"one more", "{" + one + "}", slices.Repeat([]string{signed}, maxImages+1), Fail, "the object has 101 images, and 100 at most are verified"},
		{"one more, of which nobody asks who signed", "{" + refs + "required: false}", slices.Repeat([]string{signed}, maxImages+1), Pass, ""},
		{"another registry", "{" + one + "}", []string{"ghcr.io/app:v1"}, None, ""},
		{"a tag", "{" + one + "}", []string{"reg.test/app:v1"}, Fail, "missing digest for reg.test/app:v1"},
		{"a tag that is signed", "{" + untagged + "}", []string{"reg.test/app:v1"}, Pass, ""},
		{"a tag that is not", "{" + untagged + "}", []string{"reg.test/app:v2"}, Fail, ""},
		{"a tag that is none", "{" + untagged + "}", []string{"reg.test/app:v3"}, Fail, "no such tag"},
		{"without keys", "{" + refs + "attestors: [{entries: [{keyless: {issuer: ca, subject: ann}}]}]}", []string{signed}, Pass, ""},
		{"without keys, by another", "{" + refs + "attestors: [{entries: [{keyless: {issuer: ca, subject: bob}}]}]}", []string{signed}, Fail, ".attestors[0].entries[0].keyless: "},
		{"the form before attestors", "{image: \"reg.test/*\", issuer: ca, subject: ann}", []string{signed}, Pass, ""},
		{"one of two", "{" + refs + "attestors: [{count: 1, entries: " + byKeys(pemTwo, pemOne) + "}]}", []string{signed}, Pass, ""},
		{"two of two", "{" + refs + "attestors: [{count: 2, entries: " + byKeys(pemTwo, pemOne) + "}]}", []string{signed}, Fail, ""},
		{"all of two", "{" + refs + "attestors: [{entries: " + byKeys(pemOne, pemTwo) + "}]}", []string{signed}, Fail, ""},
		{"two sets", "{" + refs + "attestors: [{entries: " + byKeys(pemOne) + "}, {entries: " + byKeys(pemTwo) + "}]}", []string{signed}, Fail, ".attestors[1].entries[0].keys"},
		{"two keys in a text", "{" + refs + "attestors: [{entries: " + byKeys(pemOne+pemTwo) + "}]}", []string{signed}, Fail, ""},
		{"one of two in a text", "{" + refs + "attestors: [{count: 1, entries: " + byKeys(pemTwo+pemOne) + "}]}", []string{signed}, Pass, ""},
		{"one of two, with text around them", "{" + refs + "attestors: [{count: 1, entries: " + byKeys("a comment\n"+pemTwo+pemOne+"behind") + "}]}", []string{signed}, Pass, ""},
		{"all of two, with text around them", "{" + refs + "attestors: [{entries: " + byKeys("a comment\n"+pemOne+pemTwo+"behind") + "}]}", []string{signed}, Fail, ".attestors[0].entries[0].keys"},
		{"more than there are", "{" + refs + "attestors: [{count: 3, entries: " + byKeys(pemOne) + "}]}", []string{signed}, Fail, "3 of 1 attestors are needed"},
		{"a set within", "{" + refs + "attestors: [{entries: [{attestor: {count: 1, entries: " + byKeys(pemTwo, pemOne) + "}}]}]}", []string{signed}, Pass, ""},
		{"a set within that fails", "{" + refs + "attestors: [{entries: [{attestor: {entries: " + byKeys(pemTwo, pemOne) + "}}]}]}", []string{signed}, Fail, ".attestors[0].entries[0].attestor.entries[0].keys"},
		{"left out", "{" + one + `, skipImageReferences: ["reg.test/app*"]}`, []string{unsigned}, Skip, "skipping image reference image"},
		{"two entries", "{" + one + "}, {" + refs + "attestors: [{entries: " + byKeys(pemTwo) + "}]}", []string{signed}, Fail, ""},
		{"two entries, the other way round", "{" + refs + "attestors: [{entries: " + byKeys(pemTwo) + "}]}, {" + one + "}", []string{signed}, Fail, ""},
		{"nobody must have signed", "{" + refs + "required: false}", []string{unsigned}, Pass, "has a digest"},
		{"nobody must have signed, and it is required", "{" + refs + "mutateDigest: true}", []string{unsigned}, Fail, "unverified image"},
		{"attested", attested("slsa", condition("builder.id", "x")), []string{signed}, Pass, "verified image attestations for"},
		{"attested otherwise", attested("slsa", condition("builder.id", "y")), []string{signed}, Fail, "do not hold"},
		{"not attested", attested("vuln", ""), []string{signed}, Fail, "no attestation of the type"},
		{"attested twice, once otherwise", attested("two", condition("ok", "yes")), []string{signed}, Fail, "do not hold"},
		{"no map", attested("text", condition("ok", "yes")), []string{signed}, Fail, "is no map"},
		{"the request is its own", attested("slsa", condition("request.namespace", "team")), []string{signed}, Pass, ""},
		{"a star that is attested is none", attested("slsa", `, conditions: [{all: [{key: abc, operator: Equals, value: "{{ star }}"}]}]`), []string{signed}, Fail, ""},
		{"without attestors of its own", "{" + one + `, attestations: [{type: slsa}]}`, []string{signed}, Pass, ""},
		{"without attestors of its own, and not attested", "{" + one + `, attestations: [{type: vuln}]}`, []string{signed}, Fail, "no attestation of the type"},
		{"what is attested by a name", "{" + refs + "attestations: [{name: p, type: slsa, attestors: [{entries: " + byKeys(pemOne) + "}]}], validate: {message: never, deny: {conditions: {all: [{key: \"{{ p.builder.id }}\", operator: Equals, value: x}]}}}}", []string{signed}, Fail, "validation in verifyImages failed: never"},
		{"validate with a message only", "{" + one + ", attestations: [{type: slsa}], validate: {message: never}}", []string{signed}, Pass, ""},
	} {
		got := judgeOne(t, imageRule(tt.entry), &Request{Admission: create(podRunning(t, tt.images...))}, &Offline{Proofs: registry})
		if got.Status != tt.want || !strings.Contains(got.Message, tt.message) {
			t.Errorf("%s: want %s with %q, got %s %q", tt.name, tt.want, tt.message, got.Status, got.Message)
		}
	}
}

// Who writes an image otherwise does not escape a rule.
func TestSelectedImages(t *testing.T) {
	for _, tt := range []struct {
		pattern, image string
		want           bool
	}{
		{"reg.test/app:*", "reg.test/app:v1", true},
		{"reg.test/app:*", "reg.test/app@" + digestA, true},
		{"reg.test/app:*", "reg.test/app:v1@" + digestA, true},
		{"reg.test/app:v1", "reg.test/app@" + digestA, true},
		{"reg.test/app:v1", "reg.test/app:v2", false},
		{"reg.test/*", "REG.TEST/app:v1", true},
		{"reg.test/*", "reg.test:443/app:v1", true},
		{"reg.test:443/*", "reg.test:443/app:v1", true},
		{"reg.test/*", "reg.test:5000/app:v1", false},
		{"docker.io/library/*", "nginx", true},
		{"docker.io/library/*", "library/nginx", true},
		{"docker.io/library/*", "index.docker.io/library/nginx", true},
		{"docker.io/*", "registry-1.docker.io/a/b", true},
		{"docker.io/nginx*", "docker.io/library/nginx:1", true},
		{"docker.io/library/*", "team/nginx", false},
		{"*@sha256:*", "reg.test/app:v1", false},
		{"*@sha256:*", "reg.test/app@" + digestA, true},
		{"*", "nginx", true},
	} {
		i, err := parseImage(tt.image, "docker.io")
		if err != nil {
			t.Fatal(err)
		}
		if got := i.selectedBy([]string{tt.pattern}); got != tt.want {
			t.Errorf("%s by %s: %t", tt.image, tt.pattern, got)
		}
	}
}

func TestImagesThatComeOtherwise(t *testing.T) {
	registry := &signedImages{signed: map[string][]string{digestA: {pemOne}}}
	source := imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: ` + byKeys(pemOne) + `}]}`)
	signed, unsigned := "reg.test/app@"+digestA, "reg.test/app@"+digestB
	volume := podRunning(t, signed)
	volume["spec"].(map[string]any)["volumes"] = data(t, `[{name: v, image: {reference: "`+unsigned+`"}}, {name: w, emptyDir: {}}]`)
	ephemeral := admissionRequest("UPDATE", object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {containers: [{name: a, image: "`+signed+`"}], ephemeralContainers: [{name: b, image: "`+unsigned+`"}]}}`), podRunning(t, signed))
	ephemeral["subResource"] = "ephemeralcontainers"
	forged := podRunning(t, unsigned)
	forged["metadata"].(map[string]any)["annotations"] = map[string]any{
		"kyverno.io/verify-images":        `{"` + unsigned + `":"pass"}`,
		"kyverno.io/verify-images-scoped": `{"version":1,"policies":{"/images":{"signed":{"` + unsigned + `":"pass"}}}}`,
	}
	status := admissionRequest("UPDATE", podRunning(t, unsigned), podRunning(t, unsigned))
	status["subResource"] = "status"
	connect := admissionRequest("CONNECT", podRunning(t, unsigned), nil)
	for _, tt := range []struct {
		name    string
		request map[string]any
		want    Status
	}{
		{"a volume", create(volume), Fail},
		{"a container that is added to a Pod", ephemeral, Fail},
		{"an annotation that says so", create(forged), Fail},
		{"an old object that says so", admissionRequest("UPDATE", forged, forged), Fail},
		{"a deletion", admissionRequest("DELETE", nil, podRunning(t, unsigned)), None},
		{"a status", status, None},
		{"a connection", connect, None},
		{"no images", create(object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {containers: []}}`)), None},
	} {
		got := judgeOne(t, source, &Request{Admission: tt.request}, &Offline{Proofs: registry})
		if got.Status != tt.want {
			t.Errorf("%s: want %s, got %s %q", tt.name, tt.want, got.Status, got.Message)
		}
	}
}

func TestExtractedImages(t *testing.T) {
	source := strings.Replace(imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: `+byKeys(pemOne)+`}]}`), "    verifyImages:",
		`    imageExtractors: {Task: [{path: /spec/steps/*/image}, {path: /spec/more/*/at, jmesPath: "trim_prefix(@, 'docker://')"}]}
    verifyImages:`, 1)
	registry := &signedImages{signed: map[string][]string{digestA: {pemOne}}}
	signed, unsigned := "reg.test/app@"+digestA, "reg.test/app@"+digestB
	for spec, want := range map[string]Status{
		`{steps: [{image: "` + signed + `"}], more: {a: {at: "docker://` + signed + `"}}}`:   Pass,
		`{steps: [{image: "` + unsigned + `"}], more: {a: {at: "docker://` + signed + `"}}}`: Fail,
		`{steps: [{image: "` + signed + `"}], more: {a: {at: "docker://` + unsigned + `"}}}`: Fail,
		`{steps: text}`: Error,
	} {
		got := judgeOne(t, source, &Request{Admission: create(object(t, "{apiVersion: tekton.dev/v1, kind: Task, metadata: {name: a, namespace: team}, spec: "+spec+"}"))}, &Offline{Proofs: registry})
		if got.Status != want {
			t.Errorf("%s: want %s, got %s %q", spec, want, got.Status, got.Message)
		}
	}
}

func TestRegistryDown(t *testing.T) {
	source := imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: ` + byKeys(pemOne) + `}]}`)
	oneOfTwo := imageRule(`{imageReferences: ["reg.test/*"], attestors: [{count: 1, entries: ` + byKeys(pemOne, pemTwo) + `}]}`)
	signed, other := "reg.test/app@"+digestA, "reg.test/more@"+digestA
	labelled := podRunning(t, signed)
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
	for _, tt := range []struct {
		name, source string
		request      map[string]any
		want         Status
	}{
		{"a creation", source, create(podRunning(t, signed)), Error},
		{"one of two", oneOfTwo, create(podRunning(t, signed)), Error},
		{"a label", source, admissionRequest("UPDATE", labelled, podRunning(t, signed)), Skip},
		{"one image more", source, admissionRequest("UPDATE", podRunning(t, signed, other), podRunning(t, signed)), Error},
		{"another image", source, admissionRequest("UPDATE", podRunning(t, other), podRunning(t, signed)), Error},
	} {
		got := judgeOne(t, tt.source, &Request{Admission: tt.request}, &Offline{Proofs: &signedImages{down: true}})
		if got.Status != tt.want {
			t.Errorf("%s: want %s, got %s %q", tt.name, tt.want, got.Status, got.Message)
		}
	}
	got := judgeOne(t, source, &Request{Admission: create(podRunning(t, signed))}, &Offline{})
	if got.Status != Error || got.Code != Unsupported {
		t.Errorf("without a registry: got %+v", got)
	}
}

// A signer who could not be asked decides nothing, unless the others do.
func TestHold(t *testing.T) {
	down := fmt.Errorf("%w", ErrUnreachable)
	wrong := errors.New("by another key")
	answers := map[string]error{"yes": nil, "no": wrong, "down": down}
	set := func(count int, keys ...string) signerSet {
		out := signerSet{count: count}
		for _, k := range keys {
			out.signers = append(out.signers, signer{at: k, by: Attestor{Key: k}})
		}
		return out
	}
	for _, tt := range []struct {
		name string
		sets []signerSet
		want string
	}{
		{"none", nil, "holds"},
		{"all", []signerSet{set(0, "yes", "yes")}, "holds"},
		{"not all", []signerSet{set(0, "yes", "no")}, "fails"},
		{"one", []signerSet{set(1, "no", "yes")}, "holds"},
		{"none of one", []signerSet{set(1, "no", "no")}, "fails"},
		{"perhaps", []signerSet{set(1, "no", "down")}, "unknown"},
		{"perhaps, but not enough", []signerSet{set(2, "no", "down")}, "fails"},
		{"enough, whatever is down", []signerSet{set(1, "down", "yes")}, "holds"},
		{"one set fails, one is unknown", []signerSet{set(1, "down"), set(1, "no")}, "fails"},
		{"two sets are unknown", []signerSet{set(1, "down"), set(1, "down")}, "unknown"},
		{"within", []signerSet{{signers: []signer{{set: &signerSet{count: 2, signers: set(0, "no", "down").signers}}}}}, "fails"},
	} {
		err := hold(tt.sets, func(a Attestor) error { return answers[a.Key] })
		got := "fails"
		switch {
		case err == nil:
			got = "holds"
		case errors.Is(err, ErrUnreachable):
			got = "unknown"
		}
		if got != tt.want {
			t.Errorf("%s: want %s, got %s: %v", tt.name, tt.want, got, err)
		}
	}
}

func TestPinImages(t *testing.T) {
	registry := &signedImages{tags: map[string]string{"reg.test/app:v1": digestA, "docker.io/nginx:latest": digestB}}
	entry := func(more string) string {
		return `{imageReferences: ["*"], attestors: [{entries: ` + byKeys(pemOne) + `}]` + more + `}`
	}
	for _, tt := range []struct {
		name, entry string
		images      []string
		want        []string
	}{
		{"tags", entry(""), []string{"reg.test/app:v1", "nginx"}, []string{"reg.test/app:v1@" + digestA, "docker.io/nginx:latest@" + digestB}},
		{"digests", entry(""), []string{"reg.test/app@" + digestB}, []string{"reg.test/app@" + digestB}},
		{"one twice", entry("") + ", " + entry(""), []string{"reg.test/app:v1", "reg.test/app:v1"}, []string{"reg.test/app:v1@" + digestA, "reg.test/app:v1@" + digestA}},
		{"not wanted", entry(", mutateDigest: false"), []string{"reg.test/app:v1"}, []string{"reg.test/app:v1"}},
		{"not selected", strings.Replace(entry(""), `"*"`, `"ghcr.io/*"`, 1), []string{"reg.test/app:v1"}, []string{"reg.test/app:v1"}},
		{"no image beside it", entry(""), []string{"reg.test/app:v1", "reg.test/App:v1"}, []string{"reg.test/app:v1@" + digestA, "reg.test/App:v1"}},
		{"one that is not there", entry(""), []string{"reg.test/app:v1", "reg.test/app:v9"}, nil},
	} {
		in := New(parse(t, imageRule(tt.entry)).Policies, nil, &Offline{Proofs: registry}, Limits{})
		before := podRunning(t, tt.images...)
		kept := maps.Clone(before)
		got := in.PinImages(t.Context(), &Request{Admission: create(before)})
		if tt.want == nil {
			if got.Changed() || got.Rules[0].Status != Error || !strings.Contains(got.Rules[0].Message, "failed to update digest") {
				t.Errorf("%s: got %+v", tt.name, got.Rules)
			}
			continue
		}
		var images []string
		for _, c := range got.After["spec"].(map[string]any)["containers"].([]any) {
			images = append(images, c.(map[string]any)["image"].(string))
		}
		if !slices.Equal(images, tt.want) || !sameObject(before, kept) {
			t.Errorf("%s: want %v, got %v", tt.name, tt.want, images)
		}
	}
	down := New(parse(t, imageRule(entry(""))).Policies, nil, &Offline{Proofs: &signedImages{down: true}}, Limits{})
	if got := down.PinImages(t.Context(), &Request{Admission: admissionRequest("UPDATE", podRunning(t, "reg.test/app:v1"), podRunning(t, "reg.test/app:v1"))}); got.Rules[0].Status == Error {
		t.Errorf("an object that has its images already: %+v", got.Rules[0])
	}
	if got := down.PinImages(t.Context(), &Request{Admission: create(podRunning(t, "reg.test/app:v1"))}); got.Rules[0].Status != Error {
		t.Errorf("an object with new images: %+v", got.Rules[0])
	}
}

func TestKeysOfSecrets(t *testing.T) {
	registry := &signedImages{signed: map[string][]string{digestA: {pemOne}}}
	secret := func(key string) *Offline {
		return &Offline{Proofs: registry, Answers: map[string][]byte{"/api/v1/namespaces/ns/secrets/key": []byte(`{"data":{"` + key + `":"LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KYjI1bAotLS0tLUVORCBQVUJMSUMgS0VZLS0tLS0K"}}`)}}
	}
	entry := imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: [{keys: {publicKeys: "k8s://ns/key"}}]}]}`)
	request := &Request{Admission: create(podRunning(t, "reg.test/app@"+digestA))}
	if got := judgeOne(t, entry, request, secret("cosign.pub")); got.Status != Pass {
		t.Errorf("got %+v", got)
	}
	if got := judgeOne(t, entry, request, secret("other")); got.Status != Error || !strings.Contains(got.Message, "has no cosign.pub") {
		t.Errorf("got %+v", got)
	}
	if got := judgeOne(t, entry, request, &Offline{Proofs: registry}); got.Status != Error {
		t.Errorf("got %+v", got)
	}
	own := strings.Replace(strings.Replace(entry, "kind: ClusterPolicy", "kind: Policy", 1), "{name: images,", "{name: images, namespace: team,", 1)
	if got := judgeOne(t, own, request, secret("cosign.pub")); got.Status != Error || !strings.Contains(got.Message, "reaches no Secret of the namespace ns") {
		t.Errorf("of a policy of another namespace: got %+v", got)
	}
	byVariable := strings.Replace(imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: [{keys: {publicKeys: "{{ keys.data.pub }}"}}]}]}`), "    verifyImages:",
		"    context: [{name: keys, configMap: {name: keys, namespace: ns}}]\n    verifyImages:", 1)
	world := &Offline{Proofs: registry, Objects: []map[string]any{object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: keys, namespace: ns}, data: {pub: "+quoted(pemOne)+"}}")}}
	if got := judgeOne(t, byVariable, request, world); got.Status != Pass {
		t.Errorf("got %+v", got)
	}
}

// A host has more spellings than letters, and so have patterns.
func TestSpellingsOfHosts(t *testing.T) {
	for _, tt := range []struct {
		pattern, image, asked string
	}{
		{"reg.test/*", "reg.test:0443/app:v1", "reg.test/app:v1"},
		{"reg.test/*", "Reg.Test:000443/app@" + digestA, "reg.test/app@" + digestA},
		{"reg.test:5000/*", "reg.test:05000/app:v1", "reg.test:5000/app:v1"},
		{"docker.io/library/*", "registry.hub.docker.com/library/nginx", "docker.io/library/nginx:latest"},
		{"docker.io/library/*", "index.docker.io:0443/library/nginx", "docker.io/library/nginx:latest"},
		{"index.docker.io/library/*", "nginx", "docker.io/nginx:latest"},
		{"Reg.Test:443/app:*", "reg.test/app:v1", "reg.test/app:v1"},
	} {
		i, err := parseImage(tt.image, "docker.io")
		if err != nil {
			t.Fatal(err)
		}
		if !i.selectedBy([]string{tt.pattern}) {
			t.Errorf("%s does not select %s", tt.pattern, tt.image)
		}
		if got := i.pullReference(); got != tt.asked {
			t.Errorf("%s: asked for %s", tt.image, got)
		}
	}
}

// A host in one word is one to who pulls, and no part of Docker Hub.
func TestHostsInOneWord(t *testing.T) {
	for text, want := range map[string]string{
		"Acme/app:v1": "acme:443/app:v1", "localhost/app:v1": "localhost:443/app:v1", "localhost:5000/app:v1": "localhost:5000/app:v1", "acme/app:v1": "docker.io/acme/app:v1",
	} {
		i, err := parseImage(text, "docker.io")
		if err != nil {
			t.Fatal(err)
		}
		if got := i.pullReference(); got != want {
			t.Errorf("%s: asked for %s", text, got)
		}
	}
}

// The ID of an image means one that a node has, whoever it is of.
func TestImageByID(t *testing.T) {
	source := imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: ` + byKeys(pemOne) + `}]}`)
	got := judgeOne(t, source, &Request{Admission: create(podRunning(t, digestB))}, &Offline{Proofs: &signedImages{}})
	if got.Status != Fail || !strings.Contains(got.Message, digestB) {
		t.Errorf("got %+v", got)
	}
}

// applyRules: One is about rules of one sort: an object that is valid may have unsigned images.
func TestImagesWhereOneRuleApplies(t *testing.T) {
	source := strings.Replace(imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: `+byKeys(pemOne)+`}]}`), "  rules:\n", `  applyRules: One
  rules:
  - name: valid
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {metadata: {name: "?*"}}}
`, 1)
	in := New(parse(t, source).Policies, nil, &Offline{Proofs: &signedImages{}}, Limits{})
	got := in.Judge(t.Context(), &Request{Admission: create(podRunning(t, "reg.test/app@"+digestB))})
	if len(got) != 2 || got[0].Status != Pass || got[1].Status != Fail {
		t.Errorf("got %+v", got)
	}
}

// Who attests does not say what is asked of him.
func TestPredicateAndContext(t *testing.T) {
	source := strings.Replace(imageRule(`{imageReferences: ["reg.test/*"], attestations: [{type: slsa, attestors: [{entries: `+byKeys(pemOne)+`}],
      conditions: [{all: [{key: "{{ builder }}", operator: AnyIn, value: "{{ trusted }}"}]}]}]}`), "    verifyImages:", `    context: [{name: trusted, variable: {value: [ours]}}]
    verifyImages:`, 1)
	for builder, want := range map[string]Status{"ours": Pass, "theirs": Fail} {
		registry := &signedImages{attested: map[string][]any{digestA + " slsa " + pemOne: {map[string]any{"builder": builder, "trusted": []any{"theirs"}}}}}
		got := judgeOne(t, source, &Request{Admission: create(podRunning(t, "reg.test/app@"+digestA))}, &Offline{Proofs: registry})
		if got.Status != want {
			t.Errorf("%s: want %s, got %s %q", builder, want, got.Status, got.Message)
		}
	}
}

// A set within that fails leaves open what those beside it would say.
func TestHoldBesideASetThatFails(t *testing.T) {
	fails := &signerSet{signers: []signer{{by: Attestor{Key: "no"}}}}
	err := hold([]signerSet{{count: 1, signers: []signer{{set: fails}, {by: Attestor{Key: "down"}}}}}, func(a Attestor) error {
		if a.Key == "down" {
			return ErrUnreachable
		}
		return errors.New("by another key")
	})
	if !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

// What each attestor attests must meet the conditions, also where it is in a repository of its own.
func TestConditionsOfEachAttestor(t *testing.T) {
	registry := &signedImages{attested: map[string][]any{
		digestA + " scan " + pemOne: {map[string]any{"ok": "no"}}, digestA + " scan " + pemTwo: {map[string]any{"ok": "yes"}},
	}}
	source := imageRule(`{imageReferences: ["reg.test/*"], attestations: [{type: scan, attestors: [{entries: ` + byKeys(pemOne, pemTwo) + `}],
      conditions: [{all: [{key: "{{ ok }}", operator: Equals, value: "yes"}]}]}]}`)
	got := judgeOne(t, source, &Request{Admission: create(podRunning(t, "reg.test/app@"+digestA))}, &Offline{Proofs: registry})
	if got.Status != Fail {
		t.Errorf("got %+v", got)
	}
}

// An image that an entry leaves out is not an image that it pins: its registry may be none that is asked.
func TestImagesThatAreLeftOutAreNotPinned(t *testing.T) {
	source := imageRule(`{imageReferences: ["*"], skipImageReferences: ["private.test/*"], attestors: [{entries: ` + byKeys(pemOne) + `}]}`)
	in := New(parse(t, source).Policies, nil, &Offline{Proofs: &signedImages{}}, Limits{})
	got := in.PinImages(t.Context(), &Request{Admission: create(podRunning(t, "private.test/app:v1"))})
	if got.Changed() || got.Rules[0].Status == Error {
		t.Errorf("got %+v", got.Rules)
	}
}

// An image counts whether or not it has what names it elsewhere.
func TestExtractedImagesWithoutAKey(t *testing.T) {
	source := strings.Replace(imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: `+byKeys(pemOne)+`}]}`), "    verifyImages:",
		`    imageExtractors: {Task: [{path: /spec/steps/*/image, key: name}]}
    verifyImages:`, 1)
	task := object(t, `{apiVersion: tekton.dev/v1, kind: Task, metadata: {name: a, namespace: team}, spec: {steps: [{image: "reg.test/app@`+digestB+`"}]}}`)
	if got := judgeOne(t, source, &Request{Admission: create(task)}, &Offline{Proofs: &signedImages{}}); got.Status != Fail {
		t.Errorf("got %+v", got)
	}
}

// A malformed image fails also where preconditions look at images.
func TestMalformedImageAndPreconditions(t *testing.T) {
	source := strings.Replace(imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: `+byKeys(pemOne)+`}]}`), "    verifyImages:",
		`    preconditions: {all: [{key: "{{ images.containers.*.registry || '' }}", operator: AnyIn, value: [reg.test]}]}
    verifyImages:`, 1)
	request := &Request{Admission: create(podRunning(t, "reg.test/app@"+digestB, "reg.test/App:v1"))}
	if got := judgeOne(t, source, request, &Offline{Proofs: &signedImages{}}); got.Status != Fail || !strings.Contains(got.Message, "App:v1") {
		t.Errorf("got %+v", got)
	}
}

// What keeps an object from going, as a finalizer that is taken off, brings no image.
func TestImagesOfWhatGoes(t *testing.T) {
	registry := &signedImages{tags: map[string]string{"reg.test/app:v1": digestB}}
	source := imageRule(`{imageReferences: ["reg.test/*"], attestors: [{entries: ` + byKeys(pemOne) + `}]}`)
	going := func(image string) map[string]any {
		o := podRunning(t, image)
		o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		return o
	}
	for _, tt := range []struct {
		name     string
		now, was map[string]any
		want     Status
	}{
		{"as it was", going("reg.test/app:v1"), going("reg.test/app:v1"), None},
		{"with another image", going("reg.test/app:v1"), going("reg.test/app:v2"), Fail},
		{"one that stays", podRunning(t, "reg.test/app:v1"), podRunning(t, "reg.test/app:v1"), Fail},
		{"one that is said to go, and is new", going("reg.test/app:v1"), nil, Fail},
	} {
		request := &Request{Admission: admissionRequest("UPDATE", tt.now, tt.was)}
		if tt.was == nil {
			request.Admission = create(tt.now)
		}
		if got := judgeOne(t, source, request, &Offline{Proofs: registry}); got.Status != tt.want {
			t.Errorf("%s: want %s, got %s %q", tt.name, tt.want, got.Status, got.Message)
		}
	}
	in := New(parse(t, source).Policies, nil, &Offline{Proofs: registry}, Limits{})
	if got := in.PinImages(t.Context(), &Request{Admission: admissionRequest("UPDATE", going("reg.test/app:v1"), going("reg.test/app:v1"))}); got.Changed() {
		t.Errorf("what goes is changed: %+v", got.Rules)
	}
}
