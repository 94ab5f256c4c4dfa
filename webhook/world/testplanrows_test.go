package world

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/interp"

	"github.com/kvap/kvap/internal/testregistry"
)

const (
	pass, fail, skip, errs = interp.Pass, interp.Fail, interp.Skip, interp.Error

	inImages  = "images/signature_test.go:"
	inInterp  = "interp/verifyimages_test.go:"
	inPolicy  = "interp/imagepolicy_test.go:"
	inProofs  = "webhook/world/proof_test.go:"
	inWebhook = "webhook/images_test.go:"
)

func planRows() []row {
	return []row{
		{number: "T01", words: "signed", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			got := l.create(rule("p", l.entry(by(keys(l.k1)))), l.Host+"/app:v1")
			l.is("signed", got, pass)
			if want := l.Host + "/app:v1@" + testregistry.Digest(image); !slices.Equal(runs(got.object), []string{want}) {
				l.Errorf("pinned %v", runs(got.object))
			}
		}},
		{number: "T02", words: "no signature", run: func(l *lab) {
			l.pushed("app:v1")
			l.is("unsigned", l.create(rule("p", l.entry(by(keys(l.k1)))), l.Host+"/app:v1"), fail, l.Host+"/app:v1", ".attestors[0].entries[0].keys")
		}},
		{number: "T03", words: "another key", run: func(l *lab) {
			l.pushed("app:v1", l.k2)
			l.is("another key", l.create(rule("p", l.entry(by(keys(l.k1)))), l.Host+"/app:v1"), fail)
		}},
		{number: "T04", words: "count", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			for count, want := range map[string]interp.Status{"count: 1, ": pass, "count: 2, ": fail, "": fail} {
				l.is(count, l.create(rule("p", l.entry("attestors: [{"+count+"entries: "+keys(l.k1, l.k2)+"}]")), image), want)
			}
		}},
		{number: "T05", words: "two keys in a text", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			both := "[{keys: {rekor: {ignoreTlog: true}, publicKeys: " + quote(l.k1.PEM()+l.k2.PEM()) + "}}]"
			l.is("no count", l.create(rule("p", l.entry("attestors: [{entries: "+both+"}]")), image), fail)
			l.is("count 1", l.create(rule("p", l.entry("attestors: [{count: 1, entries: "+both+"}]")), image), pass)
		}},
		{number: "T06", words: "broken layers in front", run: func(l *lab) {
			image := l.Push("app:v1")
			layers := slices.Repeat([]testregistry.Layer{{Data: []byte("x"), Annotations: map[string]string{testregistry.SignatureKey: "%"}}}, 5)
			layers = append(layers, slices.Repeat([]testregistry.Layer{l.k2.Signature(image, nil)}, 5)...)
			l.Attach(image, "sig", append(layers, l.k1.Signature(image, nil))...)
			l.is("the eleventh", l.create(rule("p", l.entry(by(keys(l.k1)))), image), pass)
		}},
		{number: "T07", words: "annotations of one signature", run: func(l *lab) {
			image := l.Push("app:v1")
			l.Attach(image, "sig", l.k1.Signature(image, map[string]string{"a": "1"}), l.k1.Signature(image, map[string]string{"a": "2"}))
			for annotations, want := range map[string]interp.Status{`{a: "2"}`: pass, `{a: "3"}`: fail, `{a: "1", b: "2"}`: fail} {
				l.is(annotations, l.create(rule("p", l.entry(by(keys(l.k1))+", annotations: "+annotations)), image), want)
			}
		}},
		{number: "T08", words: "a tag that is not pinned", open: "it passes as it should; no warning tells that the tag may be pulled otherwise", run: func(l *lab) {
			l.pushed("app:v1", l.k1)
			got := l.create(rule("p", l.entry(by(keys(l.k1))+", mutateDigest: false, verifyDigest: false")), l.Host+"/app:v1")
			l.is("a tag", got, pass)
			if !slices.Equal(runs(got.object), []string{l.Host + "/app:v1"}) {
				l.Errorf("it became %v", runs(got.object))
			}
		}},
		{number: "T09", words: "an index and its platforms", run: func(l *lab) {
			index, platform := l.index("app:v1")
			l.signed(index, l.k1)
			l.is("the index", l.create(rule("p", l.entry(by(keys(l.k1)))), index), pass)
			l.is("a platform", l.create(rule("p", l.entry(by(keys(l.k1)))), platform), fail)
		}},
		{number: "T10", words: "copied with its signature", open: "--bind-repository, which would refuse it, is not there", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			other := l.CopyTo(image, "other")
			l.Attach(other, "sig", l.k1.Signature(image, nil))
			l.is("copied", l.create(rule("p", l.entry(by(keys(l.k1)))), other), pass)
		}},
		{number: "T11", words: "verifyDigest", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			p := rule("p", l.entry(by(keys(l.k1))+", mutateDigest: false"))
			l.is("a tag", l.create(p, l.Host+"/app:v1"), fail, "missing digest for "+l.Host+"/app:v1")
			l.is("a digest", l.create(p, l.Host+"/app:v1@"+testregistry.Digest(image)), pass)
		}},
		{number: "T12", words: "left out", open: "it is a skip; no warning tells of it", run: func(l *lab) {
			image := l.pushed("app:v1")
			l.is("left out", l.create(rule("p", l.entry(by(keys(l.k1))+`, skipImageReferences: ["`+l.Host+`/app*"]`)), image), skip)
		}},
		{number: "T13", words: "spellings", elsewhere: inInterp + "TestSelectedImages", run: func(l *lab) {
			image := l.pushed("app:v1")
			p := strings.Replace(rule("p", l.entry(by(keys(l.k1)))), l.Host+"/*", l.Host+"/app:*", 1)
			l.is("a digest", l.judge(p, image), fail)
			l.is("both", l.judge(p, l.Host+"/app:v1@"+testregistry.Digest(image)), fail)
		}},
		{number: "T13b", words: "Docker Hub", elsewhere: inInterp + "TestSelectedImages"},
		{number: "T14", words: "no image beside a signed one", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			l.is("beside", l.create(rule("p", l.entry(by(keys(l.k1)))), image, l.Host+"/App:v1"), fail, "App:v1")
		}},
		{number: "T15", words: "extractors", elsewhere: inInterp + "TestExtractedImages"},
		{number: "T16", words: "ephemeral containers", elsewhere: inInterp + "TestImagesThatComeOtherwise", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			now := pod(image)
			now["spec"].(map[string]any)["ephemeralContainers"] = []any{map[string]any{"name": "e", "image": l.Host + "/app:v1"}}
			request := admission("UPDATE", now, pod(image))
			request["subResource"] = "ephemeralcontainers"
			pins := l.engine(rule("p", l.entry(by(keys(l.k1))))).PinImages(l.Context(), &interp.Request{Admission: request})
			if patch := pins.Patch(); len(patch) != 1 || patch[0].Path != "/spec/ephemeralContainers/0/image" {
				l.Errorf("got %+v", patch)
			}
		}},
		{number: "T17", words: "controllers", run: func(l *lab) {
			l.pushed("app:v1", l.k1)
			for path, text := range map[string]string{
				"/spec/template/spec/containers/0/image":                  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: team}, spec: {template: {spec: {containers: [{name: c, image: "IMAGE"}]}}}}`,
				"/spec/jobTemplate/spec/template/spec/containers/0/image": `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: team}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: "IMAGE"}]}}}}}}`,
			} {
				o := l.read(strings.Replace(text, "IMAGE", l.Host+"/app:v1", 1))
				pins := l.engine(rule("p", l.entry(by(keys(l.k1))))).PinImages(l.Context(), &interp.Request{Admission: admission("CREATE", o, nil)})
				if patch := pins.Patch(); len(patch) != 1 || patch[0].Path != path {
					l.Errorf("%s: got %+v", path, patch)
				}
				l.is(path, l.request(rule("p", l.entry(by(keys(l.k1)))), "CREATE", o, nil), pass)
			}
		}},
		{number: "T18", words: "what brings no image asks nobody", elsewhere: inInterp + "TestImagesThatComeOtherwise", run: func(l *lab) {
			image := l.pushed("app:v1")
			l.Answer(nil)
			for _, p := range []string{rule("p", l.entry(by(keys(l.k1))))} {
				l.is("a deletion", l.validate(p, admission("DELETE", nil, pod(image))), interp.None)
				l.is("a connection", l.validate(p, admission("CONNECT", pod(image), nil)), interp.None)
				status := admission("UPDATE", pod(image), pod(image))
				status["subResource"] = "status"
				l.is("a status", l.validate(p, status), interp.None)
			}
			if len(l.Asked()) > 0 {
				l.Errorf("asked for %v", l.Asked())
			}
		}},
		{number: "T19", words: "a registry that is down on an update", elsewhere: inInterp + "TestRegistryDown " + inPolicy + "TestImagePolicyWithRegistryDown"},
		{number: "T20", words: "a registry that says otherwise each time", run: func(l *lab) {
			d1, d2 := l.pushed("app:one", l.k1, l.k2), l.pushed("app:two")
			l.alternates("v1", d1, d2)
			got := l.create(rule("p", l.entry(by(keys(l.k1), keys(l.k2)))), l.Host+"/app:v1")
			l.is("two sets", got, pass)
			if !strings.HasSuffix(runs(got.object)[0], testregistry.Digest(d1)) {
				l.Errorf("pinned %v", runs(got.object))
			}
		}},
		{number: "T21", words: "attestations of a tag that moves", run: func(l *lab) {
			d1, d2 := l.Push("app:one"), l.Push("app:two")
			l.Attach(d1, "att", l.k1.Attestation(d1, "slsa", `{}`))
			l.alternates("v1", d1, d2)
			got := l.create(rule("p", l.entry("attestations: [{type: slsa, "+by(keys(l.k1))+"}]")), l.Host+"/app:v1")
			if got.status == pass && !strings.HasSuffix(runs(got.object)[0], testregistry.Digest(d1)) {
				l.Errorf("pinned %v", runs(got.object))
			}
		}},
		{number: "T22", words: "a tag that moved since", elsewhere: inProofs + "TestMovedTag", run: func(l *lab) {
			d1, d2 := l.pushed("app:one", l.k1), l.pushed("app:two")
			l.alternates("v1", d1, d2, d2, d2)
			for range 3 {
				got := l.create(rule("p", l.entry(by(keys(l.k1))+", useCache: false")), l.Host+"/app:v1")
				if got.status == pass && strings.HasSuffix(runs(got.object)[0], testregistry.Digest(d2)) {
					l.Errorf("admitted %v", runs(got.object))
				}
			}
		}},
		{number: "T23", words: "pinned and not signed", run: func(l *lab) {
			image := l.pushed("app:v1")
			got := l.create(rule("p", l.entry(by(keys(l.k1)))), l.Host+"/app:v1")
			l.is("pinned", got, fail)
			if !strings.HasSuffix(runs(got.object)[0], testregistry.Digest(image)) {
				l.Errorf("it is %v", runs(got.object))
			}
		}},
		{number: "T24", words: "annotations that say pass", elsewhere: inInterp + "TestImagesThatComeOtherwise"},
		{number: "T25", words: "an old object that says pass", elsewhere: inInterp + "TestImagesThatComeOtherwise"},
		{number: "T26", words: "two policies", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			l.is("both", l.create(rule("a", l.entry(by(keys(l.k1))))+"---\n"+rule("b", l.entry(by(keys(l.k2)))), image), fail)
			l.is("the first", l.create(rule("a", l.entry(by(keys(l.k1)))), image), pass)
		}},
		{number: "T27", words: "two entries", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			one, two := l.entry(by(keys(l.k1))), l.entry(by(keys(l.k2)))
			l.is("in order", l.create(rule("p", one, two), image), fail)
			l.is("the other way", l.create(rule("p", two, one), image), fail)
		}},
		{number: "T28", words: "attested", run: func(l *lab) {
			image := l.Push("app:v1")
			l.Attach(image, "att", l.k1.Attestation(image, "slsa", `{"builder":{"id":"x"}}`))
			l.is("attested", l.create(rule("p", l.entry(attested(keys(l.k1), "builder.id", "x"))), image), pass)
			l.is("otherwise", l.create(rule("p", l.entry(attested(keys(l.k1), "builder.id", "y"))), image), fail)
		}},
		{number: "T29", words: "two statements, no map, another subject", run: func(l *lab) {
			for what, predicates := range map[string][]string{"two": {`{"builder":{"id":"x"}}`, `{"builder":{"id":"y"}}`}, "no map": {`"x"`}} {
				image := l.Push("app:" + strings.ReplaceAll(what, " ", "-"))
				var layers []testregistry.Layer
				for _, p := range predicates {
					layers = append(layers, l.k1.Attestation(image, "slsa", p))
				}
				l.Attach(image, "att", layers...)
				l.is(what, l.create(rule("p", l.entry(attested(keys(l.k1), "builder.id", "x"))), image), fail)
			}
			image, other := l.Push("app:a"), l.Push("app:b")
			l.Attach(image, "att", l.k1.Attestation(other, "slsa", `{"builder":{"id":"x"}}`))
			l.is("another subject", l.create(rule("p", l.entry(attested(keys(l.k1), "builder.id", "x"))), image), fail, "about another image")
		}},
		{number: "T30", words: "another type", run: func(l *lab) {
			image := l.Push("app:v1")
			l.Attach(image, "att", l.k1.Attestation(image, "vuln", `{}`))
			l.is("another", l.create(rule("p", l.entry("attestations: [{type: spdx, "+by(keys(l.k1))+"}]")), image), fail, "vuln")
		}},
		{number: "T31", words: "a type that only the annotation says", elsewhere: "images/attestation_test.go:TestAttested"},
		{number: "T32", words: "attestations by others", run: func(l *lab) {
			image := l.Push("app:v1")
			l.Attach(image, "att", l.k2.Attestation(image, "slsa", `{}`))
			l.is("nobody named", l.judge(rule("p", l.entry("attestations: [{type: slsa}]")), image), errs)
			l.is("a set within", l.create(rule("p", l.entry("attestations: [{type: slsa, attestors: [{entries: [{attestor: {entries: "+keys(l.k1)+"}}]}]}]")), image), fail)
			both := "[{keys: {rekor: {ignoreTlog: true}, publicKeys: " + quote(l.k1.PEM()+l.k2.PEM()) + "}}]"
			l.is("two keys", l.create(rule("p", l.entry("attestations: [{type: slsa, attestors: [{count: 1, entries: "+both+"}]}]")), image), pass)
		}},
		{number: "T33", words: "a predicate that says what the request is", run: func(l *lab) {
			image := l.Push("app:v1")
			l.Attach(image, "att", l.k1.Attestation(image, "slsa", `{"request":{"namespace":"x"},"images":{}}`))
			l.is("the request's", l.create(rule("p", l.entry(attested(keys(l.k1), "request.namespace", "team"))), image), pass)
			l.is("the predicate's", l.create(rule("p", l.entry(attested(keys(l.k1), "request.namespace", "x"))), image), fail)
		}},
		{number: "T34", words: "a log entry of something else", elsewhere: inImages + "TestLog images/bundle_test.go:TestBundles"},
		{number: "T35", words: "certificates that ended", elsewhere: inImages + "TestCertificates"},
		{number: "T36", words: "a key outside of its time", elsewhere: "images/window_test.go:TestKeysForATime", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			within := func(header string) string {
				key := strings.Replace(l.k1.PEM(), "KEY-----\n", "KEY-----\n"+header+"\n\n", 1)
				return rule("p", l.entry("attestors: [{entries: [{keys: {rekor: {ignoreTlog: true}, publicKeys: "+quote(key)+"}}]}]"))
			}
			l.is("after it", l.create(within("Not-After: 2020-01-01T00:00:00Z"), image), fail, "counts until 2020-01-01")
			l.is("before it", l.create(within("Not-Before: 2120-01-01T00:00:00Z"), image), fail, "counts from 2120-01-01")
			l.is("in it", l.create(within("Not-After: 2120-01-01T00:00:00Z"), image), pass)
			l.is("no time", l.create(within("Not-After: soon"), image), fail, "Not-After")
		}},
		{number: "T37", words: "identities", elsewhere: "images/keyless_test.go:TestKeyless", open: "no 3xx tells of an issuer alone; it passes"},
		{number: "T38", words: "Notary, expired", open: "Notary is not verified (KV219)"},
		{number: "T39", words: "Notary, JWS and COSE", open: "Notary is not verified (KV219)"},
		{number: "T40", words: "too many", elsewhere: inImages + "TestTooMany images/bundle_test.go:TestAttestedByBundles " + inImages + "TestManifestsAreBounded"},
		{number: "T41", words: "too large", elsewhere: inImages + "TestManifestsAreBounded images/budget_test.go:TestBudget"},
		{number: "T42", words: "a registry that hangs", elsewhere: inProofs + "TestRegistryThatHangs"},
		{number: "T43", words: "many subjects, many entries", elsewhere: "images/attestation_test.go:TestAttested images/bundle_test.go:TestBundles"},
		{number: "T44", words: "long chains", elsewhere: "policy/verifyimages_test.go:TestCertificatesThatAreRefused", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			root := testregistry.NewAuthority(l.T, nil, 1<<40)
			chain := quote(strings.Repeat(root.Certificate(), 13))
			certificates := func(chain string) string {
				return rule("p", l.entry("attestors: [{entries: [{certificates: {certChain: "+chain+", rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}]"))
			}
			l.refused(certificates(chain), "certChain has more than 10 certificates")
			l.refused(rule("p", l.entry("attestors: [{entries: [{keyless: {issuer: a, subject: b, ctlog: {tsaCertChain: "+chain+"}}}]}]")), "tsaCertChain has more than 10 certificates")
			l.world.Objects = []map[string]any{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "keys", "namespace": "team"}, "data": map[string]any{"chain": strings.Repeat(root.Certificate(), 13)}}}
			late := strings.Replace(certificates(`"{{ keys.data.chain }}"`), "    verifyImages:", "    context: [{name: keys, configMap: {name: keys, namespace: team}}]\n    verifyImages:", 1)
			l.is("by a variable", l.create(late, image), fail, "more than 10 blocks")
		}},
		{number: "T45", words: "what registries answer", elsewhere: inImages + "TestUnreachable " + inWebhook + "TestImagesOfARegistryThatIsDown"},
		{number: "T46", words: "addresses that are refused", elsewhere: inImages + "TestAddresses " + inImages + "TestAddressesByProxy " + inImages + "TestRefusedIsNotUnreachable"},
		{number: "T47", words: "whose credentials are sent where", elsewhere: "webhook/world/outside_test.go:TestPullSecrets webhook/world/outside_test.go:TestPullSecretsOfANamespace", open: "a Pod's imagePullSecrets are not used"},
		{number: "T48", words: "a bundle", elsewhere: "images/bundle_test.go:TestBundles", run: func(l *lab) {
			image := l.Push("app:v1")
			l.Refer(image, testregistry.BundleMedia, testregistry.Bundle{Envelope: l.k1.Attestation(image, testregistry.CosignSign, `{}`).Data}.JSON())
			l.is("signed", l.create(rule("p", l.entry("type: SigstoreBundle, "+by(keys(l.k1)))), image), pass)
			l.is("by another", l.create(rule("p", l.entry("type: SigstoreBundle, "+by(keys(l.k2)))), image), fail)
		}},
		{number: "T49", words: "a bundle of a build signs", elsewhere: "images/bundle_test.go:TestBundles"},
		{number: "T50", words: "with and without the log", elsewhere: inImages + "TestLog"},
		{number: "T51", words: "roots of one's own", elsewhere: "images/keyless_test.go:TestKeyless " + inProofs + "TestKeylessProofs"},
		{number: "T52", words: "timestamps", elsewhere: "images/timestamp_test.go:TestTimestamps images/timestamp_test.go:TestTimestampsOfAttestations images/timestamp_test.go:TestPublicTimestamp", run: func(l *lab) {
			image := l.Push("app:v1")
			root, one, two := testregistry.NewAuthority(l.T, nil, time.Hour), testregistry.NewRoot(l.T), testregistry.NewRoot(l.T)
			then := time.Now().Add(-30 * time.Minute)
			ann := testregistry.NewHolder(l.T, root, testregistry.Identity{Email: "ann@acme.io", Issuer: "https://acme.io"}, then)
			signed := ann.Certified(image)
			l.Attach(image, "sig", testregistry.Stamped(signed, testregistry.NewStamper(l.T, one, time.Hour).Stamp(testregistry.SignatureOf(signed), then.Add(time.Minute), true)))
			keyless := func(stamps string) string {
				return rule("p", l.entry("attestors: [{entries: [{keyless: {issuer: https://acme.io, subject: ann@acme.io, roots: "+quote(root.Certificate())+", rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true, tsaCertChain: "+quote(stamps)+"}}}]}]"))
			}
			l.is("by the authority", l.create(keyless(one.Certificate()), image), pass)
			l.is("by another", l.create(keyless(two.Certificate()), image), fail, "unknown authority")
			l.is("by none", l.create(strings.Replace(keyless(one.Certificate()), "tsaCertChain: "+quote(one.Certificate()), "", 1), image), fail, "expired")
			l.refused(keyless(testregistry.NewStamper(l.T, one, time.Hour).Certificate()), "tsaCertChain has no root")
			cosign := l.imagePolicy("p", "verifyImageSignatures(images.containers[0], [attestors.ann]) == 1", "")
			attestor := func(stamps string) string {
				return strings.Replace(cosign, "  attestations:", "  - {name: ann, cosign: {keyless: {identities: [{issuer: 'https://acme.io', subject: ann@acme.io}], roots: "+quote(root.Certificate())+"}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true, tsaCertChain: "+quote(stamps)+"}}}\n  attestations:", 1)
			}
			l.is("of an ImageValidatingPolicy", l.judge(attestor(one.Certificate()), image), pass)
			l.is("of an ImageValidatingPolicy, by another", l.judge(attestor(two.Certificate()), image), fail)
		}},
		{number: "T53", words: "a trusted root that is swapped", elsewhere: "images/trustfile_test.go:TestTrustFile images/trustfile_test.go:TestTrustFileByALink images/trustfile_test.go:TestPinnedTrustFile", open: "no TUF repository is asked, so none of its metadata expires", run: func(l *lab) {
			one, two, log := testregistry.NewAuthority(l.T, nil, time.Hour), testregistry.NewAuthority(l.T, nil, time.Hour), testregistry.NewSigner(l.T)
			read := func(root *testregistry.Authority) *images.Trust {
				trust, err := images.ReadTrust(testregistry.TrustedRoot(l.T, root, log))
				if err != nil {
					l.Fatal(err)
				}
				return trust
			}
			before, after := read(one), read(two)
			now := before
			l.proofs.world.trust = func() *images.Trust { return now }
			image, then := l.Push("app:v1"), time.Now().Add(-30*time.Minute)
			ann := testregistry.NewHolder(l.T, two, testregistry.Identity{Email: "ann@acme.io", Issuer: "https://acme.io"}, then)
			signed := ann.Certified(image)
			l.Attach(image, "sig", log.Logged(signed, testregistry.EntryOf(signed, ann.Certificate()), then.Add(time.Minute)))
			p := rule("p", l.entry("attestors: [{entries: [{keyless: {issuer: https://acme.io, subject: ann@acme.io, ctlog: {ignoreSCT: true}}}]}]"))
			l.is("by the root before", l.create(p, image), fail, "unknown authority")
			now = after
			l.is("by the root that is new", l.create(p, image), pass)
			now = before
			l.is("by the root before, again", l.create(p, image), fail, "unknown authority")
		}},
		{number: "T54", words: "exceptions and preconditions", run: func(l *lab) {
			image := l.pushed("app:v1")
			p := rule("p", l.entry(by(keys(l.k1))))
			exception := "---\napiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e, namespace: team}\nspec: {exceptions: [{policyName: p, ruleNames: [signed]}], match: {any: [{resources: {kinds: [Pod]}}]}}\n"
			l.is("excepted", l.create(p+exception, image), skip)
			with := func(more string) string { return strings.Replace(p, "    verifyImages:", more+"    verifyImages:", 1) }
			l.is("preconditions", l.create(with("    preconditions: {all: [{key: a, operator: Equals, value: b}]}\n"), image), skip)
			l.is("a context that is not there", l.create(with("    context: [{name: c, configMap: {name: none, namespace: team}}]\n"), image), fail)
			l.is("a context that is needed", l.create(with("    context: [{name: c, configMap: {name: none, namespace: team}}]\n    preconditions: {all: [{key: \"{{ c.data.x }}\", operator: Equals, value: b}]}\n"), image), errs)
		}},
		{number: "T55", words: "audit", elsewhere: inWebhook + "TestImagesThatAreOnlyAudited", open: "Audit with mutateDigest is not refused: nothing is pinned then"},
		{number: "T56", words: "a dry run", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			request := admission("CREATE", pod(image), nil)
			request["dryRun"] = true
			l.is("dry", l.validate(rule("p", l.entry(by(keys(l.k1)))), request), pass)
		}},
		{number: "T57", words: "many at once", elsewhere: inProofs + "TestProofsTogether", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			l.Answer(nil)
			p := rule("p", l.entry(by(keys(l.k1))))
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() { l.is("one of many", l.create(p, image), pass) })
			}
			all.Wait()
			count := 0
			for _, asked := range l.Asked() {
				if strings.HasSuffix(asked, ".sig") {
					count++
				}
			}
			if count != 1 {
				l.Errorf("asked %d times: %v", count, l.Asked())
			}
		}},
		{number: "T58", words: "what is known counts for what it was asked", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			l.is("k1", l.create(rule("p", l.entry(by(keys(l.k1)))), image), pass)
			l.is("k2", l.create(rule("p", l.entry(by(keys(l.k2)))), image), fail)
			for range 2 {
				l.Answer(nil)
				l.is("anew", l.create(rule("p", l.entry(by(keys(l.k1))+", useCache: false")), image), pass)
				if len(l.Asked()) == 0 {
					l.Error("nobody was asked")
				}
			}
		}},
		{number: "T59", words: "without TLS", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			l.is("allowed", l.create(rule("p", l.entry(by(keys(l.k1)))), image), pass)
			got := l.create(strings.Replace(rule("p", l.entry(by(keys(l.k1)))), "allowInsecureRegistry: true", "allowInsecureRegistry: false", 1), image)
			if got.status == pass || got.status == interp.None {
				l.Errorf("not allowed: %+v", got)
			}
		}},
		{number: "T60", words: "signatures elsewhere", run: func(l *lab) {
			image := l.Push("app:v1")
			l.CopyTo(image, "sigs")
			l.Attach(l.Host+"/sigs@"+testregistry.Digest(image), "sig", l.k1.Signature(image, nil))
			at := func(repository string) string { return "repository: " + l.Host + "/" + repository }
			set := strings.Replace(keys(l.k1), "[{", "[{"+at("sigs")+", ", 1)
			l.is("of the entry", l.create(rule("p", l.entry(by(keys(l.k1))+", "+at("sigs"))), image), pass)
			l.is("of the attestor", l.create(rule("p", l.entry(by(set)+", "+at("wrong"))), image), pass)
			l.is("wrong", l.create(rule("p", l.entry(by(keys(l.k1))+", "+at("wrong"))), image), fail)
		}},
		{number: "T61", words: "where keys are", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			l.world.Objects = []map[string]any{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "keys", "namespace": "team"}, "data": map[string]any{"pub": l.k1.PEM()}}}
			at := func(text string) string {
				return "attestors: [{entries: [{keys: {rekor: {ignoreTlog: true}, publicKeys: " + quote(text) + "}}]}]"
			}
			l.is("a variable", l.create(strings.Replace(rule("p", l.entry(at("{{ keys.data.pub }}"))), "    verifyImages:", "    context: [{name: keys, configMap: {name: keys, namespace: team}}]\n    verifyImages:", 1), image), pass)
			l.is("a comment in front", l.create(rule("p", l.entry(at("a comment\n"+l.k1.PEM()))), image), pass)
			l.world.Answers["/api/v1/namespaces/ns/secrets/s"] = fmt.Appendf(nil, `{"data":{"cosign.pub":%q}}`, base64Of(l.k1.PEM()))
			l.world.Answers["/api/v1/namespaces/ns/secrets/empty"] = []byte(`{"data":{}}`)
			l.is("a Secret", l.create(rule("p", l.entry(at("k8s://ns/s"))), image), pass)
			l.is("a Secret without a key", l.create(rule("p", l.entry(at("k8s://ns/empty"))), image), errs, "cosign.pub")
		}},
		{number: "T62", words: "algorithms", elsewhere: inImages + "TestKeys"},
		{number: "T63", words: "validate", run: func(l *lab) {
			image := l.Push("app:v1")
			l.Attach(image, "att", l.k1.Attestation(image, "sbom", `{"n":"1"}`), l.k1.Attestation(image, "scan", `{"n":"1"}`))
			named := func(validate string) string {
				return rule("p", l.entry("attestations: [{name: sbom, type: sbom, "+by(keys(l.k1))+"}, {name: scan, type: scan, "+by(keys(l.k1))+"}], validate: {message: no match"+validate+"}"))
			}
			l.is("denied", l.create(named(`, deny: {conditions: {all: [{key: "{{ sbom.n }}", operator: Equals, value: "{{ scan.n }}"}]}}`), image), fail, "no match")
			l.is("a message alone", l.create(named(""), image), pass)
		}},
		{number: "T64", words: "the form before attestors", run: func(l *lab) {
			image, other := l.Push("app:v1"), l.Push("app:v2")
			l.Attach(image, "att", l.k1.Attestation(image, "slsa", `{}`))
			l.Attach(other, "att", l.k2.Attestation(other, "slsa", `{}`))
			p := rule("p", "{image: \""+l.Host+"/*\", imageRegistryCredentials: {allowInsecureRegistry: true}, key: "+quote(l.k1.PEM())+", attestations: [{type: slsa}]}")
			l.is("by another", l.create(p, other), fail)
			// The form has no way to do without the log, which the layers lack.
			l.is("by the key, without the log", l.create(p, image), fail, "transparency log")
		}},
		{number: "T65", words: "many containers", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			got := l.create(rule("p", l.entry(by(keys(l.k1)))), l.Host+"/app:v1", l.Host+"/app:v1", image)
			l.is("thrice", got, pass)
			for _, text := range runs(got.object) {
				if !strings.Contains(text, "@") {
					l.Errorf("%s has no digest", text)
				}
			}
			now, before := pod(image, l.Host+"/app:v1@"+testregistry.Digest(image)), pod(l.Host+"/app:v1@"+testregistry.Digest(image), image)
			l.is("in another order", l.request(rule("p", l.entry(by(keys(l.k1)))), "UPDATE", now, before), pass)
		}},
		{number: "T66", words: "how many attestors", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			count := func(n int) string {
				return fmt.Sprintf("verifyImageSignatures('%s', [attestors.k1, attestors.k2]) == %d", image, n)
			}
			l.is("one", l.judge(l.imagePolicy("p", count(1), ""), image), pass)
			l.is("not meant", l.judge(l.imagePolicy("p", count(0), `  matchImageReferences: [{glob: "ghcr.io/*"}]`), image), pass)
		}},
		{number: "T67", words: "Docker Hub by a glob", elsewhere: inPolicy + "TestImageGlobs", run: func(l *lab) {
			p := l.imagePolicy("p", "true", "  matchImageReferences: [{glob: \"docker.io/*\"}]\n  validationConfigurations: {mutateDigest: false}\n")
			l.is("nginx", l.judge(p, "nginx"), fail)
		}},
		{number: "T68", words: "required", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			lazy, diligent := l.imagePolicy("a", "true", ""), l.imagePolicy("b", "verifyImageSignatures(images.containers[0], [attestors.k1]) == 1", "")
			l.is("nobody asks", l.judge(lazy, image), fail, "is not verified")
			l.is("another asks", l.judge(lazy+"---\n"+diligent, image), pass)
			l.is("another asks first", l.judge(strings.Replace(diligent, "name: b", "name: c", 1)+"---\n"+lazy, image), pass)
		}},
		{number: "T69", words: "a payload that nobody has proven", open: "referrer attestations are Notary's, and stay with Kyverno", run: func(l *lab) {
			image := l.Push("app:v1")
			l.Attach(image, "att", l.k1.Attestation(image, "slsa", `{"a":1}`))
			l.is("unproven", l.judge(l.imagePolicy("p", "extractPayload(images.containers[0], attestations.slsa).predicate.a == 1", ""), image), errs, "is not verified")
			l.is("proven", l.judge(l.imagePolicy("p", "verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.k1]) == 1 && extractPayload(images.containers[0], attestations.slsa).predicate.a == 1", ""), image), pass)
		}},
		{number: "T70", words: "an outcome that is forged, a registry that is down", elsewhere: "webhook/imagepolicy_test.go:TestImageValidatingPolicyOfARegistryThatIsDown", run: func(l *lab) {
			image := l.pushed("app:v1")
			forged := pod(image)
			forged["metadata"].(map[string]any)["annotations"] = map[string]any{"kyverno.io/image-verification-outcomes": `{"p":{"name":"p","ruleType":"ImageVerify","status":"pass"}}`}
			l.is("forged", l.validate(l.imagePolicy("p", "images.containers.all(i, verifyImageSignatures(i, [attestors.k1]) > 0)", ""), admission("CREATE", forged, nil)), fail)
		}},
		{number: "T71", words: "100 images, two policies, a deletion", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			all := slices.Repeat([]string{image}, 100)
			p := l.imagePolicy("a", "images.containers.all(i, verifyImageSignatures(i, [attestors.k1]) > 0)", "")
			both := p + "---\n" + strings.Replace(p, "name: a", "name: b", 1)
			l.is("a hundred", l.judge(both, all...), pass)
			l.is("one more", l.judge(both, append(all, image)...), fail, "100 at most")
			l.is("a deletion", l.validate(both, admission("DELETE", nil, pod(image))), pass)
			l.is("a deletion of what is not signed", l.validate(both, admission("DELETE", nil, pod(l.pushed("app:v2")))), fail)
		}},
		{number: "T72", words: "what other programs have signed", elsewhere: "images/keyless_test.go:TestPublicAttestation images/attestation_test.go:TestFlips images/bundle_test.go:TestBundleFlips", open: "of cosign's own there is one recorded attestation; no layouts by cosign v2, v3 and notation"},
		{number: "T73", words: "fuzz", elsewhere: "images/bundle_test.go:FuzzBundle", open: "manifests, annotations and WWW-Authenticate have no fuzz test of their own"},
	}
}

// attested is an attestation with a condition.
func attested(set, key, value string) string {
	return "attestations: [{type: slsa, " + by(set) + `, conditions: [{all: [{key: "{{ ` + key + ` }}", operator: Equals, value: "` + value + `"}]}]}]`
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
