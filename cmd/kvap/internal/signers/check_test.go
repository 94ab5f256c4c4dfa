package signers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/cmd/kvap/internal/signers"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/test/testregistry"
)

func check(t *testing.T, text string, now time.Time) string {
	t.Helper()
	f, ds := policy.Parse("p.yaml", []byte(text))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	var out []string
	for _, p := range f.Policies {
		for _, d := range signers.Check(p, now) {
			out = append(out, fmt.Sprintf("%d:%d %s %s: %s", d.Line, d.Col, d.Severity, d.Code, d.Message))
		}
	}
	return strings.Join(out, "\n")
}

func quote(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }

func TestCheck(t *testing.T) {
	now := time.Now()
	key := testregistry.NewSigner(t).PEM()
	timed := func(header string, at time.Time) string {
		return strings.Replace(key, "KEY-----\n", "KEY-----\n"+header+": "+at.UTC().Format(time.RFC3339)+"\n\n", 1)
	}
	root, ended, soon := testregistry.NewRoot(t), testregistry.NewAuthority(t, nil, -time.Minute), testregistry.NewAuthority(t, nil, 24*time.Hour)
	leaf := testregistry.NewLeaf(t, root, now.Add(-48*time.Hour), now.Add(-24*time.Hour))
	stale := root.Certificate() + root.Revokes(now.Add(-time.Minute))
	const whole = "issuer: https://acme.io, subject: ann@acme.io"
	rooted := whole + ", roots: " + quote(root.Certificate())
	for _, tt := range []struct{ name, entry, want string }{
		{"a key", "{keys: {publicKeys: " + quote(key) + "}}", ""},
		{"a variable", `{keys: {publicKeys: "{{ keys.data.pub }}"}}`, ""},
		{"no key", `{keys: {publicKeys: "-----BEGIN PUBLIC KEY-----\neA==\n-----END PUBLIC KEY-----\n"}}`, "10:"},
		{"half a key", `{keys: {publicKeys: "-----BEGIN PUBLIC KEY-----\neA=="}}`, "KV501: no image passes, since this cannot be read: there is no whole PEM block"},
		{"the second is none", "{keys: {publicKeys: " + quote(key+"-----BEGIN PUBLIC KEY-----\neA==\n-----END PUBLIC KEY-----\n") + "}}", "error KV501"},
		{"a key that ended", "{keys: {publicKeys: " + quote(timed("Not-After", now.Add(-time.Hour))) + "}}", "error KV502: the public key ended on"},
		{"a key that ends soon", "{keys: {publicKeys: " + quote(timed("Not-After", now.Add(48*time.Hour))) + "}}", "warning KV502: the public key ends on"},
		{"a key that ends late", "{keys: {publicKeys: " + quote(timed("Not-After", now.Add(60*24*time.Hour))) + "}}", ""},
		{"a log that is none", "{keys: {publicKeys: " + quote(key) + ", rekor: {pubkey: x}}}", "error KV501"},
		{"a Secret", "{keys: {secret: {name: cosign, namespace: keys}}}", "note KV505: the key is cosign.pub of the Secret keys/cosign; let kvap read this one Secret, by a Role with resourceNames: [cosign]"},
		{"a Secret by its address", "{keys: {publicKeys: k8s://keys/cosign}}", "KV505"},
		{"a chain", "{certificates: {certChain: " + quote(root.Certificate()) + "}}", ""},
		{"a chain that ended", "{certificates: {certChain: " + quote(ended.Certificate()) + "}}", "warning KV502: the certificate of CN="},
		{"a chain that ended, and nobody says when", "{certificates: {certChain: " + quote(ended.Certificate()) + ", rekor: {ignoreTlog: true}}}", "error KV502"},
		{"a chain that ends soon", "{certificates: {certChain: " + quote(soon.Certificate()) + "}}", "ends on"},
		{"a certificate that ended, under a chain", "{certificates: {cert: " + quote(leaf.Certificate()) + ", certChain: " + quote(root.Certificate()) + "}}", "error KV502"},
		{"a certificate that ended, alone", "{certificates: {cert: " + quote(leaf.Certificate()) + "}}", "warning KV502"},
		{"no certificate", "{certificates: {certChain: x}}", "error KV501: no image passes, since this cannot be read: there is no certificate in the PEM"},
		{"a list that ended", "{certificates: {certChain: " + quote(stale) + "}}", "error KV502: the list of revoked certificates ended on"},
		{"stamps that ended", "{keyless: {" + rooted + ", ctlog: {tsaCertChain: " + quote(ended.Certificate()) + "}}}", "warning KV502"},
		{"an identity", "{keyless: {" + rooted + "}}", ""},
		{"an identity of the trusted root", "{keyless: {" + whole + "}}", "note KV503"},
		{"an issuer alone", "{keyless: {issuer: https://acme.io, roots: " + quote(root.Certificate()) + "}}", `warning KV504: anybody whom "https://acme.io" knows may sign; name a subject`},
		{"a subject alone", "{keyless: {subject: ann, roots: " + quote(root.Certificate()) + "}}", `whoever any issuer calls "ann" may sign`},
		{"a part of a name", "{keyless: {issuer: a, subjectRegExp: 'github.com/acme', roots: " + quote(root.Certificate()) + "}}", `the regular expression "github.com/acme" finds a part`},
		{"a name without its beginning", "{keyless: {issuer: a, subjectRegExp: 'github.com/acme$', roots: " + quote(root.Certificate()) + "}}", "finds a part"},
		{"a name without its end", "{keyless: {issuer: a, issuerRegExp: '^acme', subject: b, roots: " + quote(root.Certificate()) + "}}", "finds a part"},
		{"a whole name", "{keyless: {issuer: a, subjectRegExp: '^github.com/acme$', roots: " + quote(root.Certificate()) + "}}", ""},
		{"within a set", "{attestor: {entries: [{keyless: {issuer: a, roots: " + quote(root.Certificate()) + "}}]}}", "KV504"},
	} {
		for kind, text := range map[string]string{
			"signatures":   `attestors: [{entries: [` + tt.entry + `]}]`,
			"attestations": `attestations: [{type: a, attestors: [{entries: [` + tt.entry + `]}]}]`,
		} {
			got := check(t, legacy+"{imageReferences: ['*'], "+text+"}", now)
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%s, %s: want %q, got %s", tt.name, kind, tt.want, got)
			}
		}
	}
	for name, tt := range map[string]struct{ rest, want string }{
		"ended":                       {"", "error KV502"},
		"ended, there are timestamps": {", ctlog: {tsaCertChain: " + quote(root.Certificate()) + "}", "warning KV502"},
	} {
		got := check(t, legacy+"{type: Notary, imageReferences: ['*'], attestors: [{entries: [{certificates: {cert: "+quote(leaf.Certificate())+tt.rest+"}}]}]}", now)
		if !strings.Contains(got, tt.want) {
			t.Errorf("Notary, %s: got %s", name, got)
		}
	}
}

