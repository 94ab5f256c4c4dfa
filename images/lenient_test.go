package images

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/test/testregistry"
)

// bundleOf is a bundle of a key, of which a log knows, with its one entry changed.
func bundleOf(t *testing.T, image string, who, log *testregistry.Signer, change func(entry map[string]any)) []byte {
	t.Helper()
	data := testregistry.Bundle{
		Envelope: who.Attestation(image, testregistry.CosignSign, `{}`).Data, Log: log, At: time.Now().Add(-time.Minute), Who: who.PEM(),
	}.JSON()
	var doc struct {
		MediaType string          `json:"mediaType"`
		Envelope  json.RawMessage `json:"dsseEnvelope"`
		Material  struct {
			Key     json.RawMessage  `json:"publicKey"`
			Entries []map[string]any `json:"tlogEntries"`
		} `json:"verificationMaterial"`
	}
	if err := json.Unmarshal(data, &doc); err != nil || len(doc.Material.Entries) != 1 {
		t.Fatal(err, len(doc.Material.Entries))
	}
	if change != nil {
		change(doc.Material.Entries[0])
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What is beside the promise of a log is not looked at: whoever may write a repository can write a
// proof of any length there.
func TestPromiseIsEnough(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	who, log := testregistry.NewSigner(t), testregistry.NewSigner(t)
	v := verifier(t, Attestor{Key: who.PEM(), Log: log.PEM(), Format: Bundles})
	long := "log - 1\n1\n" + base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n\n" + strings.Repeat("— log AAAAAA==\n", 70_000)
	for name, change := range map[string]func(map[string]any){
		"as it is made": nil,
		"a proof without a checkpoint": func(e map[string]any) {
			e["inclusionProof"] = map[string]any{"logIndex": "7", "treeSize": "8", "rootHash": make([]byte, 32)}
		},
		"a proof of nothing": func(e map[string]any) { e["inclusionProof"] = map[string]any{} },
		"a checkpoint with many signatures": func(e map[string]any) {
			e["inclusionProof"] = map[string]any{"logIndex": "7", "treeSize": "8", "rootHash": make([]byte, 32), "checkpoint": map[string]any{"envelope": long}}
		},
		"no kind beside the entry": func(e map[string]any) { delete(e, "kindVersion") },
	} {
		one := testregistry.New(t)
		pushed := one.Copy(s, image)
		one.Refer(pushed, testregistry.BundleMedia, bundleOf(t, image, who, log, change))
		says(t, name, v.Signed(t.Context(), local(), pin(t, pushed)), "")
	}
}

// A log of a trusted root counts though the root leaves out what follows from its key.
func TestTrustedRootsThatSayLess(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	who, log := testregistry.NewSigner(t), testregistry.NewSigner(t)
	whole := testregistry.TrustedRoot(t, testregistry.NewAuthority(t, nil, time.Hour), log)
	s.Refer(image, testregistry.BundleMedia, bundleOf(t, image, who, log, nil))
	for name, change := range map[string]func(log, key map[string]any){
		"all of it":      func(_, _ map[string]any) {},
		"no name":        func(log, _ map[string]any) { delete(log, "logId") },
		"no hash":        func(log, _ map[string]any) { delete(log, "hashAlgorithm") },
		"no kind of key": func(_, key map[string]any) { delete(key, "keyDetails") },
		"no time":        func(_, key map[string]any) { delete(key, "validFor") },
		"no beginning":   func(_, key map[string]any) { key["validFor"] = map[string]any{} },
		"since ever":     func(_, key map[string]any) { key["validFor"] = map[string]any{"start": "0001-01-01T00:00:00Z"} },
	} {
		var doc map[string]any
		if err := json.Unmarshal(whole, &doc); err != nil {
			t.Fatal(err)
		}
		logs, _ := doc["tlogs"].([]any)
		one, _ := logs[0].(map[string]any)
		key, _ := one["publicKey"].(map[string]any)
		change(one, key)
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		trust, err := ReadTrust(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		v, err := NewVerifier(Attestor{Key: who.PEM(), Format: Bundles}, trust, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		says(t, name, v.Signed(t.Context(), local(), pin(t, image)), "")
	}
}

// More signatures than are tried are counted before any is read.
func TestBundleOfManySignatures(t *testing.T) {
	many := slices.Repeat([]string{`{}`}, maxSignatures+1)
	_, _, err := readBundle([]byte(`{"mediaType":"` + testregistry.BundleMedia + `","dsseEnvelope":{"signatures":[` + strings.Join(many, ",") + `]}}`))
	says(t, "many signatures", err, "more than 10 signatures")
}
