package images

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/rekor-tiles/v2/pkg/note"
	tiles "github.com/sigstore/rekor-tiles/v2/pkg/verify"
	"github.com/sigstore/rekor/pkg/generated/models"
	promises "github.com/sigstore/rekor/pkg/verify"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/transparency-dev/merkle/proof"
)

// A transparency log says of a signature that it knows of it, in an entry beside it. None is asked
// over the network. One of the first kind promises that it takes the entry in, and when; one of the
// second kind (Rekor v2) promises nothing, and signs a checkpoint of all that it has, which proves that
// the entry is among it, and no time.
//
// What an entry proves is sigstore-go's to say. It parses the entry first, and tries the key that
// is in it, which may be anybody's and cost seconds: so here that comes after the log's signature.

// errNoProof is the error of a signature without a promise of a log. None is asked for over
// the network.
var errNoProof = errors.New("there is no transparency log proof in the signature, and no log is asked for one; sign with the log, or set rekor.ignoreTlog: true")

// A knownLog is the log that has an entry.
type knownLog struct{ *root.TransparencyLog }

// loggedBy is the log that has one of some entries about a signature, and when it took that in:
// zero where it says no time.
func (v *Verifier) loggedBy(s signed, entries []*rekor.TransparencyLogEntry) (log knownLog, at time.Time, err error) {
	err = errNoProof
	for _, e := range entries {
		logs := v.logsOf(e)
		log.TransparencyLog = logs[hex.EncodeToString(e.GetLogId().GetKeyId())]
		if log.TransparencyLog == nil {
			err = errors.New("its log proof is of another log")
			continue
		}
		if at, err = log.has(e); err != nil {
			continue
		}
		if err = s.isIn(e, logs); err == nil {
			return log, at, nil
		}
	}
	return log, time.Time{}, err
}

// isIn is nil if an entry is of the signature: of what is signed, and by whom.
func (s signed) isIn(e *rekor.TransparencyLogEntry, logs map[string]*root.TransparencyLog) error {
	kind := kindOf(e.GetCanonicalizedBody())
	if old := oldKinds()[kind.GetKind()+" "+kind.GetVersion()]; old != nil {
		return old(s, e.GetCanonicalizedBody())
	}
	if err := affordableKeys(e.GetCanonicalizedBody()); err != nil { // a log takes in what anybody signs
		return err
	}
	s.entry = e
	_, err := verify.VerifyTlogEntry(&s, &material{logs: logs, key: s.by.key}, 1, false)
	var other proof.RootMismatchError
	switch {
	case errors.As(err, &other): // in a log that has the entry
		return errors.New("its log entry is of another payload, or of another signature, or of another key")
	case err != nil:
		return inOneLine("its log entry", err)
	}
	return nil
}

// affordableKeys refuses an entry that has a key somewhere which is not affordable, as PEM or not.
func affordableKeys(body []byte) error {
	for read := json.NewDecoder(bytes.NewReader(body)); ; {
		token, err := read.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("its log entry is no JSON: %w", err)
		}
		if text, ok := token.(string); ok {
			if err := affordableIn(text); err != nil {
				return err
			}
		}
	}
}

// affordableIn refuses a text in base64 that has such a key or certificate in it.
func affordableIn(text string) error {
	text = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	ders := [][]byte{data}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		ders = append(ders, block.Bytes)
	}
	for _, der := range ders {
		var key crypto.PublicKey
		if c, err := x509.ParseCertificate(der); err == nil {
			key = c.PublicKey
		} else if k, err := x509.ParsePKCS1PublicKey(der); err == nil {
			key = k
		} else if key, err = x509.ParsePKIXPublicKey(der); err != nil {
			continue
		}
		if err := affordable(key); err != nil {
			return err
		}
	}
	return nil
}

// inOneLine is an error of a library, whose text may have several lines, and much of an entry in it.
func inOneLine(what string, err error) error {
	const most = 300
	text := []rune(strings.Join(strings.Fields(err.Error()), " "))
	if len(text) > most {
		text = append(text[:most], '…')
	}
	return fmt.Errorf("%s: %s", what, string(text))
}

// logsOf are the logs that may have an entry, by their names. A log of which a policy has only the
// key has the name that the entry calls it by: of that name or another, it signs with its key.
func (v *Verifier) logsOf(e *rekor.TransparencyLogEntry) map[string]*root.TransparencyLog {
	if v.log == nil {
		return v.logs
	}
	named := *v.log
	origin, _, _ := strings.Cut(e.GetInclusionProof().GetCheckpoint().GetEnvelope(), "\n")
	named.BaseURL = "https://" + origin
	out := map[string]*root.TransparencyLog{hex.EncodeToString(named.ID): &named}
	if _, id, err := note.KeyHash(origin, named.PublicKey); err == nil {
		out[hex.EncodeToString(id)] = &named
	}
	return out
}

