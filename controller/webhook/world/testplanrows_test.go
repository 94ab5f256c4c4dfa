package world

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp"

	"github.com/kvap/kvap/test/testregistry"
)

const (
	pass, fail, skip, errs = interp.Pass, interp.Fail, interp.Skip, interp.Error

	inImages  = "images/signature_test.go:"
	inInterp  = "interp/verifyimages_test.go:"
	inPolicy  = "interp/imagepolicy_test.go:"
	inProofs  = "controller/webhook/world/proof_test.go:"
	inWebhook = "controller/webhook/images_test.go:"

	inNotation = "images/notation_test.go:"
)

func planRows() []row { return append(earlyRows(), lateRows()...) }

func earlyRows() []row {
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
		{number: "T08", words: "a tag that is not pinned", elsewhere: inWebhook + "TestWarningsOfImages", run: func(l *lab) {
			l.pushed("app:v1", l.k1)
			got := l.create(rule("p", l.entry(by(keys(l.k1))+", mutateDigest: false, verifyDigest: false")), l.Host+"/app:v1")
			l.is("a tag", got, pass)
			l.warns(got, "image "+l.Host+"/app:v1 has no digest")
			l.warns(l.create(rule("p", l.entry(by(keys(l.k1)))), l.Host+"/app:v1"), "")
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
		{number: "T10", words: "copied with its signature", elsewhere: "images/attestation_test.go:TestBoundRepository", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			other := l.CopyTo(image, "other")
			l.Attach(other, "sig", l.k1.Signature(image, nil))
			l.is("copied", l.create(rule("p", l.entry(by(keys(l.k1)))), other), pass)
			l.proofs = proving(l.T, Options{Registries: []string{"*"}, BindRepository: true})
			l.world.Proofs = l.proofs
			l.is("copied, with --bind-repository", l.create(rule("p", l.entry(by(keys(l.k1)))), other), fail, "and the image is in "+l.Host+"/other")
		}},
		{number: "T11", words: "verifyDigest", run: func(l *lab) {
			image := l.pushed("app:v1", l.k1)
			p := rule("p", l.entry(by(keys(l.k1))+", mutateDigest: false"))
			l.is("a tag", l.create(p, l.Host+"/app:v1"), fail, "missing digest for "+l.Host+"/app:v1")
			l.is("a digest", l.create(p, l.Host+"/app:v1@"+testregistry.Digest(image)), pass)
		}},
		{number: "T12", words: "left out", elsewhere: inWebhook + "TestWarningsOfImages", run: func(l *lab) {
			image := l.pushed("app:v1")
			got := l.create(rule("p", l.entry(by(keys(l.k1))+`, skipImageReferences: ["`+l.Host+`/app*"]`)), image)
			l.is("left out", got, skip)
			l.warns(got, "skipping image reference image "+image)
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
	}
}

// attested is an attestation with a condition.
func attested(set, key, value string) string {
	return "attestations: [{type: slsa, " + by(set) + `, conditions: [{all: [{key: "{{ ` + key + ` }}", operator: Equals, value: "` + value + `"}]}]}]`
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
