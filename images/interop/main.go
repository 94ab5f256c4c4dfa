package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
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
	"github.com/notaryproject/notation-go"
	notaryregistry "github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/signer"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/cosign/attestation"
	cosignbundle "github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v3/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"
	"google.golang.org/protobuf/encoding/protojson"
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

// cosignKey is cosign sign --key --new-bundle-format=false, as cosign 2 signed too.
func cosignKey(ctx context.Context, r *recording) error {
	by, err := r.key()
	if err != nil {
		return err
	}
	signed, err := payload.Cosign{Image: r.ref, ClaimedIdentity: r.ref.Context().Name(), Annotations: map[string]any{"team": "a"}}.MarshalJSON()
	if err != nil {
		return err
	}
	raw, err := by.SignMessage(bytes.NewReader(signed))
	if err != nil {
		return err
	}
	one, err := static.NewSignature(signed, base64.StdEncoding.EncodeToString(raw))
	if err != nil {
		return err
	}
	entity, err := ociremote.SignedEntity(r.ref)
	if err == nil {
		entity, err = mutate.AttachSignatureToEntity(entity, one)
	}
	if err == nil {
		err = ociremote.WriteSignatures(r.ref.Context(), entity)
	}
	if err != nil {
		return err
	}
	check, err := r.checkOptions()
	if err != nil {
		return err
	}
	if _, _, err := cosign.VerifyImageSignatures(ctx, r.ref, check); err != nil {
		return err
	}
	return r.save("sha256-" + r.hex + ".sig")
}

// cosignKeyBundle is cosign sign --key of cosign 3.
func cosignKeyBundle(ctx context.Context, r *recording) error {
	keys, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return err
	}
	public, err := keys.GetPublicKeyPem()
	if err != nil {
		return err
	}
	if err := r.write("key.pub", []byte(public)); err != nil {
		return err
	}
	nobody, err := root.NewSigningConfig(root.SigningConfigMediaType02, nil, nil, nil, root.ServiceConfiguration{}, nil, root.ServiceConfiguration{})
	if err != nil {
		return err
	}
	statement := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q},"annotations":{"team":"a"}}],"predicateType":%q,"predicate":{}}`, r.hex, signType)
	data, err := cosignbundle.SignData(ctx, &sign.DSSEData{Data: statement, PayloadType: "application/vnd.in-toto+json"}, keys, "", nil, nobody, nil, cosignbundle.SignOptions{})
	if err != nil {
		return err
	}
	if err := ociremote.WriteAttestationNewBundleFormat(r.ref, data, signType); err != nil {
		return err
	}
	check, err := r.checkOptions()
	if err != nil {
		return err
	}
	check.NewBundleFormat, check.ClaimVerifier = true, cosign.IntotoSubjectClaimVerifier
	if _, _, err := cosign.VerifyImageAttestations(ctx, r.ref, check); err != nil {
		return err
	}
	return r.save()
}

// cosignAttest is cosign attest --key --new-bundle-format=false.
func cosignAttest(ctx context.Context, r *recording) error {
	by, err := r.key()
	if err != nil {
		return err
	}
	statement, err := attestation.GenerateStatement(attestation.GenerateOpts{
		Predicate: strings.NewReader(`{"builder":{"id":"x"}}`), Type: buildType, Digest: r.hex, Repo: r.ref.Context().Name(),
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(statement)
	if err != nil {
		return err
	}
	envelope, err := dsse.WrapSigner(by, "application/vnd.in-toto+json").SignMessage(bytes.NewReader(text))
	if err != nil {
		return err
	}
	one, err := static.NewAttestation(envelope, static.WithLayerMediaType("application/vnd.dsse.envelope.v1+json"), static.WithAnnotations(map[string]string{"predicateType": buildType}))
	if err != nil {
		return err
	}
	entity, err := ociremote.SignedEntity(r.ref)
	if err == nil {
		entity, err = mutate.AttachAttestationToEntity(entity, one)
	}
	if err == nil {
		err = ociremote.WriteAttestations(r.ref.Context(), entity)
	}
	if err != nil {
		return err
	}
	check, err := r.checkOptions()
	if err != nil {
		return err
	}
	check.ClaimVerifier = cosign.IntotoSubjectClaimVerifier
	if _, _, err := cosign.VerifyImageAttestations(ctx, r.ref, check); err != nil {
		return err
	}
	return r.save("sha256-" + r.hex + ".att")
}

const (
	signType  = "https://sigstore.dev/cosign/sign/v1"
	buildType = "https://acme.io/build"
)

// Whom the virtual Sigstore of sigstore-go certifies.
const identity, issuer = "ann@acme.io", "https://acme.io"

// keyless is a bundle by sigstore-go's virtual Sigstore, with a log of the first or of the second
// kind, put beside the image as cosign 3 does.
func keyless(second bool) func(context.Context, *recording) error {
	return func(_ context.Context, r *recording) error {
		sigstore, err := ca.NewVirtualSigstore()
		if err != nil {
			return err
		}
		statement := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`, r.hex, signType)
		attest := func(identity, issuer string, body []byte) (*ca.TestEntity, error) {
			return sigstore.AttestAtTime(identity, issuer, body, time.Now().Add(5*time.Minute), true) // as sigstore-go does
		}
		if second {
			attest = sigstore.AttestHashedRekordV2
		}
		entity, err := attest(identity, issuer, statement)
		if err != nil {
			return err
		}
		data, err := bundleOf(sigstore, entity)
		if err != nil {
			return err
		}
		trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, sigstore.FulcioCertificateAuthorities(), sigstore.CTLogs(), sigstore.TimestampingAuthorities(), named(sigstore.RekorLogs()))
		if err != nil {
			return err
		}
		text, err := trusted.MarshalJSON()
		if err != nil {
			return err
		}
		if err := verified(data, text, r.hex); err != nil {
			return err
		}
		if err := ociremote.WriteAttestationNewBundleFormat(r.ref, data, signType); err != nil {
			return err
		}
		return errors.Join(r.write("trusted_root.json", text), r.save())
	}
}

