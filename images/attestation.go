package images

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// An envelope is a DSSE envelope: a payload, and signatures of its type and itself.
type envelope struct {
	PayloadType string `json:"payloadType"`
	Payload     string `json:"payload"`
	Signatures  []struct {
		Signature string `json:"sig"`
	} `json:"signatures"`
}

const (
	statementMedia  = "application/vnd.in-toto+json"
	statementPrefix = "https://in-toto.io/Statement/"
	maxSignatures   = 10
	maxSubjects     = 1024
)

// A Statement is what is attested, and proven to be by the attestor, of an image.
type Statement struct {
	Type    string         // the predicateType
	Content map[string]any // all of it, as Go data: int64 and float64
	Size    int            // of its text, in bytes
}

// Predicate is what is attested.
func (s Statement) Predicate() any { return s.Content["predicate"] }

// Attested are the statements of a type about the image. Each statement of the type must be
// the attestor's: one of somebody else is an error, and so is none.
func (v *Verifier) Attested(ctx context.Context, r Registry, image Image, kind string) ([]Statement, error) {
	layers, err := v.layers(ctx, r, image, "att")
	if err != nil {
		return nil, err
	}
	var out []Statement
	var others []string
	for _, l := range layers {
		s, err := v.statement(l, image, kind)
		var other otherType
		switch {
		case errors.As(err, &other):
			others = append(others, string(other))
		case err != nil:
			return nil, fmt.Errorf("an attestation of %s: %w", image, err)
		default:
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no attestation of the type %s of %s, but of %s", kind, image, few(others))
	}
	return out, nil
}

// few are texts that may be anybody's, as far as a message has room for them.
func few(texts []string) string {
	const most, length = 5, 100
	slices.Sort(texts)
	texts = slices.Compact(texts)
	out := ""
	for i, text := range texts {
		switch {
		case i == most:
			return fmt.Sprintf("%s and %d other types", out, len(texts)-most)
		case i > 0:
			out += ", "
		}
		if len(text) > length {
			text = text[:length] + "…"
		}
		out += fmt.Sprintf("%q", text)
	}
	return out
}

// An otherType is that of a statement which is not looked for.
type otherType string

// Error implements error.
func (t otherType) Error() string { return "it is of the type " + string(t) }

// statement is what a layer attests. The type is read first: an attestation of another type may
// be anybody's. It is read from what is signed, never from the annotations.
func (v *Verifier) statement(l layer, image Image, kind string) (Statement, error) {
	data, err := l.read(maxAttestation)
	if err != nil {
		return Statement{}, err
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return Statement{}, fmt.Errorf("its envelope is no JSON: %w", err)
	}
	content, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return Statement{}, fmt.Errorf("its payload is no base64: %w", err)
	}
	var head struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
	}
	if err := kjson.Unmarshal(content, &head); err != nil {
		return Statement{}, fmt.Errorf("its payload is no JSON: %w", err)
	}
	if head.PredicateType != kind {
		return Statement{}, otherType(head.PredicateType)
	}
	if e.PayloadType != statementMedia || !strings.HasPrefix(head.Type, statementPrefix) {
		return Statement{}, errors.New("it is no in-toto statement")
	}
	if err := v.sealed(l, e, data, content); err != nil {
		return Statement{}, err
	}
	var s struct { // read when it is known whose it is: it may be large
		Subject []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if err := kjson.Unmarshal(content, &s); err != nil {
		return Statement{}, fmt.Errorf("its payload is no JSON: %w", err)
	}
	var whole map[string]any
	if err := kjson.Unmarshal(content, &whole); err != nil {
		return Statement{}, fmt.Errorf("its payload is no JSON: %w", err)
	}
	if len(s.Subject) > maxSubjects {
		return Statement{}, fmt.Errorf("it has more than %d subjects", maxSubjects)
	}
	for _, subject := range s.Subject {
		if subject.Digest[image.digest.Algorithm] == image.digest.Hex {
			return Statement{Type: kind, Content: whole, Size: len(content)}, nil
		}
	}
	return Statement{}, errors.New("it is about another image")
}

// sealed is nil if one signature of an envelope is the attestor's.
func (v *Verifier) sealed(l layer, e envelope, data, content []byte) error {
	if len(e.Signatures) > maxSignatures {
		return fmt.Errorf("it has more than %d signatures", maxSignatures)
	}
	encoded := preAuthentication(e.PayloadType, content)
	why := []error{errors.New("it has no signature")}
	for i, s := range e.Signatures {
		if i == 0 {
			why = nil
		}
		signature, err := base64.StdEncoding.DecodeString(s.Signature)
		if err == nil {
			err = v.signed(l, encoded, data, signature, entryOfEnvelope)
		}
		if err == nil {
			return nil
		}
		why = append(why, err)
	}
	return joined(why)
}

// preAuthentication is what a signature of an envelope is of.
func preAuthentication(media string, content []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "DSSEv1 %d %s %d ", len(media), media, len(content))
	b.Write(content)
	return b.Bytes()
}
