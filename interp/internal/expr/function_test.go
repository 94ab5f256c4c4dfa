package expr

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// functionRows call every function, on the data of TestFunctions.
func functionRows() []row {
	return []row{
		{"nope(n)", "!unknown function"},
		{"abs()", "!arity"},
		{"abs(n, n)", "!arity"},
		{"abs(`null`)", "!invalid type of argument 1 of abs(): expected number, got null"},
		{"abs(&n)", "!got an &expression"},
		{"sort_by(l, n)", "!expected &expression"},
		{"map(&x, items(o, 'k', 'v'))", "!items(...)[*]"},

		{"abs(`-1.5`)", "1.5"},
		{"avg(`[1, 2, 6]`)", "3"},
		{"avg(`[]`) == avg(`[]`)", "false"},
		{"avg(`[1, \"2\"]`)", "!expected list of numbers"},
		{"ceil(`1.2`)", "2"},
		{"contains('abc', 'bc')", "true"},
		{"contains('abc', `1`)", "false"},
		{"contains(`[1, \"a\"]`, 'a')", "true"},
		{"contains(`[1, {}]`, `1`)", "true"},
		{"contains(`[{}, 1]`, `1`)", "true"},
		{"contains(`[{}]`, `{}`)", "!cannot be compared"},
		{"contains(`[[1]]`, `[1]`)", "!cannot be compared"},
		{"contains(`[[1]]`, `{}`)", "false"},
		{"contains(`[null]`, z)", "true"},
		{"contains(n, `3`)", "!invalid type"},
		{"contains(items(o, 'k', 'v'), 'x')", "!items(...)[*]"},
		{"ends_with('abc', 'bc')", "true"},
		{"floor(`-1.2`)", "-2"},
		{"join('-', `[\"a\", \"b\"]`)", `"a-b"`},
		{"join('-', `[]`)", `""`},
		{"join('-', `[1]`)", "!list of strings"},
		{"keys(o)", `["a","b"]`},
		{"length('äöü')", "3"},
		{"length(o)", "2"},
		{"length(l)", "2"},
		{"length(items(o, 'k', 'v'))", "2"},
		{"map(&x, l)", "[2,1]"},
		{"map(&@, `[]`)", "[]"},
		{"max(`[1, 3, 2]`)", "3"},
		{"max(`[\"a\", \"c\"]`)", `"c"`},
		{"max(`[]`)", "null"},
		{"max_by(l, &x)", `{"x":2}`},
		{"max_by(`[]`, &x)", "null"},
		{"max_by(`[{}]`, &x)", "{}"},
		{"max_by(`[{\"x\": 1}, {\"x\": \"1\"}]`, &x)", "!invalid type"},
		{"max_by(`[{\"x\": 1}, {}]`, &x)", "!Unknown key"},
		{"merge(o, `{\"b\": 3, \"c\": 4}`)", `{"a":1,"b":3,"c":4}`},
		{"merge(o, z)", "!invalid type"},
		{"min(`[2, 1]`)", "1"},
		{"min(`[]`)", "null"},
		{"min_by(l, &x)", `{"x":1}`},
		{"not_null(z, `null`, `0`)", "0"},
		{"not_null(z)", "null"},
		{"reverse('äb')", `"bä"`},
		{"reverse(`[1, 2]`)", "[2,1]"},
		{"sort(`[3, 1, 2]`)", "[1,2,3]"},
		{"sort(`[\"b\", \"a\"]`)", `["a","b"]`},
		{"sort(`[\"b\", 1]`)", "!invalid type"},
		{"sort_by(l, &x)", `[{"x":1},{"x":2}]`},
		{"sort_by(`[]`, &x)", "[]"},
		{"sort_by(l, &@)", "!all be numbers"},
		{"starts_with('abc', 'ab')", "true"},
		{"to_array(`1`)", "[1]"},
		{"to_array(l)", `[{"x":2},{"x":1}]`},
		{"to_array(items(o, 'k', 'v'))", `[[{"k":"a","v":1},{"k":"b","v":2}]]`},
		{"to_number('1.5')", "1.5"},
		{"to_number('x')", "null"},
		{"to_number(l)", "null"},
		{"to_string(l)", `"[{\"x\":2},{\"x\":1}]"`},
		{"to_string('a')", `"a"`},
		{"to_string(z)", `"null"`},
		{"to_string(avg(`[]`))", "!NaN"},
		{"type(z)", `"null"`},
		{"type(l)", `"array"`},
		{"type(o)", `"object"`},
		{"type('')", `"string"`},
		{"type(`true`)", `"boolean"`},
		{"values(o)", "[1,2]"},

		{"compare('a', 'b')", "-1"},
		{"compare('b', 'a')", "1"},
		{"equal_fold('Straße', 'STRAßE')", "true"},
		{"replace('aaa', 'a', 'b', `2`)", `"bba"`},
		{"replace('aaa', 'a', 'b', `-1`)", `"bbb"`},
		{"replace_all('aXa', 'a', 'b')", `"bXb"`},
		{"to_upper('ab')", `"AB"`},
		{"to_lower('AB')", `"ab"`},
		{"trim('--a-', '-')", `"a"`},
		{"trim_prefix('v1', 'v')", `"1"`},
		{"split('a,b', ',')", `["a","b"]`},
		{"regex_replace_all('(a+)b', 'aab', '$1-')", `"aa-"`},
		{"regex_replace_all('[0-9]', `123`, 'x')", `"xxx"`},
		{"regex_replace_all('', 'ab', '-')", `"-a-b-"`},
		{"regex_replace_all('(', 'a', '')", "!missing closing"},
		{"regex_replace_all_literal('(a+)b', 'aab', '$1')", `"$1"`},
		{"regex_match('b.', 'abc')", "true"},
		{"regex_match('^[0-9]+$', `12`)", "true"},
		{"regex_match('(', '')", "!missing closing"},
		{"regex_match('a', `true`)", "!invalid type"},
		{"pattern_match('ab*', 'abc')", "true"},
		{"pattern_match('1?', `12`)", "true"},
		{"label_match(`{\"a\": \"1\"}`, `{\"a\": \"1\", \"b\": \"2\"}`)", "true"},
		{"label_match(`{\"a\": \"1\"}`, `{\"a\": \"2\"}`)", "false"},
		{"label_match(`{\"a\": \"1\"}`, `{}`)", "false"},
		{"label_match(`{}`, `{}`)", "true"},
		{"to_boolean('TRUE')", "true"},
		{"to_boolean('false')", "false"},
		{"to_boolean('yes')", "!neither true nor false"},

		{"add(`1`, `2`)", "3"},
		{"add('1Gi', '512Mi')", `"1536Mi"`},
		{"add('1m30s', '30s')", `"2m0s"`},
		{"add('5m', '5m')", `"10m"`}, // quantities
		{"add('1Gi', `1`)", "!types mismatch"},
		{"add('x', 'y')", "!neither a quantity nor a duration"},
		{"add(l, `1`)", "!must be a number"},
		{"subtract('10s', '1s')", `"9s"`},
		{"subtract('2', '500m')", `"1500m"`},
		{"subtract(`1`, `0.5`)", "0.5"},
		{"multiply(`2`, `3`)", "6"},
		{"multiply('1Gi', `2`)", `"2Gi"`},
		{"multiply(`0.5`, '100m')", `"50m"`},
		{"multiply('1h', `1.5`)", `"1h30m0s"`},
		{"multiply('1Gi', '1Gi')", "!types mismatch"},
		{"multiply('9999h', `999999`)", "!too long"},
		{"divide('1Gi', '512Mi')", "2"},
		{"divide('10', `4`)", `"2"`},
		{"divide('1h', `4`)", `"15m0s"`},
		{"divide('1h', '30s')", "120"},
		{"divide(`1`, `4`)", "0.25"},
		{"divide(`1`, `0`)", "!zero divisor"},
		{"divide('1Gi', '0')", "!zero divisor"},
		{"divide('1h', '0s')", "!zero divisor"},
		{"divide('1h', `0`)", "!zero divisor"},
		{"divide(`1`, '1Gi')", "!types mismatch"},
		{"modulo(`7`, `4`)", "3"},
		{"modulo(`7.5`, `4`)", "!non-integer"},
		{"modulo(`7`, `0`)", "!zero divisor"},
		{"modulo('7', '4')", `"3"`},
		{"modulo('1500m', '1')", "!non-integer"},
		{"modulo('1h', '25m')", "!types mismatch"}, // 25m is a quantity
		{"modulo('1h', '1500s')", `"10m0s"`},
		{"sum(`[1, 2, 3]`)", "6"},
		{"sum(`[\"1Gi\", \"1Gi\"]`)", `"2Gi"`},
		{"sum(`[\"x\"]`)", `"x"`},
		{"sum(`[]`)", "!at least one"},
		{"round(`2.345`, `2`)", "2.35"},
		{"round(`2.5`, `0`)", "3"},
		{"round(`2.5`, `-1`)", "!not negative"},
		{"round(`2.5`, `0.5`)", "!whole"},
		{"add('1e999999999', '1')", "!neither a quantity"},

		{"base64_encode('hi')", `"aGk="`},
		{"base64_decode('aGk=')", `"hi"`},
		{"base64_decode('aGk')", "!illegal base64"},
		{"sha256('')", `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`},
		{"sha1('')", `"da39a3ee5e6b4b0d3255bfef95601890afd80709"`},
		{"md5('')", `"d41d8cd98f00b204e9800998ecf8427e"`},

		{"time_since('', '2024-01-01T00:00:00Z', '2024-01-01T01:00:00Z')", `"1h0m0s"`},
		{"time_since('2006-01-02', '2024-01-01', '2024-01-02')", `"24h0m0s"`},
		{"time_since('', '2024-02-03T03:05:00Z', '')", `"6s"`},
		{"time_since('', 'x', '')", "!cannot parse"},
		{"time_since('', '2024-01-01T00:00:00Z', 'x')", "!cannot parse"},
		{"time_now()", `"2024-02-03T04:05:06+01:00"`},
		{"time_now('any', `1`)", `"2024-02-03T04:05:06+01:00"`},
		{"time_now_utc()", `"2024-02-03T03:05:06Z"`},
		{"time_add('2024-01-01T00:00:00+02:00', '90m')", `"2024-01-01T01:30:00+02:00"`},
		{"time_add('2024-01-01T00:00:00Z', 'x')", "!invalid duration"},
		{"time_parse('2006-01-02', '2024-01-05')", `"2024-01-05T00:00:00Z"`},
		{"time_parse('1', '1700000000')", `"2023-11-14T22:13:20Z"`},
		{"time_parse('1', 'x')", "!invalid syntax"},
		{"time_parse('2006-01', 'x')", "!cannot parse"},
		{"time_to_cron('2024-02-03T04:05:06Z')", `"5 4 3 2 6"`},
		{"time_utc('2024-01-01T00:00:00+02:00')", `"2023-12-31T22:00:00Z"`},
		{"time_truncate('2024-01-01T01:23:45Z', '1h')", `"2024-01-01T01:00:00Z"`},
		{"time_diff('2024-01-01T00:00:00Z', '2024-01-01T00:00:30Z')", `"30s"`},
		{"time_before('2024-01-01T00:00:00Z', '2024-01-02T00:00:00Z')", "true"},
		{"time_after('2024-01-01T00:00:00Z', '2024-01-02T00:00:00Z')", "false"},
		{"time_between('2024-01-02T00:00:00Z', '2024-01-01T00:00:00Z', '2024-01-03T00:00:00Z')", "true"},
		{"time_between('2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z', '2024-01-03T00:00:00Z')", "false"},

		{"path_canonicalize('a//b/../c/')", `"a/c"`},
		{"path_canonicalize('')", `""`},
		{"truncate('äbc', `2`)", `"äb"`},
		{"truncate('abc', `-1`)", `""`},
		{"truncate('abc', `9`)", `"abc"`},
		{"semver_compare('1.2.3', '>=1.2.0 <2.0.0')", "true"},
		{"semver_compare('v1', '<1.0.0')", "true"},
		{"semver_compare('1.2.3', 'x')", "!"},
		{"parse_json('{\"a\": [1]}')", `{"a":[1]}`},
		{"parse_json('{')", "!unexpected end"},
		{"parse_yaml('a: [1, \"x\"]')", `{"a":[1,"x"]}`},
		{"parse_yaml('a: [')", "!"},
		{"lookup(o, 'a')", "1"},
		{"lookup(o, 'z')", "null"},
		{"lookup(o, `1`)", "!must be a string"},
		{"lookup(l, `1`)", `{"x":1}`},
		{"lookup(l, `9`)", "null"},
		{"lookup(l, `-1`)", "null"},
		{"lookup(l, `0.5`)", "!whole number"},
		{"lookup(l, 'a')", "!whole number"},
		{"items(o, 'k', 'v')", `[{"k":"a","v":1},{"k":"b","v":2}]`},
		{"items(`[\"x\"]`, 'k', 'v')", `[{"k":0,"v":"x"}]`},
		{"items(o, 'k', 'v')[*].k", `["a","b"]`},
		{"items(o, 'k', 'v') | [1].v", "2"},
		{"{i: items(o, 'k', 'v')[?v == `1`]}", `{"i":[{"k":"a","v":1}]}`},
		{"object_from_lists(`[\"a\", 1, true]`, `[1]`)", `{"1":null,"a":1,"true":null}`},
		{"object_from_lists(`[null]`, `[1]`)", "!no text"},
		{"random('[a-c]{3}x+')", `"bbbxxxxxx"`},
		{"random('')", "!empty"},
		{"random('(')", "!missing closing"},
		{"x509_decode('no')", "!no PEM"},
		{"image_normalize('nginx')", `"docker.io/nginx:latest"`},
		{"image_normalize('localhost/a/b')", `"docker.io/localhost/a/b:latest"`},
		{"image_normalize('a b')", "!bad image"},
		{"is_external_url('http://10.0.0.1:80/x')", "false"},
		{"is_external_url('http://127.0.0.1')", "false"},
		{"is_external_url('https://[::1]/')", "false"},
		{"is_external_url('https://8.8.8.8/')", "true"},
		{"is_external_url('https://inside/')", "false"},
		{"is_external_url('https://outside/')", "true"},
		{"is_external_url('https://nowhere/')", "!no such host"},
	}
}

