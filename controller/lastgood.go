package controller

import (
	"bytes"
	"compress/gzip"
	"io"

	"github.com/kvap/kvap/api/v1alpha1"
)

// What a PolicyTranslation holds at most: etcd takes some 1.5 MB, in which the text of
// a policy would be there a second time.
const (
	plainText = 32 << 10  // a text up to which it is kept as it is, for people to read
	maxPacked = 256 << 10 // of a text that is packed
	maxStatus = 768 << 10 // of a status
	maxText   = 8 << 20   // of a text that comes out of what is packed
)

// lastGood keeps what counts of a policy for the next process; without the text where
// that is too large.
func (s *policySource) lastGood() *v1alpha1.LastGood {
	if s.text == nil || s.policy == nil || s.policy.Invalid {
		return nil
	}
	if s.kept != nil {
		return s.kept
	}
	s.kept = &v1alpha1.LastGood{Digest: hashOf(string(s.text))}
	if len(s.text) <= plainText {
		s.kept.Policy = string(s.text)
	} else if packed := pack(s.text); len(packed) <= maxPacked {
		s.kept.Packed = packed
	}
	return s.kept
}

// isKept tells that the text is there, as it is or packed.
func isKept(l *v1alpha1.LastGood) bool { return l == nil || l.Policy != "" || len(l.Packed) > 0 }

func pack(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text) // into memory
	_ = w.Close()
	return out.Bytes()
}

// textOf is the text of a last good version; nil where it was not kept.
func textOf(l *v1alpha1.LastGood) ([]byte, error) {
	switch {
	case l == nil:
		return nil, nil
	case l.Policy != "":
		return []byte(l.Policy), nil
	case len(l.Packed) == 0:
		return nil, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(l.Packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxText))
}

// fitted is a status that the API server takes: of a policy with very many rules the
// first ones have a row.
func fitted(s v1alpha1.PolicyTranslationStatus) v1alpha1.PolicyTranslationStatus {
	if len(asJSON(s)) <= maxStatus {
		return s
	}
	rows := s.Rules
	s.Rules = nil
	for i := range rows {
		rows[i].Warnings = nil
	}
	left := maxStatus - len(asJSON(s))
	for i := range rows {
		if left -= len(asJSON(rows[i])) + 1; left < 0 {
			s.RulesLeftOut = int32(len(rows) - i)
			break
		}
		s.Rules = append(s.Rules, rows[i])
	}
	return s
}
