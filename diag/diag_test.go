package diag_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/diag"
)

func pos(file string, line, col int, path string) diag.Pos {
	return diag.Pos{File: file, Line: line, Col: col, Path: path}
}

func TestPosString(t *testing.T) {
	for want, p := range map[string]diag.Pos{
		"a.yaml:3:4": pos("a.yaml", 3, 4, "spec"),
		"a.yaml":     pos("a.yaml", 0, 0, ""),
		"3:4":        pos("", 3, 4, "spec"),
		"spec.rules": pos("", 0, 0, "spec.rules"),
		"":           {},
	} {
		if got := p.String(); got != want {
			t.Errorf("%#v is %q, want %q", p, got, want)
		}
	}
}

func TestSort(t *testing.T) {
	a := diag.Errorf(pos("a", 1, 1, ""), diag.Missing, "a")
	later := diag.Errorf(pos("a", 1, 2, ""), diag.Missing, "a")
	other := diag.Errorf(pos("b", 1, 1, ""), diag.Missing, "a")
	code := diag.Errorf(pos("a", 1, 1, ""), diag.Conflict, "a")
	message := diag.Errorf(pos("a", 1, 1, ""), diag.Missing, "b")
	got := diag.List{other, message, later, a, code, a}.Sort()
	if d := cmp.Diff(diag.List{a, message, code, later, other}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestHasErrors(t *testing.T) {
	soft := diag.List{diag.Warnf(diag.Pos{}, diag.Conflict, ""), diag.Notef(diag.Pos{}, diag.OtherKind, "")}
	if soft.HasErrors() || !append(soft, diag.Errorf(diag.Pos{}, diag.Missing, "")).HasErrors() {
		t.Error("only an error is an error")
	}
}

func TestJSON(t *testing.T) {
	data, err := json.Marshal(diag.Warnf(pos("a.yaml", 3, 4, "spec"), diag.Conflict, "x %d", 1))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"code":"KV110","severity":"warning","file":"a.yaml","line":3,"column":4,"path":"spec","message":"x 1"}`
	if string(data) != want {
		t.Errorf("%s, want %s", data, want)
	}
}

const source = "a: b\n\tkey: välue\nlast"

func write(t *testing.T, text diag.Text, l diag.List) string {
	t.Helper()
	var b strings.Builder
	if err := text.Write(&b, l); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func read(file string) []byte {
	switch file {
	case "a.yaml":
		return []byte(source)
	case "crlf.yaml":
		return []byte("\ufeffa: b\r\nc: \x1b[31md\r\n")
	}
	return nil
}

func TestText(t *testing.T) {
	cases := []struct {
		name string
		d    diag.Diagnostic
		want string
	}{
		{"plain", diag.Errorf(pos("a.yaml", 1, 4, "a"), diag.WrongType, "wrong"), `a.yaml:1:4: error: wrong [KV107]
    1 | a: b
      |    ^ kvap explain KV107
`},
		{"tabs and wide letters", diag.Errorf(pos("a.yaml", 2, 9, "a"), diag.WrongType, "wrong"), "a.yaml:2:9: error: wrong [KV107]\n" +
			"    2 | \tkey: välue\n      | \t       ^ kvap explain KV107\n"},
		{"last line, beyond its end", diag.Errorf(pos("a.yaml", 3, 99, ""), diag.WrongType, "wrong"), `a.yaml:3:99: error: wrong [KV107]
    3 | last
      |     ^ kvap explain KV107
`},
		{"no such line", diag.Errorf(pos("a.yaml", 4, 1, ""), diag.WrongType, "wrong"), "a.yaml:4:1: error: wrong [KV107]\n"},
		{"no such file", diag.Errorf(pos("b.yaml", 1, 1, ""), diag.WrongType, "wrong"), "b.yaml:1:1: error: wrong [KV107]\n"},
		{"a file as a whole", diag.Errorf(pos("a.yaml", 0, 0, ""), diag.Unreadable, "wrong"), "a.yaml: error: wrong [KV101]\n"},
		{"in the cluster", diag.Errorf(pos("", 0, 0, "spec.rules"), diag.Missing, "wrong"), "spec.rules: error: wrong [KV109]\n"},
		{"nowhere", diag.Errorf(diag.Pos{}, diag.Missing, "wrong"), "error: wrong [KV109]\n"},
		{"control characters", diag.Errorf(pos("crlf.yaml", 2, 4, ""), diag.WrongType, "wrong"), "crlf.yaml:2:4: error: wrong [KV107]\n" +
			"    2 | c: \ufffd[31md\n      |    ^ kvap explain KV107\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, write(t, diag.Text{Source: read}, diag.List{c.d})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestTextWithoutSource(t *testing.T) {
	got := write(t, diag.Text{}, diag.List{diag.Errorf(pos("a.yaml", 1, 4, ""), diag.WrongType, "wrong")})
	if got != "a.yaml:1:4: error: wrong [KV107]\n" {
		t.Error(got)
	}
}

func TestTextInColour(t *testing.T) {
	l := diag.List{diag.Errorf(pos("a.yaml", 1, 4, ""), diag.WrongType, "wrong"), diag.Warnf(pos("a.yaml", 1, 1, ""), diag.Conflict, "odd")}
	got := write(t, diag.Text{Source: read, Colour: true, Command: "kubectl kvap"}, l)
	want := "\x1b[1ma.yaml:1:4\x1b[0m: \x1b[31merror:\x1b[0m wrong \x1b[31m[KV107]\x1b[0m\n    1 | a: b\n      |    \x1b[31m^\x1b[0m kubectl kvap explain KV107\n" +
		"\x1b[1ma.yaml:1:1\x1b[0m: \x1b[33mwarning:\x1b[0m odd \x1b[33m[KV110]\x1b[0m\n    1 | a: b\n      | \x1b[33m^\x1b[0m kubectl kvap explain KV110\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Of a long line the part around the place is shown, with the caret below it.
func TestLongLines(t *testing.T) {
	line := strings.Repeat("é", 150) + "X" + strings.Repeat("-", 150)
	text := diag.Text{Source: func(string) []byte { return []byte(line) }}
	for _, col := range []int{1, 151, 301} {
		got := strings.Split(write(t, text, diag.List{diag.Errorf(pos("a", 1, col, ""), diag.WrongType, "wrong")}), "\n")
		shown, below := []rune(strings.TrimPrefix(got[1], "    1 | ")), strings.TrimPrefix(got[2], "      | ")
		at := strings.Index(below, "^")
		if len(shown) > 122 || at > len(shown) {
			t.Errorf("column %d: %d characters, caret at %d", col, len(shown), at)
		}
		if col == 151 && shown[at] != 'X' {
			t.Errorf("the caret is below %c: %s", shown[at], got[1])
		}
	}
}
