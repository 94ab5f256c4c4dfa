package verify

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kvap/kvap/policy"
)

// hints are what the source of a policy talks about: the names of fields that it
// may look at, and the values that it may compare with, with their neighbours.
type hints struct {
	words      map[string]bool
	texts      []string
	labels     []string // texts that are valid values of a label
	names      []string // texts that are valid names of objects
	keys       []string // texts that are valid keys of labels and annotations
	quantities []string
	durations  []string
	ints       []int64
	floats     []float64
}

func readHints(sources ...*policy.Node) *hints {
	h := &hints{words: map[string]bool{}}
	for _, n := range sources {
		h.node(n)
	}
	for _, s := range []string{"", "a", "abc", "0", "1", "5", "nginx:latest", "1Gi", "500m", "1h", "60s", "true", "null", "*", "1.10", "default"} {
		h.text(s)
	}
	for _, n := range []int64{0, 1, -1, 5, 100, 1000000} {
		h.number(n)
	}
	h.floats = add(h.floats, 0.5)
	for _, s := range []string{"app", "tier", "app.kubernetes.io/name"} {
		h.keys = add(h.keys, s)
	}
	h.names = add(h.names, "web-1")
	h.labels = add(h.labels, "web")
	return h
}

func add[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) || len(list) >= 250 {
		return list
	}
	return append(list, v)
}

func (h *hints) node(n *policy.Node) {
	if n == nil {
		return
	}
	switch n.Kind {
	case policy.String:
		h.source(n.Str)
	case policy.Int:
		h.number(n.Int)
	case policy.Float:
		h.floats = add(h.floats, n.Float)
	}
	for _, item := range n.Items {
		h.node(item)
	}
	for _, f := range n.Fields {
		h.key(f.Key)
		h.node(f.Value)
	}
}

var (
	anchored   = regexp.MustCompile(`^[+<=X^]?\((.+)\)$`)
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	quoted     = regexp.MustCompile(`"([^"]+)"|'([^']*)'` + "|`([^`]*)`")
	ranged     = regexp.MustCompile(`^(.*[0-9a-zA-Z])!?-(.+)$`)
	labelValue = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`)
	labelKey   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
)

func (h *hints) key(s string) {
	if m := anchored.FindStringSubmatch(strings.TrimSpace(s)); m != nil {
		s = m[1]
	}
	for _, s := range instances(s) {
		h.words[s] = true
		if labelKey.MatchString(s) {
			h.keys = add(h.keys, s)
		}
	}
}

// source takes a text of the policy apart: it may be a value, a pattern, an
// expression, or text with expressions in it.
func (h *hints) source(s string) {
	for _, word := range identifier.FindAllString(s, -1) {
		h.words[word] = true
	}
	for _, m := range quoted.FindAllStringSubmatch(s, -1) {
		switch {
		case m[1] != "":
			h.key(m[1])
			h.text(m[1])
		case m[3] != "":
			h.literal(m[3])
		default:
			h.pattern(m[2])
		}
	}
	if !strings.Contains(s, "{{") {
		h.text(s)
		h.pattern(s)
	}
}

// literal is a JSON literal of an expression.
func (h *hints) literal(s string) {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		h.text(s)
		return
	}
	h.value(v)
}

func (h *hints) value(v any) {
	switch v := v.(type) {
	case string:
		h.pattern(v)
	case float64:
		if v == float64(int64(v)) {
			h.number(int64(v))
		} else {
			h.floats = add(h.floats, v)
		}
	case []any:
		for _, item := range v {
			h.value(item)
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			h.key(k)
			h.value(v[k])
		}
	}
}

// pattern takes a scalar pattern apart.
func (h *hints) pattern(s string) {
	var list []string
	if json.Unmarshal([]byte(s), &list) == nil {
		for _, item := range list {
			h.text(item)
		}
	}
	for _, atom := range strings.FieldsFunc(s, func(r rune) bool { return r == '|' || r == '&' }) {
		atom = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(atom), "<>=!"))
		for _, text := range instances(atom) {
			h.text(text)
		}
		if m := ranged.FindStringSubmatch(atom); m != nil {
			h.text(m[1])
			h.text(m[2])
		}
	}
}

// instances are texts that a wildcard matches, and one that it just fails to.
func instances(s string) []string {
	if !strings.ContainsAny(s, "*?") {
		return []string{s}
	}
	return []string{
		strings.NewReplacer("*", "", "?", "x").Replace(s),
		strings.NewReplacer("*", "abc", "?", "x").Replace(s),
		strings.NewReplacer("*", "a", "?", "").Replace(s),
	}
}

func (h *hints) text(s string) {
	if len(s) > 200 {
		return
	}
	h.texts = add(h.texts, s)
	if len(s) <= 63 && labelValue.MatchString(s) {
		h.labels = add(h.labels, s)
	}
	if len(s) <= 63 && objectName.MatchString(s) {
		h.names = add(h.names, s)
	}
	if len(s) <= 63 && labelKey.MatchString(s) {
		h.keys = add(h.keys, s)
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		h.number(n)
	}
	if q, err := resource.ParseQuantity(s); err == nil {
		h.quantity(q)
	}
	if d, err := time.ParseDuration(s); err == nil {
		for _, d := range []time.Duration{d, d + time.Second, d - time.Second} {
			h.durations = add(h.durations, d.String())
		}
		h.durations = add(h.durations, s)
	}
}

func (h *hints) quantity(q resource.Quantity) {
	h.quantities = add(h.quantities, q.String())
	more := q.DeepCopy()
	more.Add(resource.MustParse("1"))
	h.quantities = add(h.quantities, more.String())
	more.Sub(resource.MustParse("2"))
	h.quantities = add(h.quantities, more.String())
	if n, ok := q.AsInt64(); ok && n > -1<<40 && n < 1<<40 {
		h.ints = add(h.ints, n)
	}
}

func (h *hints) number(n int64) {
	for _, n := range []int64{n, n + 1, n - 1} {
		h.ints = add(h.ints, n)
		h.texts = add(h.texts, strconv.FormatInt(n, 10))
	}
}

// base64Text is a value of a field of bytes.
func base64Text(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
