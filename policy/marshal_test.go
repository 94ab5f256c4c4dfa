package policy_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kvap/kvap/policy"
)

func TestMarshal(t *testing.T) {
	const text = `name: a
list:
- 1
- -0.5
- x: true
  "y": null
- - nested
  - []
- {}
"on": 'yes'
number: "5"
time: '12:30'
date: '2024-01-01'
text: |
  several
    lines

  of text
short: |-
  no
  end
quoted: "tab\t, \"quote\" and \u2028"
anchors:
  =(a): '*'
  ^(b): '?*'
  <(c): '!x'
  a key: 'a: b #c'
`
	const want = `name: a
list:
- 1
- -0.5
- x: true
  'y': null
- - nested
  - []
- {}
'on': 'yes'
number: '5'
time: '12:30'
date: '2024-01-01'
text: |
  several
    lines

  of text
short: |-
  no
  end
quoted: "tab\t, \"quote\" and \u2028"
anchors:
  '=(a)': '*'
  ^(b): '?*'
  '<(c)': '!x'
  a key: 'a: b #c'
`
	if d := cmp.Diff(want, string(policy.Marshal(policy.ReadNode([]byte(text))))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// roundTrip holds the law of Marshal.
func roundTrip(t *testing.T, n *policy.Node) {
	t.Helper()
	text := policy.Marshal(n)
	again := policy.ReadNode(text)
	if again == nil {
		again = &policy.Node{}
	}
	// Written anew it has the same text, so the order of keys is the same too.
	if !reflect.DeepEqual(n.Value(), again.Value()) || !bytes.Equal(text, policy.Marshal(again)) {
		t.Errorf("written and read again it is not the same:\n%s\n%s", text, cmp.Diff(n.Value(), again.Value()))
	}
	var other any
	if err := yamlv3.Unmarshal(text, &other); err != nil {
		t.Errorf("another reader: %v\n%s", err, text)
	}
}

func TestMarshalCorpus(t *testing.T) {
	corpusFiles(t, func(path string) bool { return filepath.Base(path) == "policy.yaml" }, func(path string, data []byte) {
		roundTrip(t, policy.ReadNode(data))
	})
}

func TestMarshalScalars(t *testing.T) {
	texts := append(scalars(), "a\n", "\n", " a\nb", "a \nb", "a\n\n", "a\nb", "---", "--- a", "- a", "-", "-a", "? a", ": a", "a:", "a: b", "a #b", "#a",
		"a\tb", "\ta", "a\\b", "'", "it's \"x\"", "\u0085", "\u2028", "\x7f", "é", "😀", "\ufeff", "\ufffe", "\ufffd", "@a", "`a", "%a", "{a", "}a", "[a", "]", ",", "!a", "&a", "*a", "|", ">", "=", "<<")
	for _, s := range texts {
		str := &policy.Node{Kind: policy.String, Str: s}
		roundTrip(t, str)
		roundTrip(t, &policy.Node{Kind: policy.List, Items: []*policy.Node{str, str}})
		roundTrip(t, &policy.Node{Kind: policy.Map, Fields: []policy.Field{{Key: s, Value: &policy.Node{Kind: policy.List, Items: []*policy.Node{str}}}, {Key: s + "x", Value: str}}})
	}
}

func FuzzMarshal(f *testing.F) {
	for _, s := range scalars() {
		f.Add(s, "k", 1.5)
	}
	f.Add("a\n b\n", "x\ny", 1e300)
	f.Fuzz(func(t *testing.T, s, key string, number float64) {
		s, key = strings.ToValidUTF8(s, "?"), strings.ToValidUTF8(key, "?")
		n := &policy.Node{Kind: policy.Map, Fields: []policy.Field{
			{Key: key, Value: &policy.Node{Kind: policy.List, Items: []*policy.Node{{Kind: policy.String, Str: s}}}},
			{Key: key + "2", Value: &policy.Node{Kind: policy.Map, Fields: []policy.Field{{Key: s, Value: &policy.Node{Kind: policy.String, Str: key}}}}},
		}}
		roundTrip(t, n)
		if number != number || number-number != 0 || number == float64(int64(number)) {
			return
		}
		roundTrip(t, &policy.Node{Kind: policy.Float, Float: number})
	})
}

// Written with some of its rules, a policy has exactly these: whatever is chosen.
func TestOnly(t *testing.T) {
	cases := []struct {
		name  string
		text  string
		keep  []string
		want  []string // rules in the text
		after []string // rules after expansion
	}{
		{"whole rules", rules("", "name: a, "+podMatch+", "+check, "name: b, "+podMatch+", "+check),
			[]string{"b", "autogen-b", "autogen-cronjob-b"}, []string{"b"}, []string{"b", "autogen-b", "autogen-cronjob-b"}},
		{"a part", rules("", "name: a, "+podMatch+", "+check),
			[]string{"autogen-cronjob-a"}, []string{"autogen-cronjob-a"}, []string{"autogen-cronjob-a"}},
		{"without what kept it from expansion", rules("", "name: a, "+podMatch+", "+check, "name: b, match: {any: [{resources: {kinds: [Service], name: x}}]}, "+check),
			[]string{"a"}, []string{"a"}, []string{"a"}},
		{"without what made it eligible", rules("", "name: a, match: {any: [{resources: {kinds: [v1/Pod]}}]}, "+check, "name: b, match: {any: [{resources: {kinds: [Job]}}]}, "+check),
			[]string{"a", "autogen-a", "autogen-cronjob-a"}, []string{"a", "autogen-a", "autogen-cronjob-a"}, []string{"a", "autogen-a", "autogen-cronjob-a"}},
		{"with an annotation", rules("Job", "name: a, "+podMatch+", "+check),
			[]string{"a", "autogen-a"}, []string{"a"}, []string{"a", "autogen-a"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := parseGood(t, c.text)
			doc := p.Only(func(r *policy.Rule) bool { return contains(c.keep, r.Name) })
			again := parseGood(t, string(policy.Marshal(doc)))
			if d := cmp.Diff(c.want, names(again.Rules)); d != "" {
				t.Errorf("written (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.after, names(policy.Expand(again))); d != "" {
				t.Errorf("expanded (-want +got):\n%s", d)
			}
		})
	}
	if p := parseGood(t, small); p.Only(func(*policy.Rule) bool { return false }) != nil {
		t.Error("a policy without rules was written")
	}
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

// A part of a generated rule that stands by itself must not reach other kinds.
func TestOnlyStaysWithinControllers(t *testing.T) {
	p := parseGood(t, rules("", "name: a, match: {any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Service]}}, {resources: {kinds: [Job]}}]}, "+check))
	doc := p.Only(func(r *policy.Rule) bool { return r.Name == "autogen-a" })
	again := parseGood(t, string(policy.Marshal(doc)))
	any := again.Rules[0].Match.Any
	if len(any) != 2 || any[1].Kinds[0].Value != "Job" {
		t.Errorf("%d filters: %s", len(any), policy.Marshal(doc))
	}
}

func TestOnlyDropsWhatTheServerWrote(t *testing.T) {
	text := strings.Replace(small, "metadata: {name: small}", `metadata: {name: small, uid: u, resourceVersion: "1", labels: {a: b},
  annotations: {c: d, kubectl.kubernetes.io/last-applied-configuration: "{}"}}`, 1) + "status: {ready: true}\n"
	doc := parseGood(t, text).Only(func(*policy.Rule) bool { return true })
	const want = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: small
  labels:
    a: b
  annotations:
    c: d
`
	if got := string(policy.Marshal(doc)); !strings.HasPrefix(got, want+"spec:") || strings.Contains(got, "status") {
		t.Errorf("%s", got)
	}
}

// Each single rule of each public policy can be written alone.
func TestOnlyCorpus(t *testing.T) {
	corpusFiles(t, func(path string) bool { return filepath.Base(path) == "policy.yaml" }, func(path string, data []byte) {
		f, _ := policy.Parse(path, data)
		p := f.Policies[0]
		for _, rule := range policy.Expand(p) {
			doc := p.Only(func(r *policy.Rule) bool { return r == rule || r.Name == rule.Name })
			again, ds := policy.Parse(path, policy.Marshal(doc))
			if got := fmt.Sprint(names(policy.Expand(again.Policies[0]))); ds.HasErrors() || got != "["+rule.Name+"]" {
				t.Errorf("%s: %s alone is %s %v", path, rule.Name, got, ds)
			}
		}
	})
}
