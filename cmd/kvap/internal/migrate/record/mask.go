package record

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// lastApplied is where kubectl keeps the whole object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// A Masker takes out of requests what must not be recorded.
type Masker struct {
	key    []byte
	fields []field
}

// A field is one that was chosen: a path of keys, of one kind or of all. A list is
// gone through, and "*" is any key.
type field struct {
	kind string
	path []string
}

// NewMasker makes a masker of chosen fields, such as spec.containers.env.value,
// ConfigMap/data.* or metadata.annotations[acme.io/token]. The key should be random.
func NewMasker(fields []string, key []byte) (*Masker, error) {
	m := &Masker{key: key, fields: []field{ // which hold nothing but a secret
		{"TokenReview", []string{"spec", "token"}},
		{"TokenRequest", []string{"status", "token"}},
	}}
	for _, text := range fields {
		f, err := parseField(text)
		if err != nil {
			return nil, err
		}
		m.fields = append(m.fields, f)
	}
	return m, nil
}

func parseField(text string) (f field, err error) {
	path := text
	if i := strings.IndexAny(text, "./["); i >= 0 && text[i] == '/' {
		f.kind, path = text[:i], text[i+1:]
	}
	for rest := path; rest != ""; {
		var key string
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			var closed bool
			if key, rest, closed = strings.Cut(inner, "]"); !closed {
				return f, fmt.Errorf("the field %q has a [ without its ]", text)
			}
			rest = strings.TrimPrefix(rest, ".")
		} else if i := strings.IndexAny(rest, ".["); i < 0 {
			key, rest = rest, ""
		} else {
			key, rest = rest[:i], strings.TrimPrefix(rest[i:], ".")
		}
		if key = strings.Trim(key, `'"`); key == "" {
			return f, fmt.Errorf("the field %q has a key that is empty", text)
		}
		f.path = append(f.path, key)
	}
	if len(f.path) == 0 {
		return f, fmt.Errorf("the field %q names nothing", text)
	}
	return f, nil
}

// Request masks an AdmissionRequest in place.
func (m *Masker) Request(request map[string]any) {
	var objects, secrets []map[string]any
	for _, key := range []string{"object", "oldObject"} {
		if o, ok := request[key].(map[string]any); ok {
			objects = append(objects, o)
			if isSecret(request, o) {
				secrets = append(secrets, o)
			}
		}
	}
	values := valuesOf(secrets)
	for _, o := range objects {
		m.object(o, kindOf(request, o), values)
	}
	for _, o := range secrets {
		m.secret(o)
	}
}

// Namespace is a masked copy of a Namespace.
func (m *Masker) Namespace(namespace map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(namespace)
	m.object(out, "Namespace", nil)
	return out
}

// object masks the fields that were chosen of an object of a kind, and values of Secrets in its
// metadata.
func (m *Masker) object(o map[string]any, kind string, values []string) {
	meta, _ := o["metadata"].(map[string]any)
	delete(meta, "managedFields")
	for _, key := range []string{"annotations", "labels"} {
		m.scrub(meta[key], values)
	}
	if annotations, ok := meta["annotations"].(map[string]any); ok && annotations[lastApplied] != nil {
		annotations[lastApplied] = m.all(annotations[lastApplied])
	}
	for _, f := range m.fields {
		if f.kind == "" || f.kind == kind {
			m.at(o, f.path)
		}
	}
}

// kindOf is the kind of an object: its own word for it, else the request's.
func kindOf(request, o map[string]any) string {
	if kind, _ := o["kind"].(string); kind != "" {
		return kind
	}
	kind, _ := request["kind"].(map[string]any)
	name, _ := kind["kind"].(string)
	return name
}

// isSecret tells a Secret by what the object or the request says. A kind of that name
// in another group is taken for one too: it costs nothing.
func isSecret(request, o map[string]any) bool {
	if kindOf(request, o) == "Secret" {
		return true
	}
	for _, key := range []string{"kind", "requestKind"} {
		if kind, _ := request[key].(map[string]any); kind["kind"] == "Secret" {
			return true
		}
	}
	return false
}

// shortest is how long a value of a Secret must be to be looked for elsewhere: a
// shorter one, such as "no", is in many words that have nothing to do with it.
const shortest = 4

// valuesOf are the values of Secrets, as they stand there and decoded, the longest
// first, so that none is replaced in the middle of another.
func valuesOf(secrets []map[string]any) []string {
	var out []string
	note := func(s string) {
		if len(s) >= shortest && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, o := range secrets {
		for _, key := range []string{"data", "stringData"} {
			eachText(o[key], func(s string) {
				note(s)
				note(strings.TrimSpace(s))
				if plain, err := base64.StdEncoding.DecodeString(s); err == nil {
					note(string(plain))
					note(strings.TrimSpace(string(plain)))
				}
				note(base64.StdEncoding.EncodeToString([]byte(s)))
			})
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

func eachText(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, one := range v {
			eachText(one, visit)
		}
	case map[string]any:
		for _, one := range v {
			eachText(one, visit)
		}
	}
}

// scrub takes values of Secrets out of annotations and labels, to which some tools
// copy them.
func (m *Masker) scrub(v any, values []string) {
	texts, ok := v.(map[string]any)
	if !ok {
		return
	}
	for key, one := range texts {
		text, ok := one.(string)
		if !ok {
			continue
		}
		for _, value := range values {
			text = strings.ReplaceAll(text, value, m.word(value))
		}
		texts[key] = text
	}
}

// secret masks all values of a Secret, which stay what they must be: base64 in data.
func (m *Masker) secret(o map[string]any) {
	data, ok := o["data"].(map[string]any)
	if !ok && o["data"] != nil {
		o["data"] = m.all(o["data"])
	}
	for key, v := range data {
		if s, ok := v.(string); ok && s != "" {
			data[key] = base64.StdEncoding.EncodeToString([]byte(m.word(s)))
		} else {
			data[key] = m.all(v)
		}
	}
	if o["stringData"] != nil {
		o["stringData"] = m.all(o["stringData"])
	}
}

// at masks what is at a path.
func (m *Masker) at(v any, path []string) any {
	if len(path) == 0 {
		return m.all(v)
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = m.at(v[i], path)
		}
	case map[string]any:
		for key, one := range v {
			if path[0] == "*" || path[0] == key {
				v[key] = m.at(one, path[1:])
			}
		}
	}
	return v
}

// all masks every value in v. Its shape stays, and so do the types.
func (m *Masker) all(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return v
		}
		return m.word(v)
	case bool:
		return false
	case int64:
		return int64(0)
	case float64:
		return float64(0)
	case []any:
		for i := range v {
			v[i] = m.all(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = m.all(v[key])
		}
	}
	return v
}

// word stands for a value. It is the same for equal values, and says nothing of them
// to those who do not have the key.
func (m *Masker) word(value string) string {
	sum := hmac.New(sha256.New, m.key)
	sum.Write([]byte(value))
	return "masked-" + hex.EncodeToString(sum.Sum(nil)[:6])
}
