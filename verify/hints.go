package verify

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kvap/kvap/policy"
)

// hints are what the source of a policy talks about: the names of fields that it
// may look at, and the values that it may compare them with, with their
// neighbours.
type hints struct {
	words map[string]bool
	all   *pool
	// near are the values that stand beside a name in the source.
	near map[string]*pool
	into []*pool // where values that are read go to
}

// A pool is a choice of values, each kind for the fields that can hold it.
type pool struct {
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
	h := &hints{words: map[string]bool{}, all: &pool{}, near: map[string]*pool{}}
	h.into = []*pool{h.all}
	for _, n := range sources {
		h.node(n)
	}
	for _, s := range []string{"", "a", "abc", "0", "1", "5", "nginx:latest", "1Gi", "500m", "1h", "60s", "true", "null", "*", "1.10", "default"} {
		h.text(s)
	}
	for _, n := range []int64{0, 1, -1, 5, 100, 1000000} {
		h.number(n)
	}
	h.all.floats = add(h.all.floats, 0.5)
	for _, s := range []string{"app", "tier", "app.kubernetes.io/name"} {
		h.all.keys = add(h.all.keys, s)
	}
	h.all.names = add(h.all.names, "web-1")
	h.all.labels = add(h.all.labels, "web")
	return h
}

// add adds a value that is not there; a pool has no more than a choice can tell
// apart.
func add[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) || len(list) >= 250 {
		return list
	}
	return append(list, v)
}

// beside makes what read reads belong to names too.
func (h *hints) beside(names []string, read func()) {
	saved := h.into
	defer func() { h.into = saved }()
	h.into = slices.Clone(saved)
	for _, name := range names {
		if h.near[name] == nil {
			h.near[name] = &pool{}
		}
		h.into = append(h.into, h.near[name])
	}
	read()
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
		h.float(n.Float)
	}
	for _, item := range n.Items {
		h.node(item)
	}
	if key := n.Get("key"); key != nil && n.Get("operator") != nil {
		h.beside(identifiers(key), func() { h.node(key); h.node(n.Get("value")) })
		return
	}
	for _, f := range n.Fields {
		names := h.key(f.Key)
		if f.Value.Kind == policy.Map || f.Value.Kind == policy.List && slices.ContainsFunc(f.Value.Items, isMap) {
			h.node(f.Value)
			continue
		}
		h.beside(names, func() { h.node(f.Value) })
	}
}

func isMap(n *policy.Node) bool { return n.Kind == policy.Map }

// identifiers are the names in the texts of a value.
func identifiers(n *policy.Node) []string {
	var out []string
	if n.Kind == policy.String {
		out = identifier.FindAllString(n.Str, -1)
		for _, m := range quoted.FindAllStringSubmatch(n.Str, -1) {
			if m[1] != "" {
				out = append(out, m[1])
			}
		}
	}
	for _, item := range n.Items {
		out = append(out, identifiers(item)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
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

// key adds a key of the source, and gives the names that it may stand for.
func (h *hints) key(s string) []string {
	if m := anchored.FindStringSubmatch(strings.TrimSpace(s)); m != nil {
		s = m[1]
	}
	names := instances(s)
	for _, s := range names {
		h.words[s] = true
		if labelKey.MatchString(s) {
			h.all.keys = add(h.all.keys, s)
		}
	}
	return names
}

// source takes a text of the policy apart: it may be a value, a pattern, an
// expression, or text with expressions in it.
func (h *hints) source(s string) {
	names := identifier.FindAllString(s, -1)
	for _, word := range names {
		h.words[word] = true
	}
	literals := quoted.FindAllStringSubmatch(s, -1)
	if len(literals) > 0 {
		h.beside(names, func() { h.literals(literals) })
	}
	if !strings.Contains(s, "{{") {
		h.text(s)
		h.pattern(s)
	}
}

func (h *hints) literals(found [][]string) {
	for _, m := range found {
		switch {
		case m[1] != "":
			h.key(m[1])
		case m[3] != "":
			h.literal(m[3])
		default:
			h.pattern(m[2])
		}
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
			h.float(v)
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
			h.neighbours(text)
		}
		if m := ranged.FindStringSubmatch(atom); m != nil {
			h.text(m[1])
			h.text(m[2])
		}
	}
}

// instances are texts that a wildcard matches, and one that it may just fail to.
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

// neighbours are texts that only just differ.
func (h *hints) neighbours(s string) {
	if len(s) < 2 || strings.ContainsAny(s, "{}\n") {
		return
	}
	for _, near := range []string{"x" + s, s + "x", strings.ToUpper(s), s[:len(s)-1]} {
		if near != s && utf8.ValidString(near) {
			h.text(near)
		}
	}
}

func (h *hints) text(s string) {
	if len(s) > 200 {
		return
	}
	for _, p := range h.into {
		p.text(s)
	}
}

func (p *pool) text(s string) {
	p.texts = add(p.texts, s)
	if len(s) <= 63 {
		if labelValue.MatchString(s) {
			p.labels = add(p.labels, s)
		}
		if objectName.MatchString(s) {
			p.names = add(p.names, s)
		}
		if labelKey.MatchString(s) {
			p.keys = add(p.keys, s)
		}
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		p.number(n)
	}
	if q, err := resource.ParseQuantity(s); err == nil {
		p.quantity(q)
	}
	if d, err := time.ParseDuration(s); err == nil {
		p.durations = add(p.durations, s)
		for _, d := range []time.Duration{d, d + time.Second, d - time.Second} {
			p.durations = add(p.durations, d.String())
		}
	}
}

func (p *pool) quantity(q resource.Quantity) {
	p.quantities = add(p.quantities, q.String())
	more := q.DeepCopy()
	more.Add(resource.MustParse("1"))
	p.quantities = add(p.quantities, more.String())
	more.Sub(resource.MustParse("2"))
	p.quantities = add(p.quantities, more.String())
	if large := q.DeepCopy(); large.Mul(10) { // as where what is compared is divided by it
		p.quantities = add(p.quantities, large.String())
	}
	if n, ok := q.AsInt64(); ok && n > -1<<40 && n < 1<<40 {
		p.ints = add(p.ints, n)
	}
}

func (h *hints) number(n int64) {
	for _, p := range h.into {
		p.number(n)
	}
}

func (p *pool) number(n int64) {
	for _, n := range []int64{n, n + 1, n - 1} {
		p.ints = add(p.ints, n)
		p.texts = add(p.texts, strconv.FormatInt(n, 10))
	}
}

func (h *hints) float(f float64) {
	for _, p := range h.into {
		p.floats = add(p.floats, f)
	}
}

// base64Text is a value of a field of bytes.
func base64Text(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
