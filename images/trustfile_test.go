package images

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvap/kvap/test/testregistry"
)

// rootFile is a trusted root of an authority, as a file has it.
func rootFile(t *testing.T, of *testregistry.Authority) []byte {
	t.Helper()
	return testregistry.TrustedRoot(t, of, testregistry.NewSigner(t))
}

func TestTrustFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trusted_root.json")
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, two := rootFile(t, testregistry.NewAuthority(t, nil, time.Hour)), rootFile(t, testregistry.NewAuthority(t, nil, time.Hour))
	write(one)
	var told []error
	f, err := OpenTrust(path, nil, func(err error) { told = append(told, err) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	f.now = func() time.Time { return now }
	later := func() *Trust { now = now.Add(trustLife); return f.Trust() }
	first := f.Trust()
	write(two)
	if f.Trust() != first {
		t.Error("it is read each time")
	}
	second := later()
	if second == first || second.ID() == first.ID() {
		t.Error("another file is not read")
	}
	for _, bad := range [][]byte{[]byte("x"), {}, []byte("{}"), append(slices.Clone(one), strings.Repeat(" ", maxTrust)...)} {
		write(bad)
		if got := later(); got != second {
			t.Errorf("%.10q is in force", bad)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if later() != second {
		t.Error("a file that went is in force")
	}
	write(two)
	if got := later(); got.ID() != second.ID() {
		t.Error("the file that came back is not read")
	}
	later()
	var wrong int
	for _, err := range told {
		if err != nil {
			wrong++
		}
	}
	if len(told) != 8 || wrong != 5 {
		t.Errorf("told %d times, of %d errors: %v", len(told), wrong, told)
	}
}

// A ConfigMap that is mounted changes where a link leads.
func TestTrustFileByALink(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.WriteFile(filepath.Join(dir, name, "root"), rootFile(t, testregistry.NewAuthority(t, nil, time.Hour)), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "data")
	if err := os.Symlink("a", link); err != nil {
		t.Skip(err)
	}
	f, err := OpenTrust(filepath.Join(link, "root"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := f.Trust()
	if err := errors.Join(os.Symlink("b", link+"2"), os.Rename(link+"2", link)); err != nil {
		t.Fatal(err)
	}
	f.read = time.Time{}
	if f.Trust() == first {
		t.Error("it is not read")
	}
}

func TestPinnedTrustFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root")
	one, two, other := rootFile(t, testregistry.NewAuthority(t, nil, time.Hour)), rootFile(t, testregistry.NewAuthority(t, nil, time.Hour)), rootFile(t, testregistry.NewAuthority(t, nil, time.Hour))
	pin := func(data []byte) string { return pinPrefix + hex.EncodeToString(sum(data)) }
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(other)
	_, err := OpenTrust(path, []string{pin(one)}, nil)
	says(t, "another than the pin", err, "is pinned")
	for _, bad := range []string{"", "sha256:", "sha256:xy", "md5:" + strings.Repeat("a", 64), strings.Repeat("a", 64)} {
		_, err := OpenTrust(path, []string{bad}, nil)
		says(t, bad, err, "no digest of a trusted root")
	}
	write(one)
	f, err := OpenTrust(path, []string{pin(one), pin(two)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		data  []byte
		taken bool
	}{{two, true}, {other, false}, {one, true}} {
		write(tt.data)
		f.read = time.Time{}
		if got := f.Trust().ID() == hex.EncodeToString(sum(tt.data)); got != tt.taken {
			t.Errorf("taken: %t", got)
		}
	}
}

func TestTrustFileTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root")
	if err := os.WriteFile(path, rootFile(t, testregistry.NewAuthority(t, nil, time.Hour)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenTrust(path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.now = func() time.Time { return time.Now().Add(time.Hour) }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if f.Trust() == nil {
				t.Error("there is none")
			}
		})
	}
	all.Wait()
}
