package images

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/test/testregistry"
)

// timed is the PEM of a key with headers.
func timed(key string, headers ...string) string {
	return strings.Replace(key, "KEY-----\n", "KEY-----\n"+strings.Join(headers, "\n")+"\n\n", 1)
}

func after(at time.Time) string  { return notAfter + ": " + at.UTC().Format(time.RFC3339) }
func before(at time.Time) string { return notBefore + ": " + at.UTC().Format(time.RFC3339) }

func TestKeysForATime(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	k, log, stamps := testregistry.NewSigner(t), testregistry.NewSigner(t), testregistry.NewRoot(t)
	authority := testregistry.NewStamper(t, stamps, time.Hour)
	now := time.Now().Truncate(time.Second)
	earlier := now.Add(-24 * time.Hour)
	signed := k.Signature(image, nil)
	logged := log.Logged(signed, testregistry.EntryOf(signed, k.PEM()), earlier)
	stamped := testregistry.Stamped(signed, authority.Stamp(testregistry.SignatureOf(signed), earlier, true))
	ended, begun := timed(k.PEM(), after(now.Add(-time.Hour))), timed(k.PEM(), before(now.Add(-time.Hour)))
	for _, tt := range []struct {
		name   string
		beside testregistry.Layer
		by     Attestor
		want   string
	}{
		{"in its time", signed, Attestor{Key: timed(k.PEM(), before(now.Add(-time.Hour)), after(now.Add(time.Hour)))}, ""},
		{"after its time", signed, Attestor{Key: ended}, "counts until"},
		{"before its time", signed, Attestor{Key: timed(k.PEM(), before(now.Add(time.Hour)))}, "counts from"},
		{"after its time, logged in it", logged, Attestor{Key: ended, Log: log.PEM()}, ""},
		{"in its time, logged before", logged, Attestor{Key: begun, Log: log.PEM()}, "counts from"},
		{"after its time, stamped in it", stamped, Attestor{Key: ended, Stamps: stamps.Certificate()}, ""},
		{"in its time, stamped before", stamped, Attestor{Key: begun, Stamps: stamps.Certificate()}, "counts from"},
		{"after the log's time", logged, Attestor{Key: k.PEM(), Log: timed(log.PEM(), after(earlier.Add(-time.Hour)))}, "its log is not trusted at"},
		{"with another header", signed, Attestor{Key: timed(k.PEM(), "Comment: x")}, ""},
	} {
		s.Attach(image, "sig", tt.beside)
		says(t, tt.name, verifier(t, tt.by).Signed(t.Context(), local(), pin(t, image)), tt.want)
	}
	for _, tt := range []struct{ name, key, want string }{
		{"no time", timed(k.PEM(), notAfter+": soon"), `header "Not-After" is "soon"`},
		{"other letters", timed(k.PEM(), "not-after: "+now.Format(time.RFC3339)), "write Not-Before or Not-After"},
		{"the wrong way round", timed(k.PEM(), before(now), after(now.Add(-time.Hour))), "ends before it begins"},
	} {
		_, err := NewVerifier(Attestor{Key: tt.key, IgnoreLog: true}, trusted(t), time.Now)
		says(t, tt.name, err, tt.want)
	}
	ends := now.Add(time.Hour)
	for by, want := range map[*Attestor]time.Time{
		{Key: timed(k.PEM(), after(ends)), IgnoreLog: true}:                               ends,
		{Key: timed(k.PEM(), after(ends))}:                                                {},
		{Key: timed(k.PEM(), after(ends)), IgnoreLog: true, Stamps: stamps.Certificate()}: {},
		{Key: k.PEM(), IgnoreLog: true}:                                                   {},
	} {
		v, err := NewVerifier(*by, trusted(t), time.Now)
		if err != nil || !v.Until().Equal(want) {
			t.Errorf("until %s: %s %v", want, v.Until(), err)
		}
	}
}

func TestRevoked(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	root := testregistry.NewAuthority(t, nil, time.Hour)
	between := testregistry.NewAuthority(t, root, time.Hour)
	leaf, other := testregistry.NewAuthority(t, between, time.Hour), testregistry.NewAuthority(t, between, time.Hour)
	s.Attach(image, "sig", leaf.Certified(image, between))
	next := time.Now().Add(time.Hour)
	for _, tt := range []struct{ name, lists, want string }{
		{"none", "", ""},
		{"another", between.Revokes(next, other), ""},
		{"it", between.Revokes(next, other, leaf), "was revoked at"},
		{"what is between", root.Revokes(next, between), "was revoked at"},
		{"a list that ended", between.Revokes(time.Now().Add(-time.Minute)), "put a newer one there"},
		{"a list by another authority", testregistry.NewAuthority(t, nil, time.Hour).Revokes(next, leaf), ""},
		{"no list", "-----BEGIN X509 CRL-----\neA==\n-----END X509 CRL-----\n", "a list of revoked certificates"},
	} {
		v, err := NewVerifier(Attestor{Chain: root.Certificate() + tt.lists, IgnoreLog: true}, trusted(t), time.Now)
		if err == nil {
			err = v.Signed(t.Context(), local(), pin(t, image))
		}
		says(t, tt.name, err, tt.want)
	}
	list, err := readRevoked(root.Revokes(next, leaf))
	if err != nil {
		t.Fatal(err)
	}
	list[0].RawIssuer = mustParse(t, between.Raw()).RawSubject // as if that had made it
	says(t, "not signed", revokedIn(list, []*x509.Certificate{mustParse(t, leaf.Raw()), mustParse(t, between.Raw())}, time.Now()), "is not signed by it")
}

func mustParse(t *testing.T, der []byte) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
