package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// The picture in the repository is drawn from the table in the repository.
func TestPictureIsInStep(t *testing.T) {
	document, err := os.ReadFile("../../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := read(string(document))
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile("../../../docs/latency.svg")
	if err != nil {
		t.Fatal(err)
	}
	if string(drawn) != string(draw(rows)) {
		t.Error("docs/latency.svg is not of the table in docs/performance.md; run make plot")
	}
}

const table = `<!-- bench-admission-v1.36.3: begin -->
| what judges the Pod | policy objects that it meets | p50 added, 1 worker | p50 added, denied |
|---|---|---|---|
| ` + "`a <b> & c`" + ` | 19 | 6.60 ms (6.34 to 7.11) | -0.10 ms (-0.25 to 0.89) |
<!-- bench-admission-v1.36.3: end -->`

func TestRead(t *testing.T) {
	rows, err := read(table)
	if err != nil {
		t.Fatal(err)
	}
	want := row{"a <b> & c", "19", span{6.60, 6.34, 7.11}, span{-0.10, -0.25, 0.89}}
	if len(rows) != 1 || rows[0] != want {
		t.Errorf("got %+v, want %+v", rows, want)
	}
	for what, text := range map[string]string{
		"no marks":  strings.ReplaceAll(table, "begin", "start"),
		"no column": strings.ReplaceAll(table, deniedColumn, "p50"),
		"no time":   strings.ReplaceAll(table, "6.60 ms", "fast"),
		"no rows":   "<!-- bench-admission-v1.36.3: begin --><!-- bench-admission-v1.36.3: end -->",
	} {
		if _, err := read(text); err == nil {
			t.Errorf("%s is no error", what)
		}
	}
}

// The picture is XML whatever the names are.
func TestDraw(t *testing.T) {
	rows, err := read(table)
	if err != nil {
		t.Fatal(err)
	}
	picture := string(draw(rows))
	in := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
	}
	if !strings.Contains(picture, "a &lt;b&gt; &amp; c") || strings.Contains(picture, `width="-`) {
		t.Error(picture)
	}
}