func TestFunctions(t *testing.T) {
	checkRows(t, parsed(t, `{"n":3,"l":[{"x":2},{"x":1}],"o":{"b":2,"a":1}}`), functionRows())
}

// TestFunctionTable holds the table of functions and those that exist together.
func TestFunctionTable(t *testing.T) {
	rows := functionRows()
	for _, f := range jmespath.Functions() {
		if functionOf(f) == nil {
			t.Errorf("%s() is not there", f)
		}
		called := false
		for _, r := range rows {
			called = called || strings.Contains(r.expr, f.String()+"(")
		}
		if !called {
			t.Errorf("%s() is in no row", f)
		}
	}
	if functionOf(jmespath.FuncUnknown) != nil {
		t.Error("an unknown function is there")
	}
}

func TestFunctionsNeedTheOutside(t *testing.T) {
	for _, expr := range []string{"time_now()", "time_since('', '2024-01-01T00:00:00Z', '')", "random('a')", "is_external_url('http://x')"} {
		e, bad := jmespath.Parse(expr, diag.Pos{})
		if bad != nil {
			t.Fatal(bad)
		}
		if v, err := Eval(t.Context(), e, Value{}, Surroundings{}); err == nil {
			t.Errorf("%s: %v", expr, v)
		}
	}
}

