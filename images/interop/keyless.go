package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"
)

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
