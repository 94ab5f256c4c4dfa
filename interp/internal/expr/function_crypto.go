package expr

import (
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/kvap/kvap/jmespath"
)

// cryptoFunction is the hashes, for finding out whether something changed, and
// the reading of certificates.
func cryptoFunction(f jmespath.Func) function {
	switch f {
	case jmespath.FuncMD5:
		return onText(func(s string) any { return fmt.Sprintf("%x", md5.Sum([]byte(s))) })
	case jmespath.FuncSHA1:
		return onText(func(s string) any { return fmt.Sprintf("%x", sha1.Sum([]byte(s))) })
	case jmespath.FuncSHA256:
		return onText(func(s string) any { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) })
	case jmespath.FuncX509Decode:
		return parsing(decodeCertificate)
	}
	return nil
}

// decodeCertificate gives a certificate, or a request for one, as the JSON form
// of Go's type; the key as its modulus, in decimal digits, and exponent. Only RSA
// keys are read.
func decodeCertificate(s ...string) (any, error) {
	block, _ := pem.Decode([]byte(s[0]))
	if block == nil {
		return nil, errors.New("the text is no PEM block")
	}
	switch block.Type {
	case "CERTIFICATE":
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if c.PublicKey, err = publicKey(c.PublicKey); err != nil {
			return nil, err
		}
		return jsonForm(c)
	case "CERTIFICATE REQUEST":
		r, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return nil, err
		}
		if r.PublicKey, err = publicKey(r.PublicKey); err != nil {
			return nil, err
		}
		return jsonForm(r)
	}
	return nil, fmt.Errorf("a PEM block of type %s is neither a certificate nor a request for one", block.Type)
}

func publicKey(key any) (any, error) {
	k, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("the public key is no RSA key")
	}
	return map[string]any{"N": k.N.String(), "E": k.E}, nil
}

func jsonForm(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = json.Unmarshal(b, &out)
	return out, err
}
