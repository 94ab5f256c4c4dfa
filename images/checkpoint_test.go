package images

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/internal/testregistry"
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
	signature, _ = base64.StdEncoding.DecodeString(e.Signatures[0].Signature)
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
		{"of another image", with(entry(r.log, testregistry.Record(elsewhere, r.ann, nil))), exact, "another payload"},
		{"of another envelope", with(entry(r.log, testregistry.RecordOfEnvelope(elsewhere, r.ann, nil))), exact, "another payload"},
		{"of another key", with(entry(r.log, testregistry.Record(signed, nil, eve))), exact, "another key"},
		{"of the key without its certificate", with(entry(r.log, testregistry.Record(signed, nil, r.ann.Signer))), exact, "another key"},
		{"of another signature", with(entry(r.log, strings.Replace(record, `"content":"M`, `"content":"N`, 1))), exact, "another signature"},
		{"of another version", with(entry(r.log, strings.Replace(record, "0.0.2", "0.0.1", 1))), exact, "0.0.1"},
		{"of another kind", with(entry(r.log, strings.Replace(record, "hashedrekord", "rpm", 1))), exact, `kind "rpm"`},
		{"of another hash", with(entry(r.log, strings.Replace(record, "SHA2_256", "SHA1", 1))), exact, "another payload"},
		{"no JSON", with(entry(r.log, "x")), exact, "no JSON"},
		{"empty", with(entry(r.log, "{}")), exact, "its log entry is"},
		{"what the log has not", with(proof(func(e, _ map[string]any) { e["canonicalizedBody"] = []byte(record + " ") })), exact, "does not show"},
		{"at another place", with(proof(func(e, _ map[string]any) { e["logIndex"] = "4" })), exact, "does not show"},
		{"behind the end", with(proof(func(e, _ map[string]any) { e["logIndex"] = "9" })), exact, "does not show"},
		{"in front of the beginning", with(proof(func(e, _ map[string]any) { e["logIndex"] = "-1" })), exact, "does not show"},
		{"no hashes", with(proof(func(_, p map[string]any) { p["hashes"] = [][]byte{} })), exact, "does not show"},
		{"a hash more", with(proof(func(_, p map[string]any) { p["hashes"] = append(p["hashes"].([][]byte), make([]byte, 32)) })), exact, "does not show"},
		{"many hashes", with(proof(func(_, p map[string]any) { p["hashes"] = make([][]byte, 100) })), exact, "does not show"},
		{"no checkpoint", with(proof(func(_, p map[string]any) { delete(p, "checkpoint") })), exact, "no transparency log proof"},
		{"a checkpoint of another size", with(note(func(n string) string { return strings.Replace(n, "\n9\n", "\n8\n", 1) })), exact, "of another log"},
		{"a checkpoint without a signature", with(note(func(n string) string { n, _, _ = strings.Cut(n, "\n— "); return n })), exact, "has no signature"},
		{"a checkpoint with another signature in front", with(note(func(n string) string {
			return strings.Replace(n, "\n\n", "\n\n— witness.io "+base64.StdEncoding.EncodeToString(make([]byte, 68))+"\n", 1)
		})), exact, ""},
		{"a checkpoint that goes on", with(note(func(n string) string { return n + "x" })), exact, "no signature"},
		{"a checkpoint with a signature that is none", with(note(func(n string) string { return n + "— log.acme.io %\n" })), exact, "cannot be read"},
		{"a checkpoint that is no text", with(note(func(n string) string { return n + "\x01\n" })), exact, "no text"},
		{"a large checkpoint", with(note(func(n string) string { return n + strings.Repeat("x", maxCheckpoint) })), exact, "more than"},
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
		trust.logs[0].period = counts
		v, err := NewVerifier(Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow, IgnoreSCT: true}, Format: Bundles}, trust, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		says(t, fmt.Sprint(counts), v.Signed(t.Context(), local(), pin(t, image)), want)
	}
}

// Each entry of a log of each size is in it, at its own place alone; and the log's key is of either type.
func TestInclusion(t *testing.T) {
	for _, signer := range []*testregistry.Signer{testregistry.ByEd25519(t), testregistry.NewSigner(t)} {
		key, _, err := readTimedKey(signer.PEM())
		if err != nil {
			t.Fatal(err)
		}
		logs := []*logKey{{key: key, origin: "log.acme.io"}}
		for size := range 20 {
			for at := range size + 1 {
				log := testregistry.Tree{Signer: signer, Origin: "log.acme.io", Before: at, After: size - at}
				made := log.Entry("body")
				proof := made["inclusionProof"].(map[string]any)
				hashes, _ := proof["hashes"].([][]byte)
				e := includedEntry{int64(at), []byte("body"), hashes, proof["checkpoint"].(map[string]any)["envelope"].(string)}
				if _, err := e.in(logs); err != nil {
					t.Fatalf("%d of %d: %v", at, size+1, err)
				}
				for other := -1; other < size+4; other++ {
					moved := e
					moved.index = int64(other)
					if _, err := moved.in(logs); (err == nil) != (other == at) {
						t.Fatalf("%d of %d is at %d: %v", at, size+1, other, err)
					}
				}
				for i := range hashes {
					short := e
					short.hashes = append(append([][]byte{}, hashes[:i]...), hashes[i+1:]...)
					if _, err := short.in(logs); err == nil {
						t.Fatalf("%d of %d without hash %d", at, size+1, i)
					}
				}
			}
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	log := testregistry.Tree{Signer: testregistry.ByEd25519(f), Origin: "log.acme.io", Before: 2, After: 1}
	key, _, err := readTimedKey(log.PEM())
	if err != nil {
		f.Fatal(err)
	}
	logs := []*logKey{{key: key}}
	made := log.Entry("body")
	proof := made["inclusionProof"].(map[string]any)
	hashes := proof["hashes"].([][]byte)
	note := proof["checkpoint"].(map[string]any)["envelope"].(string)
	f.Add(note, "body", int64(2), hashes[0], hashes[1])
	f.Add("a\n1\nAA==\n\n— a AAAAAAA=\n", "", int64(0), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, checkpoint, body string, index int64, one, two []byte) {
		e := includedEntry{index, []byte(body), [][]byte{one, two}, checkpoint}
		_, err := e.in(logs)
		signed, _, _ := strings.Cut(note, "\n\n")
		if given, _, _ := strings.Cut(checkpoint, "\n\n"); err == nil && (given != signed || body != "body" || index != 2 || string(one) != string(hashes[0]) || string(two) != string(hashes[1])) {
			t.Errorf("another entry is in the log: %q %q %d", checkpoint, body, index)
		}
		_ = e.names(entryOfBundle, nil, nil, nil, key, "")
	})
}
