package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/notaryproject/notation-go"
	notaryregistry "github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/signer"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
)

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
