package images

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Recorded answers what registries are asked for from a folder, and nothing goes over a network.
// The folder is an OCI layout, which then stands for every repository, or has one for each of
// them:
//
//	DIR/index.json                        org.opencontainers.image.ref.name: v1, or ghcr.io/acme/web:v1
//	DIR/ghcr.io/acme/web/index.json       org.opencontainers.image.ref.name: v1
//
// oras copy --to-oci-layout, skopeo copy … oci:DIR:v1 and cosign save write such folders. Signatures are under their tags, sha256-….sig, or as cosign save names
// them. It is a Registry's Recorded, and what is read of it is verified as what a registry says.
type Recorded struct{ root *os.Root }

// OpenRecorded is a folder. Nothing outside of it is read, wherever links in it lead.
func OpenRecorded(dir string) (*Recorded, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Recorded{root}, nil
}

// RoundTrip implements http.RoundTripper.
func (r *Recorded) RoundTrip(q *http.Request) (*http.Response, error) {
	answer := func(status int, media string, body []byte) *http.Response {
		header := http.Header{"Content-Type": {media}, "Content-Length": {strconv.Itoa(len(body))}}
		if media != "" {
			digest, _, _ := v1.SHA256(bytes.NewReader(body))
			header.Set("Docker-Content-Digest", digest.String())
		}
		out := &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, ContentLength: int64(len(body)), Request: q, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		out.Body = io.NopCloser(bytes.NewReader(body))
		if q.Method == http.MethodHead {
			out.Body = http.NoBody
		}
		return out
	}
	if q.URL.Path == "/v2/" {
		return answer(http.StatusOK, "", nil), nil
	}
	media, body, err := r.read(q.URL.Host, strings.TrimPrefix(q.URL.Path, "/v2/"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return answer(http.StatusNotFound, "", nil), nil
	case err != nil:
		return nil, fmt.Errorf("the recorded registry: %w", err)
	}
	return answer(http.StatusOK, media, body), nil
}

// read is what is at a path of the API: REPOSITORY/manifests/TAG-OR-DIGEST,
// REPOSITORY/blobs/DIGEST or REPOSITORY/referrers/DIGEST.
func (r *Recorded) read(host, at string) (media string, body []byte, err error) {
	rest, name := path.Split(at)
	repository, what := path.Split(strings.TrimSuffix(rest, "/"))
	repository = strings.TrimSuffix(repository, "/")
	layout, index, err := r.layout(host, repository)
	if err != nil {
		return "", nil, err
	}
	digest, isDigest := strings.CutPrefix(name, "sha256:")
	switch {
	case what == "blobs" && isDigest:
		body, err = r.blob(layout, digest)
		return "application/octet-stream", body, err
	case what == "manifests":
		if !isDigest {
			if digest, err = tagged(index, host+"/"+repository, name); err != nil {
				return "", nil, err
			}
		}
		body, err = r.blob(layout, digest)
		return mediaOf(body), body, err
	case what == "referrers" && isDigest:
		body, err = r.referrers(layout, index, digest)
		return "application/vnd.oci.image.index.v1+json", body, err
	}
	return "", nil, fs.ErrNotExist
}

// layout is the folder of a repository.
func (r *Recorded) layout(host, repository string) (dir string, index *v1.IndexManifest, err error) {
	for _, dir := range []string{path.Join(host, repository), path.Join(canonicalHost(host), repository), "."} {
		data, err := r.file(path.Join(dir, "index.json"), maxManifest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		index := &v1.IndexManifest{}
		if err := json.Unmarshal(data, index); err != nil {
			return "", nil, fmt.Errorf("%s: %w", path.Join(dir, "index.json"), err)
		}
		return dir, index, nil
	}
	return "", nil, fs.ErrNotExist
}

// referrers are the manifests of a layout that refer to an image.
func (r *Recorded) referrers(layout string, index *v1.IndexManifest, digest string) ([]byte, error) {
	out := v1.IndexManifest{SchemaVersion: 2, MediaType: "application/vnd.oci.image.index.v1+json", Manifests: []v1.Descriptor{}}
	for _, d := range index.Manifests {
		body, err := r.blob(layout, d.Digest.Hex)
		if err != nil {
			continue // it is not there
		}
		var m struct {
			ArtifactType string `json:"artifactType"`
			Config       struct {
				MediaType string `json:"mediaType"`
			} `json:"config"`
			Subject struct {
				Digest v1.Hash `json:"digest"`
			} `json:"subject"`
		}
		if json.Unmarshal(body, &m) != nil || m.Subject.Digest.Hex != digest {
			continue
		}
		d.ArtifactType = cmp.Or(m.ArtifactType, m.Config.MediaType)
		out.Manifests = append(out.Manifests, d)
	}
	return json.Marshal(out)
}

// canonicalHost is Docker Hub as people write it.
func canonicalHost(host string) string {
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		return "docker.io"
	}
	return host
}

func (r *Recorded) blob(layout, digest string) ([]byte, error) {
	return r.file(path.Join(layout, "blobs", "sha256", path.Base(digest)), maxAttestation)
}

func (r *Recorded) file(name string, limit int64) ([]byte, error) {
	f, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return data, err
}

const (
	refName    = "org.opencontainers.image.ref.name"
	cosignKind = "kind"
)

// tagged is the digest of a tag of a repository.
func tagged(index *v1.IndexManifest, repository, tag string) (string, error) {
	for _, m := range index.Manifests {
		if name := m.Annotations[refName]; name == tag || name == canonicalHost(repository)+":"+tag || name == repository+":"+tag {
			return m.Digest.Hex, nil
		}
	}
	for suffix, kind := range map[string]string{".sig": "sigs", ".att": "atts"} { // of the one image that cosign save writes
		if !strings.HasPrefix(tag, "sha256-") || !strings.HasSuffix(tag, suffix) {
			continue
		}
		image := strings.TrimSuffix(strings.TrimPrefix(tag, "sha256-"), suffix)
		found, holds := "", false
		for _, m := range index.Manifests {
			holds = holds || m.Digest.Hex == image
			if strings.HasPrefix(m.Annotations[cosignKind], "dev.cosignproject.cosign/"+kind) {
				found = m.Digest.Hex
			}
		}
		if holds && found != "" {
			return found, nil
		}
	}
	return "", fs.ErrNotExist
}

// mediaOf is the media type that a manifest has.
func mediaOf(body []byte) string {
	var m struct {
		MediaType string            `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	_ = json.Unmarshal(body, &m) // what is none has no type
	switch {
	case m.MediaType != "":
		return m.MediaType
	case m.Manifests != nil:
		return "application/vnd.oci.image.index.v1+json"
	}
	return "application/vnd.oci.image.manifest.v1+json"
}
