package diff

import (
	"slices"
	"testing"
)

func TestDiffer(t *testing.T) {
	violated := func(action, words string) Answer {
		return Answer{Outcome: Violated, Actions: []string{action}, Words: []string{words}, Messages: []string{words}}
	}
	admits := Answer{Outcome: Admits, Actions: []string{"Deny"}}
	for name, c := range map[string]struct {
		a, b   Answer
		change bool
		want   []Aspect
	}{
		"both admit":                      {admits, Answer{Outcome: Silent}, false, nil},
		"the same":                        {violated("Deny", "x"), violated("Deny", "x"), false, nil},
		"one is about something else":     {violated("Deny", "x"), Answer{Outcome: Silent}, false, []Aspect{Scope}},
		"one admits":                      {admits, violated("Deny", "x"), false, []Aspect{Verdict}},
		"one audits":                      {violated("Deny", "x"), violated("Audit", "x"), false, []Aspect{Action}},
		"one says it otherwise":           {violated("Deny", "x"), violated("Deny", "y"), false, []Aspect{Message}},
		"nobody knows the action":         {violated("Deny", "x"), Answer{Outcome: Violated, Words: []string{"x"}}, false, nil},
		"nobody wrote a message":          {violated("Deny", "x"), Answer{Outcome: Violated, Actions: []string{"Deny"}}, false, nil},
		"an error counts as a violation":  {violated("Deny", "x"), Answer{Outcome: Errs, Actions: []string{"Deny"}}, false, nil},
		"an error admits":                 {violated("Deny", "x"), Answer{Outcome: Errs, Open: true}, false, []Aspect{Verdict}},
		"errors refuse and admit":         {Answer{Outcome: Errs}, Answer{Outcome: Errs, Open: true}, false, []Aspect{FailurePolicy}},
		"what is denied spares the old":   {admits, violated("Audit", "x"), true, []Aspect{Action}},
		"the same, where nothing changed": {admits, violated("Audit", "x"), false, []Aspect{Verdict}},
		"Kyverno's configuration":         {Answer{Outcome: Violated, Written: true}, Answer{Outcome: Silent, LeftOut: true}, false, nil},
		"two native ones":                 {Answer{Outcome: Violated}, Answer{Outcome: Silent, LeftOut: true}, false, []Aspect{Scope}},
		"objects":                         {Answer{Outcome: Admits, After: map[string]any{"a": "b"}}, Answer{Outcome: Admits, After: map[string]any{"a": "c"}}, false, []Aspect{Object}},
		"what kvap adds": {
			violated("Deny", "x"), Answer{Outcome: Violated, Actions: []string{"Deny"}, Words: []string{"x. (one, two)"}, made: true}, false, nil,
		},
	} {
		for range 2 {
			if got := differ(c.a, c.b, c.change); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
			c.a, c.b = c.b, c.a
		}
	}
}

// Of what is joined, a violation decides, and what follows from it.
func TestWith(t *testing.T) {
	a := Answer{Outcome: Violated, Actions: []string{"Audit"}, Messages: []string{"x"}}
	b := Answer{Outcome: Admits, Actions: []string{"Deny"}}
	for range 2 {
		if got := a.with(b); got.Outcome != Violated || got.gravest() != "Audit" || got.Text() != "x" {
			t.Errorf("%+v", got)
		}
		a, b = b, a
	}
	open, closed := Answer{Outcome: Errs, Open: true}, Answer{Outcome: Violated}
	if got := open.with(closed); !got.refuses() {
		t.Errorf("%+v", got)
	}
}

func TestWords(t *testing.T) {
	w := newWriter()
	for message, want := range map[string]string{
		"validation error: A label. rule r failed at path /metadata/":                         "A label",
		"validation failure: validation error: Parts are sized. rule x failed at path /size/": "Parts are sized",
		"validation error: One of two. rule a[0] failed at path /x/ rule a[1] failed at path": "One of two",
		"As it is.": "As it is",
	} {
		if got := w.ofKyverno(message); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
	if got := w.ofNative("[r] A label.", true); got[0] != "A label" {
		t.Error(got)
	}
	if got := w.ofNative("[r] A label.", false); got[0] != "[r] A label" {
		t.Error(got)
	}
	if got := w.ofNative("expression 'a' resulted in error: no such key", true); got != nil {
		t.Error(got)
	}
}
