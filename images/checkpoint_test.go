package images

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/kvap/kvap/test/testregistry"
)

// A recorded has what signs by a log that promises nothing.
type recordedLog struct {
	root, stamps *testregistry.Authority
	ann          *testregistry.Authority
	log          testregistry.Tree
	then         time.Time
}

func recordedLogs(t *testing.T) recordedLog {
	out := recordedLog{root: testregistry.NewAuthority(t, nil, time.Hour), stamps: testregistry.NewRoot(t), then: time.Now().Add(-30 * time.Minute)}
	out.ann = testregistry.NewHolder(t, out.root, testregistry.Identity{URI: workflow, Issuer: actions}, out.then)
	out.log = testregistry.Tree{Signer: testregistry.ByEd25519(t), Origin: "log.acme.io", Before: 5, After: 3}
	return out
}

func (r recordedLog) trust(t *testing.T, url string) *Trust {
	t.Helper()
	trust, err := ReadTrust(testregistry.TrustedRootOf(r.root, r.log, url, r.stamps))
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// bundle has an envelope, an entry about it, and a timestamp.
func (r recordedLog) bundle(t *testing.T, envelope []byte, at time.Time) testregistry.Bundle {
	_, _, signature := envelopeParts(envelope)
	stamp := testregistry.NewStamper(t, r.stamps, time.Hour).Stamp(signature, at, true)
	return testregistry.Bundle{Envelope: envelope, Certificate: r.ann, Stamps: [][]byte{stamp}, Trees: []map[string]any{r.log.Entry(testregistry.Record(envelope, r.ann, nil))}}
}

func envelopeParts(data []byte) (media, payload string, signature []byte) {
	_, e, _ := readBundle([]byte(`{"mediaType":"` + testregistry.BundleMedia + `","dsseEnvelope":` + string(data) + `}`))
	signature, _ = base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
	return e.PayloadType, e.Payload, signature
}

func TestCheckpoints(t *testing.T) {
	s := testregistry.New(t)
	r := recordedLogs(t)
	image, another := s.Push("app:v1"), s.Push("app:v2")
	signed, elsewhere := r.ann.Attestation(image, testregistry.CosignSign, `{}`).Data, r.ann.Attestation(another, testregistry.CosignSign, `{}`).Data
	good := r.bundle(t, signed, r.then.Add(time.Minute))
	exact := Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow, IgnoreSCT: true}}
	key, eve := testregistry.NewSigner(t), testregistry.NewSigner(t)
	byKey := key.Attestation(image, testregistry.CosignSign, `{}`).Data
	entry := func(log testregistry.Tree, body string) func(*testregistry.Bundle) {
		return func(b *testregistry.Bundle) { b.Trees = []map[string]any{log.Entry(body)} }
	}
	proof := func(change func(entry, proof map[string]any)) func(*testregistry.Bundle) {
		return func(b *testregistry.Bundle) {
			e := maps.Clone(b.Trees[0])
			p := maps.Clone(e["inclusionProof"].(map[string]any))
			e["inclusionProof"] = p
			change(e, p)
			b.Trees = []map[string]any{e}
		}
	}
	note := func(change func(string) string) func(*testregistry.Bundle) {
		return proof(func(_, p map[string]any) {
			before := p["checkpoint"].(map[string]any)["envelope"].(string)
			p["checkpoint"] = map[string]any{"envelope": change(before)}
		})
	}
	other := r.log
	other.Signer = testregistry.ByEd25519(t)
	renamed := r.log
	renamed.Origin = "evil.acme.io"
	record := testregistry.Record(signed, r.ann, nil)
	with := func(change func(*testregistry.Bundle)) testregistry.Bundle {
		b := good
		change(&b)
		return b
	}
	for _, tt := range []struct {
		name   string
		bundle testregistry.Bundle
		by     Attestor
		want   string
	}{
		{"known, and stamped", good, exact, ""},
		{"in the form of envelopes", with(entry(r.log, testregistry.RecordOfEnvelope(signed, r.ann, nil))), exact, ""},
		{"beside one that is not trusted", with(func(b *testregistry.Bundle) { b.Trees = []map[string]any{other.Entry(record), good.Trees[0]} }), exact, ""},
		{"not stamped", with(func(b *testregistry.Bundle) { b.Stamps = nil }), exact, "says no time"},
		{"stamped after the certificate", r.bundle(t, signed, r.then.Add(20*time.Minute)), exact, "expired"},
		{"stamped before the log was trusted", r.bundle(t, signed, r.then.Add(-48*time.Hour)), exact, "not trusted at"},
		{"by the time that no log signs", with(func(b *testregistry.Bundle) {
			b.Stamps = nil
			proof(func(e, _ map[string]any) { e["integratedTime"] = fmt.Sprint(r.then.Add(time.Minute).Unix()) })(b)
		}), exact, "says no time"},
		{"of another log", with(entry(other, record)), exact, "of another log"},
		{"by another name", with(entry(renamed, record)), exact, "of another log"},
		{"by another name than it signs", with(note(func(n string) string { return strings.ReplaceAll(n, "log.acme.io", "evil.acme.io") })), exact, "does not show"},
		{"of another image", with(entry(r.log, testregistry.Record(elsewhere, r.ann, nil))), exact, "another payload"},
		{"of another envelope", with(entry(r.log, testregistry.RecordOfEnvelope(elsewhere, r.ann, nil))), exact, "another payload"},
		{"in the form of envelopes, of another log", with(entry(other, testregistry.RecordOfEnvelope(signed, r.ann, nil))), exact, "of another log"},
		{"in the form of envelopes, of another key", with(entry(r.log, testregistry.RecordOfEnvelope(signed, nil, eve))), exact, "another key"},
		{"in the form of envelopes, of another signature", with(entry(r.log, strings.Replace(testregistry.RecordOfEnvelope(signed, r.ann, nil), `"content":"M`, `"content":"N`, 1))), exact, "another signature"},
		{"in the form of envelopes, of another hash", with(entry(r.log, strings.Replace(testregistry.RecordOfEnvelope(signed, r.ann, nil), "SHA2_256", "SHA1", 1))), exact, "another payload"},
		{"in the form of envelopes, which the log has not", with(func(b *testregistry.Bundle) {
			entry(r.log, testregistry.RecordOfEnvelope(signed, r.ann, nil))(b)
			proof(func(e, _ map[string]any) { e["logIndex"] = "4" })(b)
		}), exact, "does not show"},
		{"of another key", with(entry(r.log, testregistry.Record(signed, nil, eve))), exact, "another key"},
		{"of the key without its certificate", with(entry(r.log, testregistry.Record(signed, nil, r.ann.Signer))), exact, "another key"},
		{"of another signature", with(entry(r.log, strings.Replace(record, `"content":"M`, `"content":"N`, 1))), exact, "another signature"},
		{"of another version", with(entry(r.log, strings.Replace(record, "0.0.2", "0.0.1", 1))), exact, "0.0.1"},
		{"of another kind", with(entry(r.log, strings.Replace(record, "hashedrekord", "rpm", 1))), exact, "another payload"},
		{"of another hash", with(entry(r.log, strings.Replace(record, "SHA2_256", "SHA1", 1))), exact, "not a recognizable"},
		{"no JSON", with(entry(r.log, "x")), exact, "invalid character"},
		{"empty", with(entry(r.log, "{}")), exact, "kind in body is required"},
		{"what the log has not", with(proof(func(e, _ map[string]any) { e["canonicalizedBody"] = []byte(record + " ") })), exact, "does not show"},
		{"at another place", with(proof(func(e, _ map[string]any) { e["logIndex"] = "4" })), exact, "does not show"},
		{"behind the end", with(proof(func(e, _ map[string]any) { e["logIndex"] = "9" })), exact, "does not show"},
		{"in front of the beginning", with(proof(func(e, _ map[string]any) { e["logIndex"] = "-1" })), exact, "does not show"},
		{"no hashes", with(proof(func(_, p map[string]any) { p["hashes"] = [][]byte{} })), exact, "does not show"},
		{"a hash more", with(proof(func(_, p map[string]any) { p["hashes"] = append(p["hashes"].([][]byte), make([]byte, 32)) })), exact, "does not show"},
		{"many hashes", with(proof(func(_, p map[string]any) { p["hashes"] = slices.Repeat([][]byte{make([]byte, 32)}, 100) })), exact, "does not show"},
		{"no checkpoint", with(proof(func(_, p map[string]any) { delete(p, "checkpoint") })), exact, "no transparency log proof"},
		{"a checkpoint of another size", with(note(func(n string) string { return strings.Replace(n, "\n9\n", "\n8\n", 1) })), exact, "does not show"},
		{"a checkpoint without a signature", with(note(func(n string) string { n, _, _ = strings.Cut(n, "\n— "); return n })), exact, "does not show"},
		{"a checkpoint with another signature in front", with(note(func(n string) string {
			return strings.Replace(n, "\n\n", "\n\n— witness.io "+base64.StdEncoding.EncodeToString(make([]byte, 68))+"\n", 1)
		})), exact, ""},
		{"a checkpoint that goes on", with(note(func(n string) string { return n + "x" })), exact, "does not show"},
		{"a checkpoint with a signature that is none", with(note(func(n string) string { return n + "— log.acme.io %\n" })), exact, "does not show"},
		{"a checkpoint that is no text", with(note(func(n string) string { return n + "\x01\n" })), exact, "does not show"},
		{"a large checkpoint", with(note(func(n string) string { return n + strings.Repeat("x", 1<<20) })), exact, "does not show"},
		{"a key", testregistry.Bundle{Envelope: byKey, Trees: []map[string]any{r.log.Entry(testregistry.Record(byKey, nil, key))}}, Attestor{Key: key.PEM()}, ""},
		{"a key, and its log", testregistry.Bundle{Envelope: byKey, Trees: []map[string]any{renamed.Entry(testregistry.Record(byKey, nil, key))}}, Attestor{Key: key.PEM(), Log: r.log.PEM()}, ""},
		{"a key, and another log", testregistry.Bundle{Envelope: byKey, Trees: []map[string]any{other.Entry(testregistry.Record(byKey, nil, key))}}, Attestor{Key: key.PEM(), Log: r.log.PEM()}, "of another log"},
		{"a key that is another", testregistry.Bundle{Envelope: byKey, Trees: []map[string]any{r.log.Entry(testregistry.Record(byKey, nil, eve))}}, Attestor{Key: key.PEM()}, "another key"},
		{"a key, and no log", testregistry.Bundle{Envelope: byKey}, Attestor{Key: key.PEM()}, "no transparency log proof"},
		{"a promise beside it", with(func(b *testregistry.Bundle) { b.Log, b.At = eve, r.then }), exact, ""},
	} {
		one := testregistry.New(t)
		pushed := one.Copy(s, image)
		one.Refer(pushed, testregistry.BundleMedia, tt.bundle.JSON())
		tt.by.Format = Bundles
		v, err := NewVerifier(tt.by, r.trust(t, "https://log.acme.io"), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		says(t, tt.name, v.Signed(t.Context(), local(), pin(t, pushed)), tt.want)
	}
}

