package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/sigstore/pkg/signature"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("want the folder to write to")
	}
	for name, make := range map[string]func(context.Context, *recording) error{
		"cosign-key": cosignKey, "cosign-key-bundle": cosignKeyBundle, "cosign-attest": cosignAttest,
		"keyless-bundle": keyless(false), "keyless-bundle-v2": keyless(true), "notation-jws": notary(jws.MediaTypeEnvelope), "notation-cose": notary(cose.MediaTypeEnvelope),
	} {
		if err := record(filepath.Join(os.Args[1], name), make); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
}

// A recording is a registry with an image, and the folder that it will be in.
type recording struct {
	dir    string // of the case: whom to trust
	layout string // of the registry
	scrap  string
	ref    name.Digest
	hex    string
}

func record(dir string, sign func(context.Context, *recording) error) error {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	scrap, err := os.MkdirTemp("", "interop")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scrap)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	image, err := random.Image(64, 1)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://")+"/app:v1", name.Insecure)
	if err != nil {
		return err
	}
	if err := remote.Write(tag, image); err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	r := &recording{dir: dir, layout: filepath.Join(dir, "registry"), scrap: scrap, ref: tag.Digest(digest.String()), hex: digest.Hex}
	if err := r.save("v1"); err != nil {
		return err
	}
	if err := sign(context.Background(), r); err != nil {
		return err
	}
	return errors.Join(r.write("digest", []byte(digest.String()+"\n")), r.write("time", []byte(time.Now().UTC().Format(time.RFC3339)+"\n")))
}

func (r *recording) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), data, 0o644)
}

// save writes some tags of the registry, and all that refers to the image.
func (r *recording) save(tags ...string) error {
	at, err := layout.FromPath(r.layout)
	if err != nil {
		if at, err = layout.Write(r.layout, empty.Index); err != nil {
			return err
		}
	}
	for _, tag := range tags {
		image, err := remote.Image(r.ref.Context().Tag(tag))
		if err != nil {
			return err
		}
		if err := at.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
			return err
		}
	}
	index, err := remote.Referrers(r.ref)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range manifest.Manifests {
		artifact, err := remote.Image(r.ref.Context().Digest(d.Digest.String()))
		if err != nil {
			return err
		}
		if err := at.AppendImage(artifact); err != nil {
			return err
		}
	}
	return nil
}

// key makes a key as cosign generate-key-pair does; its public half is kept.
func (r *recording) key() (signature.SignerVerifier, error) {
	pair, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return []byte("x"), nil })
	if err != nil {
		return nil, err
	}
	if err := r.write("key.pub", pair.PublicBytes); err != nil {
		return nil, err
	}
	return cosign.LoadPrivateKey(pair.PrivateBytes, []byte("x"), nil)
}

func (r *recording) verifier() (signature.Verifier, error) {
	data, err := os.ReadFile(filepath.Join(r.dir, "key.pub"))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	return signature.LoadDefaultVerifier(key)
}

func (r *recording) checkOptions() (*cosign.CheckOpts, error) {
	v, err := r.verifier()
	return &cosign.CheckOpts{
		SigVerifier: v, IgnoreTlog: true, IgnoreSCT: true, Offline: true, ClaimVerifier: cosign.SimpleClaimVerifier,
		RegistryClientOpts: []ociremote.Option{ociremote.WithNameOptions(name.Insecure)},
	}, err
}
