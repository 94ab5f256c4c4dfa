package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/test/testregistry"
)

func then() time.Time { return time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC) }

// members are the files of an archive, with their modes.
func members(t *testing.T, data []byte, ending string) (names []string) {
	t.Helper()
	if ending == ".zip" {
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			names = append(names, f.Mode().String()+" "+f.Name)
		}
		return names
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.FileInfo().Mode().String()+" "+h.Name)
	}
}

func TestArchives(t *testing.T) {
	extras := map[string][]byte{"README.md": []byte("text"), "man/kvap.1": []byte("page")}
	for _, c := range []struct {
		p      platform
		ending string
		want   []string
	}{
		{platform{"linux", "amd64"}, ".tar.gz", []string{"-rw-r--r-- README.md", "-rwxr-xr-x kvap", "-rw-r--r-- man/kvap.1"}},
		{platform{"windows", "arm64"}, ".zip", []string{"-rw-r--r-- README.md", "-rwxr-xr-x kvap.exe", "-rw-r--r-- man/kvap.1"}},
	} {
		data, ending, err := pack(c.p, []byte("program"), extras, then())
		if err != nil || ending != c.ending {
			t.Fatal(ending, err)
		}
		if got := members(t, data, ending); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.p, got, c.want)
		}
		if again, _, _ := pack(c.p, []byte("program"), extras, then()); !bytes.Equal(data, again) {
			t.Errorf("%v: the same files give other bytes", c.p)
		}
	}
}

func made() []archive {
	var all []archive
	for _, name := range platforms() {
		p := platform{}
		p.OS, p.Arch, _ = strings.Cut(name, "/")
		all = append(all, archive{p, "kvap_1.2.3_" + p.OS + "_" + p.Arch + ".tar.gz", sum([]byte(name))})
	}
	return all
}

func TestKrew(t *testing.T) {
	var plugin struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(krew("1.2.3", made())), &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.Spec.Version != "v1.2.3" || len(plugin.Spec.Platforms) != 6 || len(plugin.Spec.ShortDescription) > 50+len("policies") {
		t.Errorf("%+v", plugin)
	}
	for i, p := range plugin.Spec.Platforms {
		a := made()[i]
		if p.SHA256 != a.SHA256 || p.Bin != a.file(commandLine) || p.URI != "https://github.com/kvap/kvap/releases/download/v1.2.3/"+a.File || p.Selector.MatchLabels["os"] != a.OS || p.Selector.MatchLabels["arch"] != a.Arch {
			t.Errorf("%+v is not of %+v", p, a)
		}
	}
}

func TestHomebrew(t *testing.T) {
	formula := homebrew("1.2.3", made())
	for _, a := range made() {
		if has := strings.Contains(formula, a.SHA256); has != (a.OS != "windows") {
			t.Errorf("%s/%s: %v", a.OS, a.Arch, has)
		}
	}
	opened := strings.Count(formula, " do\n") + strings.Count(formula, "def ") + strings.Count(formula, "class ")
	if ends := strings.Count(formula, "end\n"); opened != ends {
		t.Errorf("%d blocks, %d ends:\n%s", opened, ends, formula)
	}
}

// The SBOM names the modules that are in a program.
func TestSBOM(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	text, err := sbom("kvap_1.2.3_linux_amd64.tar.gz", "1.2.3", program, then())
	if err != nil {
		t.Fatal(err)
	}
	var d spdxDocument
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Relationships) != len(d.Packages) {
		t.Errorf("%d packages, %d relations", len(d.Packages), len(d.Relationships))
	}
	if !strings.Contains(string(text), `"pkg:golang/github.com/google/go-containerregistry@v`) || !strings.Contains(string(text), sum(program)) {
		t.Errorf("%s", text)
	}
	if _, err := sbom("none", "1.2.3", []byte("no program"), then()); err == nil {
		t.Error("what is no program has an SBOM")
	}
}

// The image is an index of two, each whole, and the same programs give the same bytes; it can be pushed.
func TestImage(t *testing.T) {
	programs := map[platform][]byte{{"linux", "amd64"}: []byte("one"), {"linux", "arm64"}: []byte("two"), {"darwin", "arm64"}: []byte("three")}
	s := workTree{commit: "abc", time: then()}
	index, err := image(t.Context(), noBase, inCluster, "1.2.3", programs, s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := image(t.Context(), noBase, inCluster, "1.2.3", programs, s)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if other, err := again.Digest(); err != nil || other != digest {
		t.Errorf("%s and %s: %v", digest, other, err)
	}
	dir := filepath.Join(t.TempDir(), "image")
	if err := writeImage(t.Context(), dir, testregistry.New(t).Host+"/kvap", "1.2.3", index); err != nil {
		t.Fatal(err)
	}
	written, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(written); err != nil {
		t.Error(err)
	}
	manifest, err := written.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatal(manifest, err)
	}
	img, err := written.Image(manifest.Manifests[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; config.Architecture != "arm64" || c.User != nobody || !slices.Equal(c.Entrypoint, []string{inside + inCluster}) || c.Labels[scheme+"revision"] != "abc" {
		t.Errorf("%+v", config)
	}
	files := tar.NewReader(mutate.Extract(img))
	h, err := files.Next()
	if err != nil || "/"+h.Name != inside+inCluster || h.FileInfo().Mode().String() != "-rwxr-xr-x" {
		t.Fatal(h, err)
	}
	if text, err := io.ReadAll(files); err != nil || string(text) != "two" {
		t.Errorf("%q %v", text, err)
	}
}

func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checksums(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if want := sum([]byte("text")) + "  a\n"; err != nil || string(got) != want {
		t.Errorf("got %q, want %q: %v", got, want, err)
	}
	if err := release(t.Context(), options{out: dir}); err == nil || !strings.Contains(err.Error(), "has a release already") {
		t.Errorf("a release is written over: %v", err)
	}
}

// The changelog names the version, which is the chart's.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	version, err := newest(string(text))
	if err != nil {
		t.Fatal(err)
	}
	chart, err := os.ReadFile("../../deploy/chart/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(chart), "\nversion: "+version+"\nappVersion: "+version+"\n") {
		t.Errorf("CHANGELOG.md has %s first, the chart something else", version)
	}
	if _, err := newest("# Changelog\n\n## Unreleased\n"); err == nil {
		t.Error("a changelog without a version has one")
	}
}