const legacy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - `

func TestCheckOfAnImageValidatingPolicy(t *testing.T) {
	now := time.Now()
	root, ended := testregistry.NewRoot(t), testregistry.NewAuthority(t, nil, -time.Minute)
	for attestor, want := range map[string]string{
		`cosign: {key: {expression: "variables.key"}}`:                                                                                             "",
		`cosign: {key: {data: ` + quote(testregistry.NewSigner(t).PEM()) + `}}`:                                                                    "",
		`cosign: {key: {data: "-----BEGIN PUBLIC KEY-----\neA==\n-----END PUBLIC KEY-----\n"}}`:                                                    "error KV501",
		`cosign: {certificate: {certChain: {value: ` + quote(ended.Certificate()) + `}}}`:                                                          "warning KV502",
		`cosign: {keyless: {identities: [{issuer: a}], roots: ` + quote(root.Certificate()) + `}}`:                                                 "warning KV504",
		`cosign: {keyless: {identities: [{issuer: a, subject: b}]}}`:                                                                               "note KV503",
		`cosign: {keyless: {identities: [{issuer: a, subject: b}]}, trustedRoot: {value: "{}"}}`:                                                   "error KV501",
		`cosign: {key: {expression: "variables.key"}, ctlog: {url: a, rekorPubKey: x}}`:                                                            "error KV501",
		`notary: {certs: {value: ` + quote(ended.Certificate()) + `}}`:                                                                             "error KV502",
		`notary: {certs: {value: ` + quote(ended.Certificate()) + `}, tsaCerts: {value: ` + quote(root.Certificate()) + `}}`:                       "warning KV502",
		`notary: {certs: {value: ` + quote(root.Certificate()) + `}, tsaCerts: {value: ` + quote(ended.Certificate()) + `}}`:                       "warning KV502",
		`cosign: {keyless: {identities: [{issuer: a, subject: b}], roots: ` + quote(ended.Certificate()) + `}, ctlog: {insecureIgnoreTlog: true}}`: "error KV502",
		`cosign: {certificate: {cert: {value: ` + quote(ended.Certificate()) + `}, certChain: {value: ` + quote(root.Certificate()) + `}}}`:        "error KV502",
	} {
		got := check(t, `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "true"}]
  attestors:
  - name: a
    `+attestor+"\n", now)
		if (got == "") != (want == "") || !strings.Contains(got, want) || want != "" && !strings.HasPrefix(got, "8:") && !strings.HasPrefix(got, "9:") {
			t.Errorf("%s: want %q, got %s", attestor, want, got)
		}
	}
}

// The examples of the codes yield them.
func TestExamples(t *testing.T) {
	for _, code := range diag.Codes() {
		if code < 500 || code >= 600 { // which are about signers
			continue
		}
		example, ok := diag.Example(code)
		if code == diag.SignerEnds {
			continue // whatever ends would be written in a moment that passes
		}
		if got := check(t, example, time.Now()); !ok || !strings.Contains(got, code.String()) {
			t.Errorf("the example of %s yields %q", code, got)
		}
	}
}
