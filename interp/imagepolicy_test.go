package interp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
)

// imagePolicy is an ImageValidatingPolicy about pods, and what differs in it.
func imagePolicy(name, rest string) string {
	return `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: ` + name + `}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [pods, pods/ephemeralcontainers]}]}
  attestors:
  - {name: one, cosign: {key: {data: ` + quoted(pemOne) + `}}}
  - {name: two, cosign: {key: {data: ` + quoted(pemTwo) + `}}}
  - {name: ann, cosign: {keyless: {identities: [{subject: bob, issuer: ca}, {subject: ann, issuer: ca}]}}}
  attestations: [{name: slsa, intoto: {type: slsa}}, {name: vuln, intoto: {type: vuln}}]
` + rest
}

// allBy is a validation that each image is signed by some attestors.
func allBy(attestors ...string) string {
	return demand("images.containers.map(i, verifyImageSignatures(i, [" + strings.Join(attestors, ", ") + "])).all(n, n > 0)")
}

func demand(expression string) string {
	return "  validations: [{expression: " + quoted(strings.ReplaceAll(expression, `"`, `\"`)) + ", message: refused}]\n"
}

func TestImageValidatingPolicy(t *testing.T) {
	registry := &signedImages{
		tags:   map[string]string{"reg.test/app:v1": digestA, "reg.test/app:v2": digestB},
		signed: map[string][]string{digestA: {pemOne, "ann ca"}},
		attested: map[string][]any{
			digestA + " slsa " + pemOne: {map[string]any{"id": "old"}, map[string]any{"id": "x"}},
		},
	}
	signed, unsigned := "reg.test/app:v1@"+digestA, "reg.test/app@"+digestB
	byOne := allBy("attestors.one")
	const untagged = "  validationConfigurations: {verifyDigest: false}\n"
	const optional = "  validationConfigurations: {required: false}\n"
	for _, tt := range []struct {
		name, rest string
		images     []string
		want       Status
		message    string
	}{
		{"signed", byOne, []string{signed}, Pass, "success"},
		{"unsigned", byOne, []string{unsigned}, Fail, "refused; image " + unsigned + ": one: it is by another key"},
		{"unsigned beside a signed one", byOne, []string{signed, unsigned}, Fail, "refused; image " + unsigned},
		{"by another key", allBy("attestors.two"), []string{signed}, Fail, "two: it is by another key"},
		{"by one of two", allBy("attestors.two", "attestors.one"), []string{signed}, Pass, ""},
		{"by two of two", demand("verifyImageSignatures(images.containers[0], [attestors.one, attestors.ann]) == 2"), []string{signed}, Pass, ""},
		{"by an identity among several", allBy("attestors.ann"), []string{signed}, Pass, ""},
		{"by nobody", demand("verifyImageSignatures(images.containers[0], []) == 0"), []string{signed}, Fail, "is not verified: no policy performed"},
		{"a tag", byOne, []string{"reg.test/app:v1"}, Fail, "image reg.test/app:v1 does not have a digest"},
		{"a tag that is signed", untagged + byOne, []string{"reg.test/app:v1"}, Pass, ""},
		{"a tag that is not", untagged + byOne, []string{"reg.test/app:v2"}, Fail, "refused"},
		{"a tag that is none", untagged + byOne, []string{"reg.test/app:v3"}, Error, "there is no such tag"},
		{"no image", byOne, []string{signed, "reg.test/App:v1"}, Fail, "reg.test/App:v1"},
		{"the ID of an image", byOne, []string{digestA}, Fail, "ID of an image"},
		{"nobody asked", demand("true"), []string{signed}, Fail, "image " + signed + " is not verified: no policy performed a signature or attestation check on it"},
		{"nobody asked, and need not", optional + demand("true"), []string{unsigned}, Pass, ""},
		{"asked in vain", demand("verifyImageSignatures(images.containers[0], [attestors.one]) >= 0"), []string{unsigned}, Fail, "failed signature or attestation verification; one: it is by another key"},
		{"of another name", `  matchImageReferences: [{glob: "ghcr.io/*"}]` + "\n" + byOne, []string{unsigned}, Pass, ""},
		{"of another name, asked by its text", `  matchImageReferences: [{glob: "ghcr.io/*"}]` + "\n" + demand("verifyImageSignatures('"+signed+"', [attestors.one]) == 0"), []string{signed}, Pass, ""},
		{"of the name", `  matchImageReferences: [{glob: "ghcr.io/*"}, {expression: "ref.startsWith('reg.test/')"}]` + "\n" + byOne, []string{unsigned}, Fail, ""},
		{"attested", demand("verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.one]) > 0"), []string{signed}, Pass, ""},
		{"attested, by another", demand("verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.two]) > 0"), []string{signed}, Fail, "there is no attestation of the type"},
		{"what is attested", demand("verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.one]) > 0 && extractPayload(images.containers[0], attestations.slsa).predicate.id == 'x'"), []string{signed}, Pass, ""},
		{"what is attested otherwise", demand("verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.one]) > 0 && extractPayload(images.containers[0], attestations.slsa).predicate.id == 'old'"), []string{signed}, Fail, ""},
		{"what nobody has proven", demand("extractPayload(images.containers[0], attestations.slsa).predicate.id == 'x'"), []string{signed}, Error, "is not verified; call verifyAttestationSignatures first"},
		{"what another has proven", demand("verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.two]) >= 0 && extractPayload(images.containers[0], attestations.slsa).predicate.id == 'x'"), []string{signed}, Error, "is not verified"},
		{"an attestation that is none", demand("verifyAttestationSignatures(images.containers[0], 'x', [attestors.one]) > 0"), []string{signed}, Error, `no attestation "x"`},
		{"an attestor that is none", demand("verifyImageSignatures(images.containers[0], ['one']) > 0"), []string{signed}, Error, "is no attestor"},
		{"an attestor that is not there", allBy("attestors.three"), []string{signed}, Error, "no such key: three"},
		{"variables", "  variables: [{name: counts, expression: \"images.containers.map(i, verifyImageSignatures(i, [attestors.one]))\"}]\n" + demand("variables.counts.all(n, n > 0)"), []string{signed}, Pass, ""},
		{"a condition that does not hold", "  matchConditions: [{name: a, expression: \"object.metadata.name == 'b'\"}]\n" + byOne, []string{unsigned}, None, ""},
		{"a condition that errs", "  matchConditions: [{name: a, expression: \"object.metadata.none == 'b'\"}]\n" + byOne, []string{signed}, Error, "match conditions"},
		{"a condition that errs, ignored", "  failurePolicy: Ignore\n  matchConditions: [{name: a, expression: \"object.metadata.none == 'b'\"}]\n" + byOne, []string{unsigned}, Skip, ""},
		{"images of its own", `  images: [{name: of, expression: "[object.metadata.annotations['at']]"}]` + "\n" + demand("images.of.all(i, verifyImageSignatures(i, [attestors.one]) > 0) && images.containers.all(i, verifyImageSignatures(i, [attestors.one]) > 0)"), []string{signed}, Fail, "refused"},
		{"a key by an expression", strings.Replace(byOne, "attestors.one", "attestors.three", 1) + "  attestors: [{name: three, cosign: {key: {expression: \"object.metadata.annotations['key']\"}}}]\n", []string{signed}, Pass, ""},
		{"no messages", "  validations: [{expression: \"true\"}, {expression: \"false\"}]\n", []string{signed}, Fail, "CEL expression validation failed at index 1"},
		{"a message by an expression", "  validations: [{expression: \"false\", messageExpression: \"'is ' + images.containers[0]\"}]\n", []string{signed}, Fail, "is " + signed},
		{"exceptions, which there are none of", demand("exceptions.allowedImages == []"), []string{signed}, Error, "undeclared reference to 'exceptions'"},
	} {
		source := imagePolicy("p", tt.rest)
		if strings.Contains(tt.rest, "  attestors:") {
			head, tail, _ := strings.Cut(source, "  attestors:\n")
			_, tail, _ = strings.Cut(tail, "  attestations:")
			source = head + "  attestations:" + tail
		}
		pod := podRunning(t, tt.images...)
		pod["metadata"].(map[string]any)["annotations"] = map[string]any{"at": unsigned, "key": pemOne}
		got := judgeOne(t, source, &Request{Admission: create(pod)}, &Offline{Proofs: registry})
		if got.Status != tt.want || !strings.Contains(got.Message, tt.message) {
			t.Errorf("%s: want %s with %q, got %s %q", tt.name, tt.want, tt.message, got.Status, got.Message)
		}
	}
}

