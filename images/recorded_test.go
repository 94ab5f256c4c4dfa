package images

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kvap/kvap/test/testregistry"
)

func recordedAt(t *testing.T, dir string) Registry {
	t.Helper()
	folder, err := OpenRecorded(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Registry{Recorded: folder}
}

// A folder answers as a registry does, and for the repositories that it has.
func TestRecorded(t *testing.T) {
	const dir = "../cmd/kvap/internal/suite/testdata/images/registry"
	const digest = "sha256:d528677e174b419e2eb6ddaa64781f092a937ae247e0a92cb73d2f141675026f"
	r := recordedAt(t, dir)
	for reference, want := range map[string]string{"reg.test/app:v1": "reg.test/app@" + digest, "reg.test/app:v9": "", "reg.test/web:v1": "", "other.test/app:v1": ""} {
		got, err := r.Resolve(t.Context(), reference)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%s: %v %v", reference, got, err)
		}
		if err != nil && (errors.Is(err, ErrUnreachable) || !errors.Is(err, errAbsent)) {
			t.Errorf("%s: %v", reference, err)
		}
	}
	if found, err := r.Describe(t.Context(), "reg.test/app:v1"); err != nil || found["resolvedImage"] != "reg.test/app@"+digest {
		t.Errorf("got %v %v", found, err)
	}
	// A layout alone stands for every repository.
	one := recordedAt(t, filepath.Join(dir, "reg.test", "app"))
	if got, err := one.Resolve(t.Context(), "ghcr.io/any/thing:v1"); err != nil || got.Digest() != digest {
		t.Errorf("alone: %v %v", got, err)
	}
	if _, err := OpenRecorded(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there is opened")
	}
}

// What is in the folder is believed no more than what a registry says, and nothing outside of it
// is read.
func TestRecordedIsNotTrusted(t *testing.T) {
	const from = "../cmd/kvap/internal/suite/testdata/images/registry/reg.test/app"
	const digest = "d528677e174b419e2eb6ddaa64781f092a937ae247e0a92cb73d2f141675026f"
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "blobs", "sha256", digest)
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, append(data, ' '), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := recordedAt(t, dir).Describe(t.Context(), "reg.test/app@sha256:"+digest); err == nil {
		t.Errorf("another manifest is taken for it: %v", found)
	}
	outside := filepath.Join(t.TempDir(), "index.json")
	if err := os.WriteFile(outside, []byte(`{"manifests":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(linked, "index.json")); err != nil {
		t.Skip(err)
	}
	if _, _, err := (&Recorded{recordedAt(t, linked).Recorded.root}).layout("reg.test", "app"); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("a link that leads outside is read: %v", err)
	}
	if _, _, err := recordedAt(t, dir).Recorded.read("reg.test", "app/blobs/sha256:../../index.json"); err == nil {
		t.Error("a file that is no blob is read")
	}
}

// cosign save names signatures by their kind.
func TestRecordedAsCosignSaves(t *testing.T) {
	const from = "../cmd/kvap/internal/suite/testdata/images/registry/reg.test/app"
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	var index map[string]any
	at := filepath.Join(dir, "index.json")
	data, err := os.ReadFile(at)
	if err == nil {
		err = json.Unmarshal(data, &index)
	}
	if err != nil {
		t.Fatal(err)
	}
	const v1 = "sha256-d528677e174b419e2eb6ddaa64781f092a937ae247e0a92cb73d2f141675026f"
	var kept []any
	for _, m := range index["manifests"].([]any) {
		annotations := m.(map[string]any)["annotations"].(map[string]any)
		switch annotations["org.opencontainers.image.ref.name"] {
		case "v1":
			m.(map[string]any)["annotations"] = map[string]any{"kind": "dev.cosignproject.cosign/image"}
		case v1 + ".sig":
			m.(map[string]any)["annotations"] = map[string]any{"kind": "dev.cosignproject.cosign/sigs"}
		default:
			continue
		}
		kept = append(kept, m)
	}
	index["manifests"] = kept
	if data, err = json.Marshal(index); err == nil {
		err = os.WriteFile(at, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const key = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE5EHfacQeh46cfFrnoaF9Snl5xqXd\nr6+eY6B5dY/cY5yT/NCRufT8+H1dum/P9VWAmV1zDx9ZcCZeXCMQ2/giCw==\n-----END PUBLIC KEY-----\n"
	image := pin(t, "reg.test/app@"+strings.Replace(v1, "-", ":", 1))
	if err := verifier(t, Attestor{Key: key, IgnoreLog: true}).Signed(t.Context(), recordedAt(t, dir), image); err != nil {
		t.Error(err)
	}
}

// What refers to an image in a folder is found.
func TestRecordedReferrers(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	dir := t.TempDir()
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := v1.NewHash(testregistry.Digest(image))
	if err != nil {
		t.Fatal(err)
	}
	bundle := testregistry.Bundle{Envelope: k.Attestation(image, testregistry.CosignSign, `{}`).Data}.JSON()
	one, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), testregistry.BundleMedia), static.NewLayer(bundle, testregistry.BundleMedia))
	if err != nil {
		t.Fatal(err)
	}
	if err := at.AppendImage(mutate.Subject(one, v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: digest, Size: 1}).(v1.Image)); err != nil {
		t.Fatal(err)
	}
	v := verifier(t, Attestor{Key: k.PEM(), Format: Bundles})
	says(t, "a bundle", v.Signed(t.Context(), recordedAt(t, dir), pin(t, "reg.test/app@"+digest.String())), "")
	says(t, "another image", v.Signed(t.Context(), recordedAt(t, dir), pin(t, "reg.test/app@sha256:"+strings.Repeat("a", 64))), "no bundle refers to")
}
