package world

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/interp"

	"github.com/kvap/kvap/test/testregistry"
)

func lateRows() []row {
	return []row{
		{number: "T37", words: "identities", elsewhere: "images/keyless_test.go:TestKeyless cmd/kvap/internal/signers/check_test.go:TestCheck"},
		{number: "T38", words: "Notary, expired and revoked", elsewhere: inNotation + "TestNotation images/window_test.go:TestRevoked", run: func(l *lab) {
			root, now := testregistry.NewRoot(l.T), time.Now()
			leaf := testregistry.NewLeaf(l.T, root, now.Add(-time.Hour), now.Add(time.Hour))
			chain := []*testregistry.Authority{leaf, root}
			image, expired := l.Push("app:v1"), l.Push("app:v2")
			l.Notarize(image, testregistry.Notarization{Chain: chain}, nil)
			l.Notarize(expired, testregistry.Notarization{Chain: chain, At: now.Add(-time.Hour), Expiry: now.Add(-time.Minute)}, nil)
			p := rule("p", l.notary(root.Certificate()))
			l.is("signed", l.create(p, image), pass)
			l.is("expired", l.create(p, expired), fail, "it expired at")
			l.is("revoked", l.create(rule("p", l.notary(root.Certificate()+root.Revokes(now.Add(time.Hour), leaf))), image), fail, "was revoked at")
			l.is("a list that ended", l.create(rule("p", l.notary(root.Certificate()+root.Revokes(now.Add(-time.Minute)))), image), fail, "put a newer one there")
		}},
		{number: "T39", words: "Notary, JWS and COSE", elsewhere: inNotation + "TestNotation " + inNotation + "TestNotationAttestors", run: func(l *lab) {
			root, other, now := testregistry.NewRoot(l.T), testregistry.NewRoot(l.T), time.Now()
			leaf, alone := testregistry.NewLeaf(l.T, root, now.Add(-time.Hour), now.Add(time.Hour)), testregistry.NewLeaf(l.T, nil, now.Add(-time.Hour), now.Add(time.Hour))
			for _, envelope := range []string{testregistry.JWS, testregistry.COSE} {
				image := l.Push("app:v1")
				l.Notarize(image, testregistry.Notarization{Envelope: envelope, Chain: []*testregistry.Authority{leaf, root}}, nil)
				l.is(envelope+" under the authority", l.create(rule("p", l.notary(root.Certificate())), l.Host+"/app:v1"), pass)
				l.is(envelope+" under another", l.create(rule("p", l.notary(other.Certificate())), image), fail, "not by the attestor's certificates")
				by := func(root *testregistry.Authority) string {
					p := l.imagePolicy("p", "images.containers.all(i, verifyImageSignatures(i, [attestors.ca]) == 1)", "")
					return strings.Replace(p, "  attestations:", "  - {name: ca, notary: {certs: {value: "+quote(root.Certificate())+"}}}\n  attestations:", 1)
				}
				l.is(envelope+" of an ImageValidatingPolicy", l.judge(by(root), image), pass)
				l.is(envelope+" of an ImageValidatingPolicy, under another", l.judge(by(other), image), fail)
			}
			image := l.Push("app:v2")
			l.Notarize(image, testregistry.Notarization{Chain: []*testregistry.Authority{alone}}, nil)
			l.is("signed by itself", l.create(rule("p", l.notary(alone.Certificate())), image), pass)
			l.refused(rule("p", l.entry("type: Notary, "+by(keys(l.k1)))), "by certificates, not by keys")
			scan := l.ReferAs(image, "application/vnd.acme.scan", "application/json", []byte(`{"critical": 0}`))
			attested := func(value string) string {
				set := "[{certificates: {cert: " + quote(alone.Certificate()) + "}}]"
				return rule("p", l.entry("type: Notary, useCache: false, attestations: [{type: application/vnd.acme.scan, "+by(set)+`, conditions: [{all: [{key: "{{ critical }}", operator: Equals, value: `+value+`}]}]}]`))
			}
			l.is("attested by nobody", l.create(attested("0"), image), fail, "no signature of Notary refers to")
			l.Notarize(scan, testregistry.Notarization{Chain: []*testregistry.Authority{alone}}, nil)
			l.is("attested", l.create(attested("0"), image), pass)
			l.is("attested otherwise", l.create(attested("1"), image), fail)
		}},
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
		{number: "T47", words: "whose credentials are sent where", elsewhere: "controller/webhook/world/outside_test.go:TestPullSecrets controller/webhook/world/outside_test.go:TestPullSecretsOfANamespace controller/webhook/world/secrets_test.go:TestPodSecrets", run: func(l *lab) {
			evil := testregistry.New(l.T)
			image, other := l.pushed("app:v1", l.k1), evil.Push("app:v1")
			evil.Attach(other, "sig", l.k1.Signature(other, nil))
			secrets := map[string]map[string]string{
				"team/mine":  {l.Host: "reg:1", evil.Host: "evil:1"},
				"team/reg":   {l.Host: "reg:1"},
				"other/reg":  {l.Host: "other:1"},
				"other/evil": {evil.Host: "other:2"},
			}
			l.proofs = world(l.T, Options{Registries: []string{"*"}, LocalRegistries: true, RegistrySecrets: "kvap"}, serveSecrets(secrets)).proofs
			l.world.Proofs = l.proofs
			seen, seenByEvil := asksForCredentials(l.Registry), asksForCredentials(evil)
			p := strings.Replace(rule("p", l.entry(by(keys(l.k1)))), l.Host+"/*", "*", 1)
			with := func(image string, names ...string) map[string]any {
				o := pod(image)
				var all []any
				for _, name := range names {
					all = append(all, map[string]any{"name": name})
				}
				o["spec"].(map[string]any)["imagePullSecrets"] = all
				return o
			}
			l.is("at evil", l.request(p, "CREATE", with(other, "mine"), nil), pass)
			if got := seenByEvil(); !slices.Equal(got, []string{"evil:1"}) || len(seen()) > 0 {
				l.Errorf("evil saw %v", got)
			}
			l.is("at the registry", l.request(p, "CREATE", with(image, "mine"), nil), pass)
			if got := seen(); !slices.Equal(got, []string{"reg:1"}) {
				l.Errorf("the registry saw %v", got)
			}
			l.is("a secret of another registry", l.request(p, "CREATE", with(other, "reg"), nil), fail, "401")
			if got := seenByEvil(); len(got) > 0 {
				l.Errorf("evil saw %v", got)
			}
			l.is("a secret that is missing", l.request(p, "CREATE", with(other, "none"), nil), fail, "the Pod's pull secret none was not used")
			l.is("a secret of another namespace", l.request(p, "CREATE", with(other, "../other/secrets/evil"), nil), fail, "was not used")
			l.is("by no secret what is known by one", l.request(p, "CREATE", pod(other), nil), fail, "401")
			if got := seenByEvil(); len(got) > 0 {
				l.Errorf("evil saw %v", got)
			}
			named := strings.Replace(p, "allowInsecureRegistry: true", "allowInsecureRegistry: true, secrets: [other/evil]", 1)
			l.is("one that the policy names", l.request(named, "CREATE", pod(other), nil), pass)
			if got := seenByEvil(); !slices.Equal(got, []string{"other:2"}) {
				l.Errorf("evil saw %v", got)
			}
			local := strings.Replace(strings.Replace(named, "kind: ClusterPolicy", "kind: Policy", 1), "{name: p}", "{name: p, namespace: team}", 1)
			l.is("one that a policy of a namespace names", l.request(local, "CREATE", pod(other), nil), fail, "is not available")
			made := l.read(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: team}, spec: {template: {spec: {imagePullSecrets: [{name: mine}], containers: [{name: c, image: "` + other + `"}]}}}}`)
			l.is("of a Deployment", l.request(p, "CREATE", made, nil), pass)
			l.is("of an ImageValidatingPolicy", l.validate(l.imagePolicy("i", "images.containers.all(i, verifyImageSignatures(i, [attestors.k1]) > 0)", ""), admission("CREATE", with(other, "mine"), nil)), pass)
		}},
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
		{number: "T53", words: "a trusted root that is swapped", elsewhere: "images/trustfile_test.go:TestTrustFile images/trustfile_test.go:TestTrustFileByALink images/trustfile_test.go:TestPinnedTrustFile images/mirror_test.go:TestMirror images/mirror_test.go:TestMirrorIsHeldToItsRoot images/mirror_test.go:TestMirrorIsAway", run: func(l *lab) {
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
			repo := testregistry.NewTUF(l.T)
			mirror, err := images.OpenMirror(images.Mirror{URL: repo.URL, Root: repo.Root(1), Dir: l.TempDir(), Local: true, Client: repo.Client}, nil)
			if err != nil {
				l.Fatal(err)
			}
			l.proofs.world.trust = mirror.Trust
			refreshed := func(taken bool) {
				l.Helper()
				if err := mirror.Refresh(l.Context()); (err == nil) != taken {
					l.Errorf("taken: %t, got %v", taken, err)
				}
			}
			l.is("by a TUF repository that never answered", l.create(p, image), errs, "has not answered yet")
			l.is("by a key, whatever it answers", l.create(rule("p", l.entry(by(keys(l.k1)))), l.pushed("app:v2", l.k1)), pass)
			repo.Publish(testregistry.TrustedRoot(l.T, one, log))
			refreshed(true)
			l.is("by the root that the repository has", l.create(p, image), fail, "unknown authority")
			repo.Publish(testregistry.TrustedRoot(l.T, two, log))
			refreshed(true)
			l.is("by the root that it has now", l.create(p, image), pass)
			repo.Expires = time.Now().Add(-time.Hour)
			repo.Publish(testregistry.TrustedRoot(l.T, one, log))
			refreshed(false)
			l.is("where what it has now has expired", l.create(strings.Replace(p, "name: p", "name: q", 1), image), pass)
			repo.Answer(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true })
			refreshed(false)
			l.is("where it is away", l.create(strings.Replace(p, "name: p", "name: r", 1), image), pass)
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
		{number: "T55", words: "audit", elsewhere: inWebhook + "TestImagesThatAreOnlyAudited policy/verifyimages_test.go:TestAuditedPins", run: func(l *lab) {
			image := l.pushed("app:v1")
			p := strings.Replace(rule("p", l.entry(by(keys(l.k1))+", mutateDigest: false")), "Enforce", "Audit", 1)
			l.is("audited", l.create(p, image), fail)
			const refusal = "write mutateDigest: false, or failureAction: Enforce"
			l.refused(strings.Replace(p, "mutateDigest: false", "mutateDigest: true", 1), refusal)
			l.refused(strings.Replace(p, ", mutateDigest: false", "", 1), refusal)
			l.refused(rule("p", l.entry(by(keys(l.k1))+", failureAction: Audit")), refusal)
		}},
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
		{number: "T69", words: "a payload that nobody has proven", run: func(l *lab) {
			image := l.Push("app:v1")
			l.Attach(image, "att", l.k1.Attestation(image, "slsa", `{"a":1}`))
			l.is("unproven", l.judge(l.imagePolicy("p", "extractPayload(images.containers[0], attestations.slsa).predicate.a == 1", ""), image), errs, "is not verified")
			l.is("proven", l.judge(l.imagePolicy("p", "verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.k1]) == 1 && extractPayload(images.containers[0], attestations.slsa).predicate.a == 1", ""), image), pass)
			alone := testregistry.NewLeaf(l.T, nil, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
			l.ReferAs(image, "application/vnd.acme.scan", "application/json", []byte(`{"a": 1}`))
			referrer := func(validation string) string {
				p := strings.Replace(l.imagePolicy("p", validation, ""), "attestations: [", "attestations: [{name: scan, referrer: {type: application/vnd.acme.scan}}, ", 1)
				return strings.Replace(p, "  attestations:", "  - {name: ca, notary: {certs: {value: "+quote(alone.Certificate())+"}}}\n  attestations:", 1)
			}
			const asks, takes = "verifyAttestationSignatures(images.containers[0], attestations.scan, [attestors.ca])", "extractPayload(images.containers[0], attestations.scan).a == 1"
			l.is("a referrer that nobody has proven", l.judge(referrer(takes), image), errs, "is not verified")
			l.is("a referrer that nobody signed", l.judge(referrer(asks+" == 1 && "+takes), image), fail)
			image = l.Push("app:v2") // of which it is not known that nobody signed
			scan := l.ReferAs(image, "application/vnd.acme.scan", "application/json", []byte(`{"a": 1}`))
			l.Notarize(scan, testregistry.Notarization{Chain: []*testregistry.Authority{alone}}, nil)
			l.is("a referrer", l.judge(referrer(asks+" == 1 && "+takes), image), pass)
			l.is("a referrer by an attestor that has none", l.judge(referrer(strings.ReplaceAll(asks, "attestors.ca", "attestors.k1")+" == 1"), image), errs, "is not for the attestor k1")
			l.is("a statement by an attestor that has none", l.judge(referrer(strings.ReplaceAll(asks, "attestations.scan", "attestations.slsa")+" == 1"), image), errs, "is not for the attestor ca")
		}},
		{number: "T70", words: "an outcome that is forged, a registry that is down", elsewhere: "controller/webhook/imagepolicy_test.go:TestImageValidatingPolicyOfARegistryThatIsDown", run: func(l *lab) {
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
		{number: "T72", words: "what other programs have signed", elsewhere: "images/keyless_test.go:TestPublicAttestation images/attestation_test.go:TestFlips images/bundle_test.go:TestBundleFlips images/interop_test.go:TestInterop images/interop_test.go:TestInteropFlips images/interop_test.go:TestInteropFlipsOfLayers"},
		{number: "T73", words: "fuzz", elsewhere: "images/bundle_test.go:FuzzBundle images/checkpoint_test.go:FuzzCheckpoint images/timestamp_test.go:FuzzTimestamp images/notation_test.go:FuzzNotation images/fuzz_test.go:FuzzAnnotations images/fuzz_test.go:FuzzManifest images/fuzz_test.go:FuzzChallenge"},
	}
}