// One policy may verify what another wants to be verified, in any order. Those that are judged
// apart share what they found, but for one that is judged beside them.
func TestImagesThatAnotherVerifies(t *testing.T) {
	registry := &signedImages{signed: map[string][]string{digestA: {pemOne}}}
	wants, verifies := imagePolicy("a", demand("true")), imagePolicy("b", allBy("attestors.one"))
	request := &Request{Admission: create(podRunning(t, "reg.test/app@"+digestA))}
	for _, source := range []string{wants + "---\n" + verifies, verifies + "---\n" + wants} {
		for _, got := range judgeAll(t, source, request, &Offline{Proofs: registry}) {
			if got.Status != Pass {
				t.Errorf("%s: %s %q", got.Policy, got.Status, got.Message)
			}
		}
	}
	for _, tt := range []struct {
		beside bool
		want   Status
	}{{false, Pass}, {true, Fail}} {
		shared := &Verified{}
		judge := func(source string, v *Verified) []RuleResult {
			one := *request
			one.Verified = v
			return judgeAll(t, source, &one, &Offline{Proofs: registry})
		}
		first, other := judge(wants, shared), shared
		if tt.beside {
			other = shared.Beside()
		}
		second := judge(verifies, other)
		if first[0].Status != Pass {
			t.Errorf("settled too early: %+v", first)
		}
		shared.Settle(first)
		other.Settle(second)
		if first[0].Status != tt.want || second[0].Status != Pass {
			t.Errorf("beside %t: %+v %+v", tt.beside, first, second)
		}
	}
}