// has is nil if the log signed that it has an entry, and when it took it in, if it says so.
func (l knownLog) has(e *rekor.TransparencyLogEntry) (at time.Time, err error) {
	if promise := e.GetInclusionPromise().GetSignedEntryTimestamp(); len(promise) > 0 {
		at = time.Unix(e.GetIntegratedTime(), 0)
		if err := l.promised(e, promise); err != nil {
			return at, err
		}
		return at, l.counts(at)
	}
	if e.GetInclusionProof().GetCheckpoint().GetEnvelope() == "" {
		return at, errNoProof
	}
	name, err := url.Parse(l.BaseURL)
	if err != nil {
		return at, err
	}
	key, err := signature.LoadVerifier(l.PublicKey, l.SignatureHashFunc)
	if err != nil {
		return at, err
	}
	by, err := note.NewNoteVerifier(name.Hostname(), key)
	if err != nil {
		return at, fmt.Errorf("its log: %w", err)
	}
	const shown = "its log proof does not show that the log has its entry"
	err = tiles.VerifyLogEntry(e, by)
	var other proof.RootMismatchError
	switch {
	case errors.As(err, &other): // which has a text of some lines
		return at, errors.New(shown)
	case err != nil:
		return at, inOneLine(shown, err)
	}
	return at, nil
}

// promised is nil if the log signed an entry.
func (l knownLog) promised(e *rekor.TransparencyLogEntry, promise []byte) error {
	id := hex.EncodeToString(e.GetLogId().GetKeyId())
	by, err := signature.LoadVerifier(l.PublicKey, crypto.SHA256)
	if err == nil {
		err = promises.VerifySignedEntryTimestamp(context.Background(), &models.LogEntryAnon{
			Body: base64.StdEncoding.EncodeToString(e.GetCanonicalizedBody()), IntegratedTime: &e.IntegratedTime, LogIndex: &e.LogIndex, LogID: &id,
			Verification: &models.LogEntryAnonVerification{SignedEntryTimestamp: promise},
		}, by)
	}
	if err != nil {
		return fmt.Errorf("its log proof is not signed by the log: %w", err)
	}
	return nil
}

// counts is nil if the log is trusted at a time.
func (l knownLog) counts(at time.Time) error {
	if (period{l.ValidityPeriodStart, l.ValidityPeriodEnd}).has(at) {
		return nil
	}
	return fmt.Errorf("its log is not trusted at %s", at.UTC().Format(time.RFC3339))
}

// readLog is the log of a key, for its time.
func readLog(text string) (*root.TransparencyLog, error) {
	key, counts, err := readTimedKey(text)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	if counts.Start.IsZero() {
		counts.Start = time.Unix(0, 0) // none at all would be no time
	}
	return &root.TransparencyLog{
		ID: sum(der), PublicKey: key, HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256,
		ValidityPeriodStart: counts.Start, ValidityPeriodEnd: counts.End,
	}, nil
}

// entryBeside is the entry of a log in the annotation of a layer.
//
//	{"SignedEntryTimestamp": "MEU…", "Payload": {"body": "eyJ…", "integratedTime": 1681839912, "logIndex": 7, "logID": "c0d2…"}}
func entryBeside(text string) (*rekor.TransparencyLogEntry, error) {
	var read struct {
		Promise []byte `json:"SignedEntryTimestamp"`
		Payload struct {
			Body  []byte `json:"body"`
			Time  int64  `json:"integratedTime"`
			Index int64  `json:"logIndex"`
			Log   string `json:"logID"`
		} `json:"Payload"`
	}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return nil, fmt.Errorf("its log proof is no JSON: %w", err)
	}
	id, err := hex.DecodeString(read.Payload.Log)
	if err != nil {
		return nil, fmt.Errorf("the name of its log: %w", err)
	}
	return &rekor.TransparencyLogEntry{
		LogIndex: read.Payload.Index, LogId: &common.LogId{KeyId: id}, IntegratedTime: read.Payload.Time, CanonicalizedBody: read.Payload.Body,
		InclusionPromise: &rekor.InclusionPromise{SignedEntryTimestamp: read.Promise}, KindVersion: kindOf(read.Payload.Body),
	}, nil
}

// kindOf is what an entry says that it is.
func kindOf(body []byte) *rekor.KindVersion {
	var read struct {
		Version string `json:"apiVersion"`
		Kind    string `json:"kind"`
	}
	_ = json.Unmarshal(body, &read) // what is none has no kind
	return &rekor.KindVersion{Kind: read.Kind, Version: read.Version}
}
