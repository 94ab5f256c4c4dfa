package expr

import "slices"

// An Origin says who wrote a value. Of several, the highest counts.
type Origin int

// The origins.
const (
	OfPolicy  Origin = iota
	OfCluster        // a ConfigMap, an answer of the API server or of a service
	OfRequest
)

// A Value is data, and where they come from. The data are nil, a bool, int64, float64,
// string, []any or map[string]any, or a Scope.
type Value struct {
	Data any
	From Provenance
}

// A Provenance is where a value comes from. The zero Provenance is the policy.
type Provenance struct {
	Origin Origin
	// At is the field of an object of the request that the value is: the keys on the way,
	// and SomeElement for an element of a list. It is nil where the value is no such field,
	// and empty for the object.
	At []string
	// Printed tells that the value is the text of what is there.
	Printed bool
	// Duration tells that the value is what a function has made of two times.
	Duration bool
	// parts are the provenances of the entries of a map that was put together, and elements
	// those of a list: one for all, unless they are mixed.
	parts    map[string]Provenance
	elements []Provenance
	mixed    bool
}

// SomeElement is a step to an element of a list, or to the value of some key.
const SomeElement = "*"

// Below is the field of a key, or of an element, of a field.
func Below(at []string, key string) []string {
	if at == nil {
		return nil
	}
	return append(at[:len(at):len(at)], key)
}

// Field is the provenance of the value of a key.
func (s Provenance) Field(key string) Provenance {
	if part, ok := s.parts[key]; ok {
		return part
	}
	return Provenance{Origin: s.Origin, At: Below(s.At, key)}
}

// value is Field, where any key is meant.
func (s Provenance) value(key string) Provenance {
	if part, ok := s.parts[key]; ok {
		return part
	}
	return s.Field(SomeElement)
}

// Element is the provenance of an element of a list.
func (s Provenance) Element(i int) Provenance {
	switch {
	case s.mixed && i < len(s.elements):
		return s.elements[i]
	case s.elements != nil:
		return s.elements[0]
	}
	return s.Field(SomeElement)
}

// A ListProvenance puts the provenance of a list together.
type ListProvenance struct {
	list  Provenance
	count int
}

// listOf begins the provenance of a list that is made of what is in another value.
func listOf(v Value) ListProvenance { return ListProvenance{list: madeOf(v)} }

// Add adds the provenance of the next element.
func (l *ListProvenance) Add(s Provenance) {
	before := l.list.Element(l.count - 1)
	l.list.Origin = max(l.list.Origin, s.Origin)
	switch {
	case l.list.mixed:
		l.list.elements = append(l.list.elements, s)
	case l.count == 0:
		if !s.same(l.list.Field(SomeElement)) {
			l.list.elements = []Provenance{s}
		}
	case !s.same(before):
		l.list.mixed = true
		l.list.elements = append(slices.Repeat([]Provenance{before}, l.count), s)
	}
	l.count++
}

// Provenance is the provenance of the list.
func (l *ListProvenance) Provenance() Provenance { return l.list }

// MapOf is the provenance of a map that was put together.
func MapOf(parts map[string]Provenance) Provenance {
	s := Provenance{parts: parts}
	for _, part := range parts {
		s.Origin = max(s.Origin, part.Origin)
	}
	return s
}

// printed is the provenance of the text of a value.
func (s Provenance) printed() Provenance {
	return Provenance{Origin: s.Origin, At: s.At, Printed: true, Duration: s.Duration}
}

// And is s, and something else of an origin.
func (s Provenance) And(of Origin) Provenance {
	s.Origin = max(s.Origin, of)
	return s
}

// same tells of two provenances of values that were not put together.
func (s Provenance) same(t Provenance) bool {
	return s.Origin == t.Origin && s.Printed == t.Printed && (s.At == nil) == (t.At == nil) && slices.Equal(s.At, t.At) &&
		s.parts == nil && t.parts == nil && s.elements == nil && t.elements == nil
}

// madeOf is the provenance of what is computed from values.
func madeOf(values ...Value) (s Provenance) {
	for _, v := range values {
		s.Origin = max(s.Origin, v.From.Origin)
	}
	return s
}
