package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
)

const imagePolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: images}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - `

const publicKey = `"-----BEGIN PUBLIC KEY-----\nMFk=\n-----END PUBLIC KEY-----"`

func images(t *testing.T, entry string) *policy.Rule {
	t.Helper()
	f, ds := policy.Parse("p.yaml", []byte(imagePolicy+entry))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return f.Policies[0].Rules[0]
}

func TestImageVerification(t *testing.T) {
	v := images(t, `{imageReferences: ["reg.test/*"], mutateDigest: false, repository: reg.test/sigs, annotations: {a: b}, attestors: [
      {count: 1, entries: [{keys: {publicKeys: `+publicKey+`, rekor: {ignoreTlog: true}}, signatureAlgorithm: sha512}, {attestor: {entries: [{keys: {publicKeys: "k8s://ns/key"}}]}}]}],
      attestations: [{predicateType: https://slsa.dev/provenance/v0.2, conditions: [{all: [{key: "{{ builder.id }}", operator: Equals, value: x}]}]}]}`).VerifyImages[0]
	if v.Type != "Cosign" || v.MutateDigest || !v.VerifyDigest || !v.Required || !v.UseCache || v.Repository != "reg.test/sigs" || len(v.Annotations) != 1 {
		t.Errorf("got %+v", v)
	}
	set := v.Attestors[0]
	if set.Count != 1 || !strings.Contains(set.Entries[0].Keys.Public.Value, "BEGIN PUBLIC KEY") || !set.Entries[0].Keys.Log.Ignored || set.Entries[0].Keys.Algorithm != "sha512" {
		t.Errorf("got %+v", set.Entries[0].Keys)
	}
	secret := set.Entries[1].Set.Entries[0].Keys
	if secret.SecretNamespace != "ns" || secret.Secret != "key" || secret.Log.Ignored {
		t.Errorf("got %+v", secret)
	}
	if a := v.Attestations[0]; a.Type != "https://slsa.dev/provenance/v0.2" || len(a.Conditions[0].All) != 1 {
		t.Errorf("got %+v", a)
	}
}

// The one key of the form before attestors is for the signatures, or for the attestations.
func TestKeyBeforeAttestors(t *testing.T) {
	v := images(t, `{image: "reg.test/*", key: `+publicKey+`}`).VerifyImages[0]
	if len(v.References) != 1 || len(v.Attestors) != 1 || v.Attestors[0].Entries[0].Keys == nil {
		t.Errorf("got %+v", v)
	}
	v = images(t, `{image: "reg.test/*", key: `+publicKey+`, attestations: [{type: a}]}`).VerifyImages[0]
	if len(v.Attestors) != 0 || len(v.Attestations[0].Attestors) != 1 {
		t.Errorf("got %+v", v)
	}
}

func TestVerifiesMore(t *testing.T) {
	for entry, want := range map[string]string{
		`{imageReferences: ["*"], attestors: [{entries: [{keys: {publicKeys: ` + publicKey + `}}]}]}`:                                     "",
		`{imageReferences: ["*"], attestors: [{entries: [{keys: {publicKeys: "{{ keys.data.pub }}"}}]}]}`:                                 "",
		`{imageReferences: ["*"], attestors: [{entries: [{keys: {secret: {name: a, namespace: b}}}]}]}`:                                   "",
		`{imageReferences: ["*"], attestors: [{entries: [{certificates: {cert: x}}]}]}`:                                                   "",
		`{imageReferences: ["*"], attestors: [{entries: [{certificates: {certChain: x, ctlog: {ignoreSCT: true}}}]}]}`:                    "",
		`{imageReferences: ["*"], attestors: [{entries: [{certificates: {certChain: x}}]}]}`:                                              "",
		`{imageReferences: ["*"], attestors: [{entries: [{keys: {kms: "awskms://x"}}]}]}`:                                                 "key management",
		`{imageReferences: ["*"], attestors: [{entries: [{keys: {publicKeys: "env://KEY"}}]}]}`:                                           "a file or a URL",
		`{imageReferences: ["*"], attestors: [{entries: [{keyless: {issuer: a, subject: b}}]}]}`:                                          "",
		`{imageReferences: ["*"], attestors: [{entries: [{attestor: {entries: [{keyless: {}}]}}]}]}`:                                      "by anybody",
		`{imageReferences: ["*"], attestations: [{type: a, attestors: [{entries: [{keyless: {}}]}]}]}`:                                    "by anybody",
		`{imageReferences: ["*"], attestors: [{entries: [{keys: {publicKeys: ` + publicKey + `, ctlog: {tsaCertChain: "{{ a.b }}"}}}]}]}`: "",
		`{type: Notary, imageReferences: ["*"]}`:                                                                                          "",
		`{type: SigstoreBundle, imageReferences: ["*"]}`:                                                                                  "",
		`{imageReferences: ["*"], cosignOCI11: true}`:                                                                                     "cosignOCI11",
		`{imageReferences: ["*"], attestations: [{type: a}]}`:                                                                             "by anybody",
		`{imageReferences: ["*"], attestors: [{entries: [{keyless: {issuer: a, ctlog: {pubkey: x}}}]}]}`:                                  "",
		`{image: "*", issuer: a, subject: b}`:                                                                                             "",
	} {
		what, more := images(t, entry).VerifiesMore()
		if more != (want != "") || !strings.Contains(what.Value, want) || more && what.Pos.Line == 0 {
			t.Errorf("%s: got %q at %v", entry, what.Value, what.Pos)
		}
	}
}

// An attestation has no annotations: to ask for some of who attests must not mean nothing.
func TestAnnotationsOfAttestations(t *testing.T) {
	entry := `{keys: {publicKeys: ` + publicKey + `}, annotations: {team: a}}`
	for _, attestors := range []string{"[{entries: [" + entry + "]}]", "[{entries: [{attestor: {entries: [" + entry + "]}}]}]"} {
		rule := images(t, `{imageReferences: ["*"], attestations: [{type: a, attestors: `+attestors+`}]}`)
		if what, more := rule.VerifiesMore(); !more || !strings.Contains(what.Value, "annotations") {
			t.Errorf("%s: got %q", attestors, what.Value)
		}
	}
	if what, more := images(t, `{imageReferences: ["*"], attestors: [{entries: [`+entry+`]}], attestations: [{type: a}]}`).VerifiesMore(); more {
		t.Errorf("of signatures: got %q", what.Value)
	}
}

// Certificates that could prove nothing, or would cost much, are refused when they are read.
func TestCertificatesThatAreRefused(t *testing.T) {
	block := "-----BEGIN CERTIFICATE-----\\neA==\\n-----END CERTIFICATE-----\\n"
	many := `"` + strings.Repeat(block, 12) + `"`
	for attestor, want := range map[string]string{
		"certificates: {certChain: " + many + "}":                                      "certChain has more than 10 certificates",
		"certificates: {cert: " + many + "}":                                           "cert has more than 10 certificates",
		"keyless: {issuer: a, subject: b, roots: " + many + "}":                        "roots has more than 10 certificates",
		"keyless: {issuer: a, subject: b, ctlog: {tsaCertChain: " + many + "}}":        "tsaCertChain has more than 10 certificates",
		`keyless: {issuer: a, subject: b, ctlog: {tsaCertChain: "` + block + `"}}`:     "tsaCertChain has no root",
		`keyless: {issuer: a, subject: b, ctlog: {tsaCertChain: "no certificates"}}`:   "tsaCertChain has no root",
		`certificates: {certChain: "{{ chain }}", ctlog: {tsaCertChain: "{{ tsa }}"}}`: "",
	} {
		_, ds := policy.Parse("p.yaml", []byte(imagePolicy+`{imageReferences: ["*"], attestors: [{entries: [{`+attestor+`}]}]}`))
		if ds.HasErrors() != (want != "") || !strings.Contains(fmt.Sprint(ds), want) {
			t.Errorf("%.60s: want %q, got %s", attestor, want, ds)
		}
	}
}

// What only audits changes nothing, so it may not ask to pin images. The action of an entry counts
// for those behind it that have none.
func TestAuditedPins(t *testing.T) {
	const audits, enforces, pins, keeps = "failureAction: Audit, ", "failureAction: Enforce, ", "", "mutateDigest: false, "
	for entries, want := range map[string]int{
		audits + pins: 1, audits + keeps: 0, enforces + pins: 0, pins: 0, audits + "mutateDigest: true, ": 1,
		audits + keeps + "|" + pins: 1, audits + keeps + "|" + enforces + "|" + pins: 0, pins + "|" + audits + pins + "|" + pins: 2, enforces + "|" + audits + keeps + "|" + keeps: 0,
	} {
		for _, action := range []string{"Enforce", "Audit", ""} {
			text := strings.TrimSuffix(strings.Replace(imagePolicy, "validationFailureAction: Enforce\n", "validationFailureAction: "+action+"\n", 1), "- ")
			if action == "" {
				text = strings.Replace(text, "  validationFailureAction: \n", "", 1)
			}
			for entry := range strings.SplitSeq(entries, "|") {
				text += "- {" + entry + "imageReferences: ['*']}\n    "
			}
			first, _, _ := strings.Cut(entries, "|")
			expected := want
			if action != "Enforce" && !strings.Contains(first, "failureAction") && !strings.Contains(first, "mutateDigest") {
				expected++ // by the policy's own
			}
			_, ds := policy.Parse("p.yaml", []byte(text))
			got := strings.Count(fmt.Sprint(ds), "cannot put digests into images")
			if got != expected {
				t.Errorf("%s, policy %q: want %d, got %s", entries, action, expected, ds)
			}
		}
	}
}
