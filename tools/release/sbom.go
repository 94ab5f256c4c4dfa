package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

type spdxDocument struct {
	SPDXVersion       string             `json:"spdxVersion"`
	DataLicense       string             `json:"dataLicense"`
	ID                string             `json:"SPDXID"`
	Name              string             `json:"name"`
	DocumentNamespace string             `json:"documentNamespace"`
	CreationInfo      spdxCreation       `json:"creationInfo"`
	Packages          []spdxPackage      `json:"packages"`
	Relationships     []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID               string         `json:"SPDXID"`
	Name             string         `json:"name"`
	Version          string         `json:"versionInfo"`
	DownloadLocation string         `json:"downloadLocation"`
	FilesAnalyzed    bool           `json:"filesAnalyzed"`
	Checksums        []spdxChecksum `json:"checksums,omitempty"`
	ExternalRefs     []spdxRef      `json:"externalRefs"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// sbom names every module that a program is built from, by what Go has written into it, as SPDX 2.3.
func sbom(file, version string, program []byte, at time.Time) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	module := func(id, path, version string) spdxPackage {
		purl := "pkg:golang/" + path + "@" + version
		return spdxPackage{ID: id, Name: path, Version: version, DownloadLocation: "NOASSERTION", ExternalRefs: []spdxRef{{"PACKAGE-MANAGER", "purl", purl}}}
	}
	kvap := module("SPDXRef-kvap", "github.com/kvap/kvap", "v"+version)
	kvap.Checksums = []spdxChecksum{{"SHA256", sum(program)}}
	d := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: file,
		DocumentNamespace: home + "/releases/download/v" + version + "/" + file + "#" + sum(program),
		CreationInfo:      spdxCreation{at.Format(time.RFC3339), []string{"Organization: kvap"}},
		Packages:          []spdxPackage{kvap, module("SPDXRef-go", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))},
		Relationships: []spdxRelationship{
			{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-kvap"},
			{"SPDXRef-kvap", "DEPENDS_ON", "SPDXRef-go"},
		},
	}
	for i, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		id := fmt.Sprintf("SPDXRef-module-%d", i+1)
		d.Packages = append(d.Packages, module(id, m.Path, m.Version))
		d.Relationships = append(d.Relationships, spdxRelationship{"SPDXRef-kvap", "DEPENDS_ON", id})
	}
	text, err := json.MarshalIndent(d, "", " ")
	return append(text, '\n'), err
}
