package policy_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/policy"
)

// scalars are texts that YAML 1.1, YAML 1.2 and people disagree about.
func scalars() []string {
	return []string{
		"", "~", "null", "Null", "NULL", "nil", "nULL",
		"yes", "Yes", "YES", "yEs", "y", "Y", "no", "No", "n", "N", "on", "On", "ON", "oN", "off", "Off", "OFF",
		"true", "True", "TRUE", "tRUE", "false", "False", "FALSE",
		"0", "-0", "+0", "1", "-1", "+1", "007", "0777", "08", "0o17", "0O17", "0x1F", "0X1f", "-0x10", "0b101", "-0b11", "0b12", "0b-1", "0b+1", "-0b-1", "+0b1",
		"1_000", "1__0", "_1", "1_", "0x_f", "9223372036854775807", "9223372036854775808", "18446744073709551615",
		"18446744073709551616", "-9223372036854775808", "-9223372036854775809", "123456789012345678901234567890",
		"1.0", "5.0", "-5.0", "-0.0", "1.5", "0.1", ".5", "5.", "+.5", "-.5", ".", "..", "-", "+", "1e3", "1E3", "1e+3", "1e-3", "1.5e3",
		"1e222", "-1e222", "1e39", "1e21", "1e20", "1e19", "9.2e18", "9.3e18", "-9.3e18", "1e400", ".5e1", "e3", "1e", "1e+", "._5", "0.1_5",
		".inf_", "1.2.3", "1:30", "190:20:30", "12:30:45.5", "2024-01-01", "2024-1-1", "2024-13-41", "2024-01-01T00:00:00Z",
		"2001-12-14 21:59:43.10", "1234-5", "12345-6", "=", "<<", "<=5", "10Mi", "1.10", "1.30", "0x", "0b", "0o", "0x1p-2",
		"infinity", "Infinity", "nan", "NaN", "+inf", "1,000", "١", "0.0", "00.5", "01.5", "1e05", "123e-2", "2e-1",
	}
}

// kubectl is the value that the API server decodes after kubectl sent it.
func kubectl(text []byte) (any, error) {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	var v any
	err = utiljson.Unmarshal(data, &v)
	return v, err
}

func TestScalarsAsKubectl(t *testing.T) {
	for _, s := range scalars() {
		for _, format := range []string{"key: %s\n", "%s: value\n", "- %s\n", "key: '%s'\n", "'%s': 1\n", "key: !!str %s\n"} {
			sameAsKubectl(t, fmt.Sprintf(format, s))
		}
	}
}

func TestStructuresAsKubectl(t *testing.T) {
	for _, doc := range []string{
		"a: &x {b: 1}\nc: *x\n",
		"a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n",
		"a: &x {b: 1, c: 2}\nd:\n  c: 3\n  <<: *x\n",
		"a: &x {b: 1}\nb: &y {b: 2, c: 2}\nd:\n  <<: [*x, *y]\n  e: 1\n",
		"d:\n  '<<': {a: 1}\n",
		"a: |\n  text\n   more\n\nb: >-\n  folded\n  text\nc: |+\n  kept\n\n",
		"a: \"tab\\t\\u00e9\\n\"\nb: 'it''s'\n",
		"a: !!int \"5\"\nb: !!float 5\nc: !!bool \"yes\"\nd: !!binary aGVsbG8=\ne: !custom 5\nf: !!float 0.5\n",
		"{\"a\": 5.0, \"b\": 1e3, \"c\": 9223372036854775808, \"d\": -0, \"e\": 0.25, \"f\": \"\\ud83d\\ude00\"}",
		"{\"a\": [], \"b\": {}, \"c\": null, \"d\": [null, true]}",
		"a:\n- b\n- - c\n  - d\n-  e: f\n   g: h\n",
		"? a\n: b\n",
		"*x : 1\n",
		"&k key: 1\nother: *k\n",
	} {
		sameAsKubectl(t, doc)
	}
}

func TestCorpusAsKubectl(t *testing.T) {
	corpusFiles(t, func(path string) bool { return strings.HasSuffix(path, "policy.yaml") }, func(path string, data []byte) {
		sameAsKubectl(t, string(data))
	})
}

// sameAsKubectl compares only what kubectl accepts; Parse may accept or refuse the
// rest.
func sameAsKubectl(t *testing.T, text string) {
	t.Helper()
	want, err := kubectl([]byte(text))
	if err != nil || want == nil {
		return
	}
	got, ok := policy.Read([]byte(text))
	if !ok {
		t.Errorf("%q is not read; kubectl sends %v", text, want)
		return
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a == b && math.Signbit(a) == math.Signbit(b) })); d != "" {
		t.Errorf("%q (-kubectl +kvap):\n%s", text, d)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range scalars() {
		f.Add([]byte("a: " + s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.ContainsAny(data, "\x00!&") || bytes.Contains(data, []byte("---")) || bytes.Contains(data, []byte("...")) {
			t.Skip() // tags, anchors and several documents are tried above
		}
		if _, ok := policy.Read(data); ok {
			sameAsKubectl(t, string(data))
		}
	})
}