// The log counts for its time, though it says none: for that of the timestamp.
func TestCheckpointOfALogThatEnded(t *testing.T) {
	s := testregistry.New(t)
	r := recordedLogs(t)
	image := s.Push("app:v1")
	s.Refer(image, testregistry.BundleMedia, r.bundle(t, r.ann.Attestation(image, testregistry.CosignSign, `{}`).Data, r.then.Add(time.Minute)).JSON())
	for counts, want := range map[period]string{
		{Start: r.then}: "", {Start: r.then, End: r.then.Add(2 * time.Minute)}: "",
		{Start: r.then.Add(2 * time.Minute)}: "its log is not trusted at", {End: r.then}: "its log is not trusted at",
	} {
		trust := r.trust(t, "https://log.acme.io")
		for _, l := range trust.logs {
			l.ValidityPeriodStart, l.ValidityPeriodEnd = counts.Start, counts.End
		}
		v, err := NewVerifier(Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow, IgnoreSCT: true}, Format: Bundles}, trust, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		says(t, fmt.Sprint(counts), v.Signed(t.Context(), local(), pin(t, image)), want)
	}
}

// entryOf is an entry of a log as it is read of a bundle.
func entryOf(t testing.TB, log testregistry.Tree, body string) *rekor.TransparencyLogEntry {
	t.Helper()
	out := &rekor.TransparencyLogEntry{}
	data, err := json.Marshal(log.Entry(body))
	if err == nil {
		err = protojson.Unmarshal(data, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func logNamed(t testing.TB, log testregistry.Tree) knownLog {
	t.Helper()
	out, err := readLog(log.PEM())
	if err != nil {
		t.Fatal(err)
	}
	out.BaseURL = "https://" + log.Origin
	return knownLog{out}
}

// Each entry of a log of each size is in it, at its own place alone; and the log's key is of either type.
func TestInclusion(t *testing.T) {
	for _, signer := range []*testregistry.Signer{testregistry.ByEd25519(t), testregistry.NewSigner(t)} {
		for size := range 20 {
			for at := range size + 1 {
				log := testregistry.Tree{Signer: signer, Origin: "log.acme.io", Before: at, After: size - at}
				known, e := logNamed(t, log), entryOf(t, log, "body")
				if _, err := known.has(e); err != nil {
					t.Fatalf("%d of %d: %v", at, size+1, err)
				}
				for other := -1; other < size+4; other++ {
					e.LogIndex = int64(other)
					if _, err := known.has(e); (err == nil) != (other == at) {
						t.Fatalf("%d of %d is at %d: %v", at, size+1, other, err)
					}
				}
				e.LogIndex = int64(at)
				hashes := e.InclusionProof.Hashes
				for i := range hashes {
					e.InclusionProof.Hashes = append(slices.Clone(hashes[:i]), hashes[i+1:]...)
					if _, err := known.has(e); err == nil {
						t.Fatalf("%d of %d without hash %d", at, size+1, i)
					}
				}
			}
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	log := testregistry.Tree{Signer: testregistry.ByEd25519(f), Origin: "log.acme.io", Before: 2, After: 1}
	known, made := logNamed(f, log), entryOf(f, log, "body")
	hashes, note := made.InclusionProof.Hashes, made.InclusionProof.Checkpoint.Envelope
	f.Add(note, "body", int64(2), hashes[0], hashes[1])
	f.Add("a\n1\nAA==\n\n— a AAAAAAA=\n", "", int64(0), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, checkpoint, body string, index int64, one, two []byte) {
		e := &rekor.TransparencyLogEntry{LogIndex: index, CanonicalizedBody: []byte(body), InclusionProof: &rekor.InclusionProof{
			Hashes: [][]byte{one, two}, Checkpoint: &rekor.Checkpoint{Envelope: checkpoint},
		}}
		_, err := known.has(e)
		signed, _, _ := strings.Cut(note, "\n\n")
		if given, _, _ := strings.Cut(checkpoint, "\n\n"); err == nil && (given != signed || body != "body" || index != 2 || string(one) != string(hashes[0]) || string(two) != string(hashes[1])) {
			t.Errorf("another entry is in the log: %q %q %d", checkpoint, body, index)
		}
	})
}
