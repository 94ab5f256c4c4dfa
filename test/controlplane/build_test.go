package controlplane

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each version has a folder of its own in the cache, and what it does not build is the
// standard version's.
func TestVersions(t *testing.T) {
	if !slices.Contains(Versions(), standard) {
		t.Errorf("the standard version %s is none of %v", standard, Versions())
	}
	seen := map[string]string{}
	for _, version := range Versions() {
		m, missing, err := module(version)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(m.Mod, []byte("k8s.io/kubernetes v"+version+"\n")) {
			t.Errorf("the module of %s does not require that version", version)
		}
		if other := seen[m.key()]; other != "" {
			t.Errorf("%s and %s share the folder %s", version, other, m.key())
		}
		seen[m.key()] = version
		all := slices.Sorted(maps.Keys(servers()))
		if have := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(m.Programs)), missing))); !slices.Equal(have, all) {
			t.Errorf("%s builds and lacks %v, want %v", version, have, all)
		}
		if _, ok := m.Programs[apiServer]; !ok || version == standard && len(missing) > 0 {
			t.Errorf("%s lacks %v", version, missing)
		}
	}
}

func TestVersionIsChosen(t *testing.T) {
	t.Setenv(VersionVariable, "")
	if Version() != "v"+standard {
		t.Errorf("nobody chose %s", Version())
	}
	t.Setenv(VersionVariable, "1.37.2")
	if Version() != "v1.37.2" {
		t.Errorf("1.37.2 was chosen, and not %s", Version())
	}
	t.Setenv(VersionVariable, "1.29.0")
	if _, err := Build(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "1.30.14") {
		t.Errorf("a version that cannot be built: %v", err)
	}
}

// A program stays where it was linked to when the version that it is from is removed.
func TestLink(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	program := filepath.Join(from, "etcd")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := link([]string{"etcd"}, from, to); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "etcd")); string(got) != "program" {
		t.Errorf("%q, %v", got, err)
	}
}