func TestReplacementsAreBounded(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	data := map[string]any{"s": long, "l": make([]any, 100)}
	for i := range 100 {
		data["l"].([]any)[i] = long
	}
	checkRows(t, data, []row{
		{"replace_all(s, 'a', s)", "!longer than"},
		{"replace(s, 'a', s, `100`)", "!longer than"},
		{"regex_replace_all('a', s, s)", "!longer than"},
		{"regex_replace_all_literal('a', s, s)", "!longer than"},
		{"join(s, l)", "!longer than"},
	})
}

func TestDecodeCertificate(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7),
		Subject:      pkix.Name{CommonName: "example"},
		NotAfter:     time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: template.Subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.CreateCertificate(rand.Reader, template, template, &curve.PublicKey, curve)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	data := map[string]any{
		"cert": block("CERTIFICATE", der), "request": block("CERTIFICATE REQUEST", request),
		"curve": block("CERTIFICATE", other), "key": block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		"broken": block("CERTIFICATE", []byte{1}), "n": key.N.String(),
	}
	checkRows(t, data, []row{
		{"x509_decode(cert).Subject.CommonName", `"example"`},
		{"x509_decode(cert).SerialNumber", "7"},
		{"x509_decode(cert).NotAfter", `"2030-01-02T03:04:05Z"`},
		{"x509_decode(cert).PublicKey.N == n", "true"},
		{"x509_decode(cert).PublicKey.E", "65537"},
		{"x509_decode(request).Subject.CommonName", `"example"`},
		{"x509_decode(request).PublicKey.N == n", "true"},
		{"x509_decode(curve)", "!no RSA key"},
		{"x509_decode(key)", "!neither a certificate"},
		{"x509_decode(broken)", "!"},
	})
}
