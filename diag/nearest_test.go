package diag_test

import (
	"testing"

	"github.com/kvap/kvap/diag"
)

func TestNearest(t *testing.T) {
	known := []string{"hostIPC", "hostPID", "hostNetwork", "ip", "name"}
	for word, want := range map[string]string{
		"hostNetwrok": "hostNetwork",
		"HOSTPID":     "hostPID",
		"hostPIC":     "", // hostPID is as near as hostIPC
		"hostIPCC":    "hostIPC",
		"ix":          "", // too short to tell
		"nothing":     "",
	} {
		if got := diag.Nearest(word, known); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
