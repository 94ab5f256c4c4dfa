package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

func main() {
	out := flag.String("out", "../data", "the folder to write to")
	only := flag.String("only", "", "one minor, for instance 1.36; all where empty")
	flag.Parse()
	for _, version := range releases() {
		if *only != "" && *only != minorOf(version) {
			continue
		}
		if err := generate(version, *out); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %v\n", version, err)
			os.Exit(1)
		}
	}
}

// generate writes the set of one version of Kubernetes.
func generate(version, out string) error {
	kubernetes, err := moduleDir("k8s.io/kubernetes", version)
	if err != nil {
		return err
	}
	doc, err := readSwagger(filepath.Join(kubernetes, "api", "openapi-spec", "swagger.json"))
	if err != nil {
		return err
	}
	src := &goTypes{version: version, packages: map[string]map[string]*goStruct{}}
	set, err := build(doc, src, version)
	if err != nil {
		return err
	}
	text, err := set.encode()
	if err != nil {
		return err
	}
	name := filepath.Join(out, minorOf(version)+".json.gz")
	packed := compress(text)
	fmt.Printf("%s: %d resources, %d definitions, %d bytes, %d compressed\n",
		name, len(set.Resources), len(set.definitions), len(text), len(packed))
	return os.WriteFile(name, packed, 0o644)
}

// moduleDir has the go command fetch a module, and is its folder.
func moduleDir(path, version string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", path+"@"+version)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(text, &module); jsonErr == nil && module.Error != "" {
		return "", fmt.Errorf("%s", module.Error)
	}
	if err != nil {
		return "", fmt.Errorf("go mod download %s@%s: %w", path, version, err)
	}
	return module.Dir, nil
}

// compress is gzip with no time and no name in its header: the same text gives
// the same bytes.
func compress(text []byte) []byte {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	w.Write(text)
	w.Close()
	return buf.Bytes()
}

// encode is the header line and the definition lines.
func (s *set) encode() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(s.definitions))
	for name := range s.definitions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		line := struct {
			Name   string      `json:"name"`
			Schema *definition `json:"schema"`
		}{name, s.definitions[name]}
		if err := enc.Encode(line); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), nil
}
