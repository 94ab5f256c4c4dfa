package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/cosign/attestation"
	cosignbundle "github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v3/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

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