// named are logs whose IDs are bytes, as documents have them.
func named(logs map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
	for id, l := range logs {
		l.ID, _ = hex.DecodeString(id)
	}
	return logs
}

func bundleOf(sigstore *ca.VirtualSigstore, entity *ca.TestEntity) ([]byte, error) {
	content, err := entity.VerificationContent()
	if err != nil {
		return nil, err
	}
	signed, err := entity.SignatureContent()
	if err != nil {
		return nil, err
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		return nil, err
	}
	stamps, err := entity.Timestamps()
	if err != nil {
		return nil, err
	}
	envelope := signed.EnvelopeContent().RawEnvelope()
	text, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		return nil, err
	}
	media, err := bundle.MediaTypeString("0.3")
	if err != nil {
		return nil, err
	}
	out := &protobundle.Bundle{
		MediaType: media,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: content.Certificate().Raw}},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			PayloadType: envelope.PayloadType, Payload: text, Signatures: []*protodsse.Signature{{Sig: signed.Signature()}},
		}},
	}
	for _, e := range entries {
		one := e.TransparencyLogEntry()
		if one.KindVersion == nil {
			// Of the first kind: it has the promise of its log, which sigstore-go keeps beside it.
			one.KindVersion = &protorekor.KindVersion{Kind: "dsse", Version: "0.0.1"}
			promise, err := sigstore.RekorSignPayload(tlog.RekorPayload{
				Body: base64.StdEncoding.EncodeToString(one.CanonicalizedBody), IntegratedTime: one.IntegratedTime, LogIndex: one.LogIndex, LogID: hex.EncodeToString(one.LogId.KeyId),
			})
			if err != nil {
				return nil, err
			}
			one.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
		}
		out.VerificationMaterial.TlogEntries = append(out.VerificationMaterial.TlogEntries, one)
	}
	out.VerificationMaterial.TimestampVerificationData = &protobundle.TimestampVerificationData{}
	for _, s := range stamps {
		out.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps = append(out.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps, &protocommon.RFC3161SignedTimestamp{SignedTimestamp: s})
	}
	return protojson.Marshal(out)
}

