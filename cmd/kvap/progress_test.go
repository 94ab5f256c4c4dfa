package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestProgress pins that the line appears on a terminal only, after a while, and goes
// without a trace.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newProgress(&out, false).show("no terminal")
	quick := &progress{w: &out, begun: time.Now()}
	quick.show("too early")
	quick.clear()
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
	slow := &progress{w: &out, begun: time.Now().Add(-patience)}
	slow.show("%d of %d", 1, 2)
	slow.clear()
	if got := out.String(); got != "\r1 of 2\r"+strings.Repeat(" ", 6)+"\r" {
		t.Errorf("%q", got)
	}
	did := false
	slow.during("work", func() { did = true })
	if !did {
		t.Error("the work was not done")
	}
}
