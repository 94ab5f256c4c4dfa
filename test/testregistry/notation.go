package testregistry

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/tspclient-go"
)

// The types of signatures of Notary, and of their envelopes.
const (
	NotationMedia   = "application/vnd.cncf.notary.signature"
	NotationPayload = "application/vnd.cncf.notary.payload.v1+json"
	JWS             = "application/jose+json"
	COSE            = "application/cose"
)

// NewLeaf has a certificate for signing code by an authority, or, if that is nil, by itself.
func NewLeaf(t testing.TB, by *Authority, from, until time.Time, more ...pkix.Extension) *Authority {
	t.Helper()
	return certified(t, by, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "signs", Organization: []string{"acme"}, Country: []string{"DE"}, Province: []string{"x"}},
		NotBefore: from, NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, ExtraExtensions: more,
	})
}

// A Notarization is how a signature of Notary is made. What is empty is as it should be.
type Notarization struct {
	Envelope    string // JWS if it is empty
	Chain       []*Authority
	At, Expiry  time.Time
	Payload     []byte
	PayloadType string
	Scheme      signature.SigningScheme
	Critical    string // an attribute that must be understood
	// StampedBy makes a timestamp, of the time StampedAt, below the root StampRoot.
	StampedBy, StampRoot *Authority
	StampedAt            time.Time
}

// Notation is an envelope as notation makes it, by the code of notation: of an artifact that is
// pinned, by who comes first of the chain.
func (r *Registry) Notation(pinned string, n Notarization, annotations map[string]string) []byte {
	r.t.Helper()
	if n.Payload == nil {
		at, err := name.NewDigest(pinned, name.Insecure)
		if err != nil {
			r.t.Fatal(err)
		}
		found, err := remote.Get(at)
		if err != nil {
			r.t.Fatal(err)
		}
		n.Payload, _ = json.Marshal(map[string]any{"targetArtifact": map[string]any{
			"mediaType": found.MediaType, "digest": found.Digest, "size": found.Size, "annotations": annotations,
		}})
	}
	var chain []*x509.Certificate
	for _, c := range n.Chain {
		chain = append(chain, c.certificate)
	}
	signer, err := signature.NewLocalSigner(chain, n.Chain[0].key)
	if err != nil {
		r.t.Fatal(err)
	}
	media := or(n.Envelope, JWS)
	envelope, err := signature.NewEnvelope(media)
	if err != nil {
		r.t.Fatal(err)
	}
	request := &signature.SignRequest{
		Payload: signature.Payload{ContentType: or(n.PayloadType, NotationPayload), Content: n.Payload}, Signer: signer,
		SigningTime: n.At, Expiry: n.Expiry, SigningScheme: or(n.Scheme, signature.SigningSchemeX509),
	}
	if n.At.IsZero() {
		request.SigningTime = time.Now()
	}
	if n.Critical != "" {
		request.ExtendedSignedAttributes = []signature.Attribute{{Key: n.Critical, Critical: true, Value: "x"}}
	}
	if n.StampedBy != nil {
		request.Timestamper = stamps(n)
		request.TSARootCAs = x509.NewCertPool()
		request.TSARootCAs.AddCert(n.StampRoot.certificate)
	}
	data, err := envelope.Sign(request.WithContext(context.Background()))
	if err != nil {
		r.t.Fatal(err)
	}
	return data
}

// Notarize signs an artifact that is pinned.
func (r *Registry) Notarize(pinned string, n Notarization, annotations map[string]string) {
	r.t.Helper()
	r.ReferAs(pinned, NotationMedia, or(n.Envelope, JWS), r.Notation(pinned, n, annotations))
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

type stamps Notarization

// Timestamp implements tspclient.Timestamper.
func (s stamps) Timestamp(_ context.Context, q *tspclient.Request) (*tspclient.Response, error) {
	answer := s.StampedBy.stamp(q.MessageImprint.HashAlgorithm.Algorithm, q.MessageImprint.HashedMessage, q.Nonce, s.StampedAt, true)
	out := &tspclient.Response{}
	_, err := asn1.Unmarshal(answer, out)
	return out, err
}