// verified is nil where sigstore-go verifies a bundle by a trusted root, both as they are written.
func verified(data, trusted []byte, hexDigest string) error {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(data); err != nil {
		return err
	}
	material, err := root.NewTrustedRootFromJSON(trusted)
	if err != nil {
		return err
	}
	v, err := verify.NewVerifier(material, verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1))
	if err != nil {
		return err
	}
	who, err := verify.NewShortCertificateIdentity(issuer, "", identity, "")
	if err != nil {
		return err
	}
	digest, err := hex.DecodeString(hexDigest)
	if err != nil {
		return err
	}
	_, err = v.Verify(&b, verify.NewPolicy(verify.WithArtifactDigest("sha256", digest), verify.WithCertificateIdentity(who)))
	return err
}

// notary is notation sign, of a layout.
func notary(media string) func(context.Context, *recording) error {
	return func(ctx context.Context, r *recording) error {
		key, chain, err := authority()
		if err != nil {
			return err
		}
		by, err := signer.New(key, chain)
		if err != nil {
			return err
		}
		repository, err := notaryregistry.NewOCIRepository(r.layout, notaryregistry.RepositoryOptions{})
		if err != nil {
			return err
		}
		if _, err := notation.Sign(ctx, by, repository, notation.SignOptions{
			SignerSignOptions: notation.SignerSignOptions{SignatureMediaType: media}, ArtifactReference: r.ref.DigestStr(), UserMetadata: map[string]string{"team": "a"},
		}); err != nil {
			return err
		}
		policy := &trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{{
			Name: "all", RegistryScopes: []string{"*"}, TrustStores: []string{"ca:acme"}, TrustedIdentities: []string{"*"},
			SignatureVerification: trustpolicy.SignatureVerification{VerificationLevel: "strict"},
		}}}
		v, err := verifier.New(policy, store{chain[1]}, nil)
		if err != nil {
			return err
		}
		if _, _, err := notation.Verify(ctx, v, repository, notation.VerifyOptions{ArtifactReference: r.ref.String(), MaxSignatureAttempts: 5}); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(r.layout, "ingest")); err != nil {
			return err
		}
		return r.write("root.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain[1].Raw}))
	}
}

// A store trusts an authority.
type store struct{ root *x509.Certificate }

// GetCertificates implements truststore.X509TrustStore.
func (s store) GetCertificates(_ context.Context, kind truststore.Type, _ string) ([]*x509.Certificate, error) {
	if kind != truststore.TypeCA {
		return nil, nil
	}
	return []*x509.Certificate{s.root}, nil
}

// authority is a key with its certificate and that of who issued it.
func authority() (*ecdsa.PrivateKey, []*x509.Certificate, error) {
	one, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	two, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	subject := func(name string) pkix.Name {
		return pkix.Name{Country: []string{"DE"}, Province: []string{"BE"}, Organization: []string{"Acme"}, CommonName: name}
	}
	now := time.Now()
	top := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject("root"), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true, MaxPathLen: 1,
		KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject("ann"), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	rawTop, err := x509.CreateCertificate(rand.Reader, top, top, two.Public(), two)
	if err != nil {
		return nil, nil, err
	}
	rawLeaf, err := x509.CreateCertificate(rand.Reader, leaf, top, one.Public(), two)
	if err != nil {
		return nil, nil, err
	}
	var chain []*x509.Certificate
	for _, raw := range [][]byte{rawLeaf, rawTop} {
		c, err := x509.ParseCertificate(raw)
		if err != nil {
			return nil, nil, err
		}
		chain = append(chain, c)
	}
	return one, chain, nil
}
