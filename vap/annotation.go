package vap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
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

// A TranslatedMember is a source rule, or one form of it: the forms of a rule come one after
// the other. Its Path is where the rule begins: lines are not said, for a comment in the source would
// change each object.
type TranslatedMember struct {
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule"`
	Origin string `json:"origin,omitempty"` // the name as written, where Rule is another
	File   string `json:"-"`                // it is in the other annotation
	Path   string `json:"path,omitempty"`
	// Resources are those that it is about; nil where these are all that the policy is about.
	Resources []string `json:"resources,omitempty"`
}

// IsAbout tells that a resource, or what is below it, is among those that the member is about.
func (m TranslatedMember) IsAbout(resource string) bool {
	return m.Resources == nil || slices.Contains(m.Resources, resource)
}

// A TranslatedExpression says what an expression was made from. Member is an
// index of Translation.Members, and Also are those of the rule's other forms, about
// other resources.
type TranslatedExpression struct {
	Member int    `json:"member,omitempty"`
	Also   []int  `json:"-"`
	Path   string `json:"path,omitempty"`
}

// Members are all that the expression is of.
func (x TranslatedExpression) Members() []int { return append([]int{x.Member}, x.Also...) }

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
	t.fill()
	t.locate(annotations[SourceAnnotation])
	return t, true, nil
}

// locate takes the files of the members from what is written for people.
func (t *Translation) locate(source string) {
	lines := strings.Split(source, "\n")
	rules := 0
	for i := range t.Members {
		if !t.sameRule(i) {
			rules++
		}
	}
	if len(lines) != rules {
		return // somebody has edited it
	}
	line := -1
	for i := range t.Members {
		if !t.sameRule(i) {
			line++
		}
		m := &t.Members[i]
		if file, _, ok := strings.Cut(lines[line], " "+m.Policy+"/"); ok {
			m.File = file
		}
	}
}

// sameRule tells that a member is another form of the rule that the one before it is of.
func (t Translation) sameRule(i int) bool {
	if i == 0 || t.Members[i].Resources == nil || t.Members[i-1].Resources == nil {
		return false
	}
	m, before := t.Members[i], t.Members[i-1]
	return m.Policy == before.Policy && cmp.Or(m.Origin, m.Rule) == cmp.Or(before.Origin, before.Rule) && m.Path == before.Path
}

// lists begin what a message says of all rules of the object that are violated.
func lists() []string { return []string{" (all violated: ", " (violated too: "} }

// Named are the members that the message of another rule of the object names: it lists all that are
// violated, where there are several.
func (t Translation) Named(message string) (members []int) {
	for _, words := range lists() {
		i := strings.LastIndex(message, words)
		if i < 0 {
			continue
		}
		list := strings.Split(strings.TrimSuffix(message[i+len(words):], ")"), ", ")
		for member, m := range t.Members {
			if slices.ContainsFunc(list, m.isCalled) {
				members = append(members, member)
			}
		}
	}
	return members
}

// isCalled reports whether a message calls the member so: by its rule as it is written where the object
// is about Pods and their controllers, and with the policy where it is of several.
func (m TranslatedMember) isCalled(name string) bool {
	for _, rule := range []string{m.Rule, cmp.Or(m.Origin, m.Rule)} {
		if name == rule || name == m.Policy+"/"+rule {
			return true
		}
	}
	return false
}

// Words are what a message says, without the name of its rule, which stands in front where several share
// the object, and without the list of others. The members are those of that name.
func (t Translation) Words(message string) (words string, members []int) {
	words = message
	for _, list := range lists() {
		if i := strings.LastIndex(words, list); i >= 0 && len(t.Named(message)) > 0 {
			words = words[:i]
		}
	}
	name, rest, ok := strings.Cut(strings.TrimPrefix(words, "["), "] ")
	if !ok || !strings.HasPrefix(words, "[") {
		return words, nil
	}
	for i, m := range t.Members {
		if m.isCalled(name) {
			members = append(members, i)
		}
	}
	if len(members) > 0 {
		words = rest
	}
	return words, members
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
	t := d.Translation()
	var places []string
	for i, m := range d.Members {
		if !t.sameRule(i) {
			places = append(places, oneLine(place(m, opts)))
		}
	}
	out[SourceAnnotation] = strings.Join(places, "\n")
	t.Guard = guard
	out[TranslationAnnotation] = t.json()
	return out
}

// place is, for instance, "tags.yaml disallow-latest/check".
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
	return file + " " + text
}

// Translation is the source map of what is emitted from the draft.
func (d *Draft) Translation() Translation {
	var t Translation
	for _, m := range d.Members {
		tm := TranslatedMember{Policy: m.Policy, Rule: m.Rule, File: m.Pos.File, Path: m.Pos.Path, Resources: m.Resources}
		if m.Origin != m.Rule {
			tm.Origin = m.Origin
		}
		t.Members = append(t.Members, tm)
	}
	for _, v := range d.Validations {
		t.Validations = append(t.Validations, TranslatedExpression{Member: v.Member, Also: v.Also, Path: v.Pos.Path})
	}
	return t
}

// Of is the member that a field of the policy is for, and the place in its source
// that the field was made from. ok is false for a field of no single member.
func (t Translation) Of(field string) (member TranslatedMember, path string, ok bool) {
	var i int
	if !index(field, "spec.validations[%d]", &i) || i >= len(t.Validations) {
		return TranslatedMember{}, "", false
	}
	v := t.Validations[i]
	return t.Members[v.Member], v.Path, true
}

// json leaves out what fill knows.
func (t Translation) json() string {
	members, validations := slices.Clone(t.Members), slices.Clone(t.Validations)
	for i, v := range validations {
		if rest, ok := strings.CutPrefix(v.Path, members[v.Member].Path); ok && strings.HasPrefix(rest, ".") {
			validations[i].Path = rest
		}
	}
	for i := range members {
		if t.sameRule(i) {
			members[i].Policy, members[i].Origin, members[i].Path = "", "", ""
		}
	}
	t.Members, t.Validations = members, validations
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return string(text)
}

// fill adds what another form of a rule has of the first, and what a validation has of its rule.
func (t *Translation) fill() {
	for i := range t.Members {
		if m := &t.Members[i]; i > 0 && m.Policy == "" {
			before := t.Members[i-1]
			m.Policy, m.Origin, m.Path = before.Policy, cmp.Or(before.Origin, before.Rule), before.Path
		}
	}
	for i := range t.Validations {
		v := &t.Validations[i]
		if strings.HasPrefix(v.Path, ".") {
			v.Path = t.Members[v.Member].Path + v.Path
		}
		for k := v.Member + 1; k < len(t.Members) && t.sameRule(k); k++ {
			v.Also = append(v.Also, k)
		}
	}
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