func TestImageGlobs(t *testing.T) {
	for _, tt := range []struct {
		glob, image string
		want        bool
	}{
		{"reg.test/app:*", "reg.test/app:v1", true},
		{"reg.test/app:*", "reg.test/app@" + digestA, true},
		{"reg.test/app:v1", "reg.test/app:v1@" + digestA, true},
		{"reg.test/*", "REG.TEST/a/b:v1", true},
		{"REG.test:443/*", "reg.test/a/b:v1", true},
		{"reg.test/?", "reg.test/ab", false},
		{"reg.test/{a,b{c,d}}:*", "reg.test/bd@" + digestA, true},
		{"reg.test/{a,b{c,d}}:*", "reg.test/b:1", false},
		{"reg.test/[a-c]pp*", "reg.test/app:1", true},
		{"reg.test/[!a-c]pp*", "reg.test/app:1", false},
		{"docker.io/*", "nginx", true},
		{"docker.io/library/*", "nginx@" + digestA, true},
		{"nginx*", "nginx:1", true},
		{"reg.test.*", "regxtest.a/b", false},
		{`reg.test/\*`, "reg.test/a", false},
	} {
		g, err := readGlob(tt.glob)
		if err != nil {
			t.Fatal(err)
		}
		i, err := parseImage(tt.image, "docker.io")
		if err != nil {
			t.Fatal(err)
		}
		if got := g.matches(tt.image, i); got != tt.want {
			t.Errorf("%s by %s: %t", tt.image, tt.glob, got)
		}
	}
	for _, bad := range []string{"a{b", "a[b", `a\`, strings.Repeat("{a,b}", 10)} {
		if _, err := readGlob(bad); err == nil {
			t.Errorf("%s is a glob", bad)
		}
	}
}

// Questions of one expression are asked together, each once, and a tag is resolved once.
func TestImagesAreAskedTogether(t *testing.T) {
	registry := &signedImages{tags: map[string]string{}, signed: map[string][]string{digestA: {pemOne}}}
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprintf("reg.test/app%d:v1", i))
		registry.tags[all[i]] = digestA
	}
	source := imagePolicy("p", "  validationConfigurations: {verifyDigest: false}\n"+
		demand("images.containers.all(i, verifyImageSignatures(i, [attestors.two, attestors.one]) > 0)"))
	got := judgeOne(t, source, &Request{Admission: create(podRunning(t, all...))}, &Offline{Proofs: registry})
	if got.Status != Pass {
		t.Fatalf("%+v", got)
	}
	slices.Sort(registry.asked)
	if asked := len(registry.asked); asked != 30 || len(slices.Compact(registry.asked)) != 20 {
		t.Errorf("asked %d times: %v", asked, registry.asked)
	}
}

func TestImagePolicyWithRegistryDown(t *testing.T) {
	source := imagePolicy("p", allBy("attestors.one"))
	signed, other := "reg.test/app@"+digestA, "reg.test/more@"+digestA
	labelled := podRunning(t, signed)
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
	extracting := strings.Replace(source, "  validations:", "  images: [{name: a, expression: \"['"+other+"']\"}]\n  validations:", 1)
	leaving := podRunning(t, signed)
	leaving["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	for _, tt := range []struct {
		name, source string
		request      map[string]any
		want         Status
	}{
		{"a creation", source, create(podRunning(t, signed)), Error},
		{"a label", source, admissionRequest("UPDATE", labelled, podRunning(t, signed)), Skip},
		{"a label, where other fields are images", extracting, admissionRequest("UPDATE", labelled, podRunning(t, signed)), Error},
		{"one image more", source, admissionRequest("UPDATE", podRunning(t, signed, other), podRunning(t, signed)), Error},
		{"an object that goes", source, admissionRequest("UPDATE", leaving, leaving), None},
		{"a deletion", source, admissionRequest("DELETE", nil, podRunning(t, signed)), Error},
	} {
		got := judgeOne(t, tt.source, &Request{Admission: tt.request}, &Offline{Proofs: &signedImages{down: true}})
		if got.Status != tt.want {
			t.Errorf("%s: want %s, got %s %q", tt.name, tt.want, got.Status, got.Message)
		}
	}
	if got := judgeOne(t, source, &Request{Admission: create(podRunning(t, signed))}, &Offline{}); got.Code != Unsupported {
		t.Errorf("without a registry: %+v", got)
	}
}

// Controllers of pods are judged by the rewritten policy, and volumes that are images are images.
func TestImagePolicyOfOtherObjects(t *testing.T) {
	registry := &signedImages{signed: map[string][]string{digestA: {pemOne}}}
	source := strings.Replace(imagePolicy("p", allBy("attestors.one")), "resources: [pods, pods/ephemeralcontainers]", "resources: [pods]", 1)
	signed, unsigned := "reg.test/app@"+digestA, "reg.test/app@"+digestB
	deployment := func(image string) map[string]any {
		r := create(object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: team}, spec: {template: {spec: {containers: [{name: a, image: "`+image+`"}]}}}}`))
		r["resource"] = map[string]any{"group": "apps", "version": "v1", "resource": "deployments"}
		return r
	}
	for image, want := range map[string]Status{signed: Pass, unsigned: Fail} {
		for _, got := range judgeAll(t, source, &Request{Admission: deployment(image)}, &Offline{Proofs: registry}) {
			if got.Rule == "autogen-p" && got.Status != want || got.Rule != "autogen-p" && got.Status != None {
				t.Errorf("%s: %s %s %q", image, got.Rule, got.Status, got.Message)
			}
		}
	}
	volume := podRunning(t, signed)
	volume["spec"].(map[string]any)["volumes"] = data(t, `[{name: v, image: {reference: "`+unsigned+`"}}]`)
	results := judgeAll(t, source, &Request{Admission: create(volume)}, &Offline{Proofs: registry})
	if results[0].Status != Fail || !strings.Contains(results[0].Message, "is not verified") {
		t.Errorf("a volume: %+v", results[0])
	}
	ephemeral := admissionRequest("UPDATE", object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {containers: [{name: a, image: "`+signed+`"}], ephemeralContainers: [{name: b, image: "`+unsigned+`"}]}}`), podRunning(t, signed))
	ephemeral["subResource"] = "ephemeralcontainers"
	if got := judgeOne(t, imagePolicy("p", allBy("attestors.one")), &Request{Admission: ephemeral}, &Offline{Proofs: registry}); got.Status != Fail {
		t.Errorf("a container that is added: %+v", got)
	}
}

func TestImagePolicyPins(t *testing.T) {
	registry := &signedImages{tags: map[string]string{"reg.test/app:v1": digestA, "docker.io/nginx:latest": digestB}}
	pin := func(rest string, request map[string]any) *MutationResult {
		f := parse(t, imagePolicy("p", rest+allBy("attestors.one")))
		return New(f.Policies, f.Exceptions, &Offline{Proofs: registry}, Limits{}).PinImages(t.Context(), &Request{Admission: request})
	}
	request := create(podRunning(t, "reg.test/app:v1", "nginx", "reg.test/app:none", "reg.test/app:v1@"+digestB))
	got := pin("", request)
	text := fmt.Sprint(got.After)
	for _, want := range []string{"reg.test/app:v1@" + digestA, "docker.io/nginx:latest@" + digestB, "reg.test/app:none", "reg.test/app:v1@" + digestB} {
		if !strings.Contains(text, "image:"+want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if r := got.Rules[0]; r.Status != Error || !strings.Contains(r.Message, "failed to update digest") {
		t.Errorf("got %+v", r)
	}
	for _, rest := range []string{
		"  validationConfigurations: {mutateDigest: false}\n", "  matchImageReferences: [{glob: \"ghcr.io/*\"}]\n",
		"  matchConditions: [{name: a, expression: \"false\"}]\n",
	} {
		if got := pin(rest, request); got.Changed() {
			t.Errorf("%s: %v", rest, got.Patch())
		}
	}
}

func TestImagePolicyExceptions(t *testing.T) {
	const exception = `---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: e, namespace: team}
