package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pack is the archive of a platform, and the ending of its name: zip for Windows, else tar.gz.
func pack(p platform, program []byte, extras map[string][]byte, at time.Time) (data []byte, ending string, err error) {
	files := maps.Clone(extras)
	if files == nil {
		files = map[string][]byte{}
	}
	files[p.file(commandLine)] = program
	var b bytes.Buffer
	if p.OS == "windows" {
		err = zipped(&b, files, p.file(commandLine), at)
		return b.Bytes(), ".zip", err
	}
	z := gzip.NewWriter(&b)
	if err := tarred(z, files, p.file(commandLine), at); err != nil {
		return nil, "", err
	}
	err = z.Close()
	return b.Bytes(), ".tar.gz", err
}

func mode(name, program string) fs.FileMode {
	if name == program {
		return 0o755
	}
	return 0o644
}

func tarred(to io.Writer, files map[string][]byte, program string, at time.Time) error {
	w := tar.NewWriter(to)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Name: name, Mode: int64(mode(name, program)), Size: int64(len(files[name])), ModTime: at, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(files[name]); err != nil {
			return err
		}
	}
	return w.Close()
}

func zipped(to io.Writer, files map[string][]byte, program string, at time.Time) error {
	w := zip.NewWriter(to)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		h.SetMode(mode(name, program))
		f, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(files[name]); err != nil {
			return err
		}
	}
	return w.Close()
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// checksums writes what `sha256sum --check` reads, of every file beside it.
func checksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries { // by name
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(b.String()), 0o644)
}
