package images

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

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

	annotations map[string]string // of the image among its subjects
}

// Predicate is what is attested.
func (s Statement) Predicate() any { return s.Content["predicate"] }

// Attested are the statements of a type about the image. Each statement of the type must be
// the attestor's: one of somebody else is an error, and so is none.
func (v *Verifier) Attested(ctx context.Context, r Registry, image Image, kind string) ([]Statement, error) {
	if v.attestor.Format == Notation {
		return v.attestedByNotation(ctx, r, image, kind)
	}
	var all []func() (Statement, error)
	var absent oneLine
	if v.attestor.Format != Bundles {
		layers, err := v.layers(ctx, r, image, "att")
		if err != nil && !isNone(err, v.attestor.Format) {
			return nil, err
		}
		absent = absent.with(err)
		for _, l := range layers {
			all = append(all, func() (Statement, error) { return v.statement(l, image, kind) })
		}
	}
	if v.attestor.Format != Layers {
		bundles, err := v.bundles(ctx, r, image)
		if err != nil && !isNone(err, v.attestor.Format) {
			return nil, err
		}
		absent = absent.with(err)
		for _, b := range bundles {
			all = append(all, func() (Statement, error) { return v.bundled(b, image, kind) })
		}
	}
	if len(all) == 0 && len(absent) > 0 {
		return nil, absent
	}
	return v.statements(all, image, kind)
}

// statements are those of a type among others.
func (v *Verifier) statements(all []func() (Statement, error), image Image, kind string) ([]Statement, error) {
	var out []Statement
	var others []string
	size := 0
	for _, read := range all {
		s, err := read()
		var other otherType
		switch {
		case errors.As(err, &other):
			others = append(others, string(other))
		case err != nil:
			return nil, fmt.Errorf("an attestation of %s: %w", image, err)
		default:
			if size += s.Size; size > maxAttested {
				return nil, tooMuchAttested(kind, image)
			}
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no attestation of the type %s of %s, but of %s", kind, image, few(others))
	}
	return out, nil
}

func tooMuchAttested(kind string, image Image) error {
	return fmt.Errorf("the attestations of the type %s of %s have more than %d bytes together", kind, image, maxAttested)
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
	data, done, err := l.read(maxAttestation)
	defer done()
	if err != nil {
		return Statement{}, err
	}
	var e dsse.Envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return Statement{}, fmt.Errorf("its envelope is no JSON: %w", err)
	}
	return v.enveloped(l, e, data, image, kind)
}

// enveloped is what an envelope attests; any type will do if kind is empty. data is the envelope
// as it was written, or nil of a bundle, which has it in a form of its own.
func (v *Verifier) enveloped(l layer, e dsse.Envelope, data []byte, image Image, kind string) (Statement, error) {
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
	if kind != "" && head.PredicateType != kind {
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
			Name        string            `json:"name"`
			Digest      map[string]string `json:"digest"`
			Annotations map[string]string `json:"annotations"`
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
			if err := v.bound(image, subject.Name); err != nil {
				return Statement{}, err
			}
			return Statement{Type: head.PredicateType, Content: whole, Size: len(content), annotations: subject.Annotations}, nil
		}
	}
	return Statement{}, errors.New("it is about another image")
}

// sealed is nil if one signature of an envelope is the attestor's.
func (v *Verifier) sealed(l layer, e dsse.Envelope, data, content []byte) error {
	if len(e.Signatures) > maxSignatures {
		return fmt.Errorf("it has more than %d signatures", maxSignatures)
	}
	encoded := dsse.PAE(e.PayloadType, content)
	why := []error{errors.New("it has no signature")}
	for i, s := range e.Signatures {
		if i == 0 {
			why = nil
		}
		made, err := base64.StdEncoding.DecodeString(s.Sig)
		if err == nil {
			err = v.signed(l, encoded, made, signed{content: ofEnvelope(e, s), whole: data})
		}
		if err == nil {
			return nil
		}
		why = append(why, err)
	}
	return joined(why)
}