spec: {policyRefs: [{kind: ImageValidatingPolicy, name: p}], images: ["reg.test/*"], reportResult: pass, matchConditions: [{name: a, expression: "object.metadata.name == 'a'"}]}
`
	source := imagePolicy("p", allBy("attestors.one"))
	request := &Request{Admission: create(podRunning(t, "reg.test/app@"+digestB))}
	f := parse(t, source+exception)
	got := New(f.Policies, f.Exceptions, &Offline{Proofs: &signedImages{}}, Limits{}).Judge(t.Context(), request)[0]
	if got.Status != Skip || !slices.Equal(got.Exceptions, []string{"team/e"}) {
		t.Errorf("got %+v", got)
	}
}

// What nothing here proves is not judged, and what anybody could have signed is that.
func TestImagePolicyThatAsksMore(t *testing.T) {
	for _, attestor := range []string{
		"cosign: {key: {kms: 'awskms:///x'}}", "cosign: {keyless: {identities: [{}]}}", "cosign: {keyless: {identities: []}}",
		"cosign: {key: {data: /tmp/key}}", "cosign: {keyless: {identities: [{subjectExpression: x}]}}",
	} {
		source := strings.Replace(imagePolicy("p", demand("true")), "  attestations:", "  - {name: more, "+attestor+"}\n  attestations:", 1)
		f := parse(t, source)
		if _, more := f.Policies[0].VerifiesMore(); !more {
			t.Errorf("%s is verified", attestor)
		}
		got := New(f.Policies, nil, &Offline{Proofs: &signedImages{}}, Limits{}).Judge(t.Context(), &Request{Admission: create(podRunning(t, "a"))})[0]
		if got.Status != Error || got.Code != Unsupported {
			t.Errorf("%s: %+v", attestor, got)
		}
	}
	for _, bad := range []string{
		"cosign: {}", "cosign: {certificate: {}}", "cosign: {key: {}}", "cosign: {key: {data: x}, keyless: {identities: [{issuer: a}]}}", "{}",
		"cosign: {key: {data: x}, ctlog: {insecureIgnoreSCT: true}}", "notary: {}", "notary: {certs: {value: x}, tsaCerts: {value: x}}",
	} {
		attestor := bad
		if bad == "{}" {
			attestor = "x: y"
		}
		_, ds := policy.Parse("p.yaml", []byte(strings.Replace(imagePolicy("p", demand("true")), "  attestations:", "  - {name: more, "+attestor+"}\n  attestations:", 1)))
		if !ds.HasErrors() {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// A pinned image is resolved by nobody else's word.
func TestPayloadOfAnother(t *testing.T) {
	s := &imageSession{form: &validatingForm{images: &imageForm{types: map[string]string{"a": "t"}}}, payloads: map[string]any{"x\x00a": 1}}
	if _, err := s.Payload("y", "a"); err == nil {
		t.Error("the payload of another image is there")
	}
	if !errors.Is(notFetched{ErrUnreachable}, ErrUnreachable) {
		t.Error("a failure is not told")
	}
}
