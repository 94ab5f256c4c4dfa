package vap

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The annotations and labels of generated objects.
const (
	SourceAnnotation      = "kvap.dev/source"              // where each member stands, a line for each
	TranslationAnnotation = "kvap.dev/translation"         // the rest of a Translation, as JSON
	ManagedByLabel        = "app.kubernetes.io/managed-by" // ManagedBy
	ManagedBy             = "kvap"
)

// A Translation is the map from an emitted policy back to its source.
type Translation struct {
	Members     []TranslatedMember     `json:"members"`
	Validations []TranslatedExpression `json:"validations,omitempty"` // one for each of the policy's validations
	Guard       string                 `json:"guard,omitempty"`       // the match condition that is false where all validations are true
}

// A TranslatedMember is a source rule. Its Line and Path are where the rule begins.
type TranslatedMember struct {
	Policy string `json:"policy"`
	Rule   string `json:"rule"`
	Origin string `json:"origin,omitempty"` // the name as written, where Rule is another
	File   string `json:"-"`                // these two are in the other annotation
	Line   int    `json:"-"`
	Path   string `json:"path,omitempty"`
}

// A TranslatedExpression says what an expression was made from. Member is an
// index of Translation.Members.
type TranslatedExpression struct {
	Member int    `json:"member"`
	Line   int    `json:"line,omitempty"`
	Path   string `json:"path,omitempty"`
}

// TranslationOf reads the source map from the annotations of an emitted policy.
// ok is false where there is none, as on a policy written by hand.
func TranslationOf(annotations map[string]string) (t Translation, ok bool, err error) {
	text, ok := annotations[TranslationAnnotation]
	if !ok {
		return t, false, nil
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return t, true, fmt.Errorf("annotation %s is not what kvap writes: %w; convert the policy again", TranslationAnnotation, err)
	}
	for i, v := range t.Validations {
		if v.Member < 0 || v.Member >= len(t.Members) {
			return t, true, fmt.Errorf("annotation %s: validation %d is of member %d, and there are %d; convert the policy again",
				TranslationAnnotation, i, v.Member, len(t.Members))
		}
	}
	t.locate(annotations[SourceAnnotation])
	return t, true, nil
}

// locate takes file and line of the members from what is written for people.
func (t *Translation) locate(source string) {
	lines := strings.Split(source, "\n")
	if len(lines) != len(t.Members) {
		return // somebody has edited it
	}
	for i, line := range lines {
		m := &t.Members[i]
		place, _, _ := strings.Cut(line, " "+m.Policy+"/")
		file, number, ok := cutLast(place, ":")
		if n, err := strconv.Atoi(number); ok && err == nil {
			m.File, m.Line = file, n
		}
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// annotate writes where d came from. The draft's own annotations come first, so
// that none of them can pass for the compiler's.
func annotate(d *Draft, opts EmitOptions, guard string) map[string]string {
	out := map[string]string{}
	for k, v := range d.Annotations {
		out[k] = v
	}
	if len(d.Members) == 0 {
		return out
	}
	var places []string
	for _, m := range d.Members {
		places = append(places, oneLine(place(m, opts)))
	}
	out[SourceAnnotation] = strings.Join(places, "\n")
	t := d.Translation()
	t.Guard = guard
	out[TranslationAnnotation] = t.json()
	return out
}

// place is, for instance, "tags.yaml:12 disallow-latest/check".
func place(m Member, opts EmitOptions) string {
	origin := m.Origin
	if origin == "" {
		origin = m.Rule
	}
	text := m.Policy + "/" + origin
	if m.Pos.File == "" {
		return text
	}
	file, ok := opts.Files[m.Pos.File]
	if !ok {
		file = m.Pos.File
	}
	return fmt.Sprintf("%s:%d %s", file, m.Pos.Line, text)
}

// Translation is the source map of what is emitted from the draft.
func (d *Draft) Translation() Translation {
	var t Translation
	for _, m := range d.Members {
		tm := TranslatedMember{Policy: m.Policy, Rule: m.Rule, File: m.Pos.File, Line: m.Pos.Line, Path: m.Pos.Path}
		if m.Origin != m.Rule {
			tm.Origin = m.Origin
		}
		t.Members = append(t.Members, tm)
	}
	for _, v := range d.Validations {
		t.Validations = append(t.Validations, TranslatedExpression{Member: v.Member, Line: v.Pos.Line, Path: v.Pos.Path})
	}
	return t
}

// Of is the member that a field of the policy is for, and the place in its source
// that the field was made from. ok is false for a field of no single member.
func (t Translation) Of(field string) (member TranslatedMember, line int, path string, ok bool) {
	var i int
	if !index(field, "spec.validations[%d]", &i) || i >= len(t.Validations) {
		return TranslatedMember{}, 0, "", false
	}
	v := t.Validations[i]
	return t.Members[v.Member], v.Line, v.Path, true
}

func (t Translation) json() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return string(text)
}

// oneLine puts a space for each run of line breaks and the blanks around it: the
// API server refuses messages with line breaks.
func oneLine(s string) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
