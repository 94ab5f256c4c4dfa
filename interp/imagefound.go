package interp

import (
	"errors"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/wildcard"
	"github.com/kvap/kvap/policy"
)

// A foundImage is an image where an object has it.
type foundImage struct {
	path []string // of the field, as keys and indexes
	text string
	image
	err error // why the text is no image
}

// errImageID is the error of a text like sha256:…, which containerd takes for the ID of an
// image that the node has, whatever repository it came from.
var errImageID = errors.New("it is the ID of an image on a node, of which nobody knows who signed it; name a repository")

// errImageHost is the error of a text like a_b.io/c, which Kyverno takes for a path.
var errImageHost = errors.New("what stands in front of the first slash is no host")

// findImages are the images of an object, with the volumes that are images. What is no image
// is found too: a Pod runs what is beside it.
func (v *vars) findImages(r *policy.Rule, object map[string]any) ([]foundImage, error) {
	kind, _ := object["kind"].(string)
	extractors, err := imageExtractors(r, kind)
	if err != nil {
		return nil, err
	}
	if r.ImageExtractors.Get(kind) == nil && len(extractors) > 0 {
		spec := extractors[0].path[:len(extractors[0].path)-2]
		extractors = append(extractors, imageExtractor{group: "imageVolumes", path: append(spec[:len(spec):len(spec)], "volumes", "*", "image"), value: "reference"})
	}
	var out []foundImage
	for _, e := range extractors {
		e.key = "" // names an image in images, and nothing here
		err := e.extract(v, object, nil, func(_ string, path []string, text string) error {
			if strings.TrimSpace(text) == "" {
				return nil
			}
			one := foundImage{path: path, text: text}
			one.image, one.err = parseImage(text, v.registry)
			switch {
			case validDigest(text):
				one.err = errImageID
			case one.err == nil && one.image.registry == "" && namesRegistry(text):
				one.err = errImageHost
			}
			out = append(out, one)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// malformedImage is why a text among the images of an object is none. It may be why nothing can
// be said of images, and is not to be the way past a rule.
func (v *vars) malformedImage(r *policy.Rule, object map[string]any) error {
	found, err := v.findImages(r, object)
	if err != nil {
		return nil // which is no image's
	}
	for _, f := range found {
		if f.err != nil {
			return f.err
		}
	}
	return nil
}

// host is the registry in the one spelling that it has.
func (i image) host() string { return hostOf(i.registry) }

// hostOf is a host in the one spelling that it has: GHCR.IO:0443 is ghcr.io.
func hostOf(host string) string {
	host = strings.ToLower(host)
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
		port := strings.TrimLeft(host[at:], ":0")
		if host = host[:at]; port != "443" {
			host += ":" + port
		}
	}
	switch host {
	case "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		return "docker.io"
	}
	return host
}

// repositories are the spellings of where an image is, the first as Kyverno has it.
func (i image) repositories() []string {
	host := i.host()
	if host == "" {
		return []string{i.path}
	}
	out := []string{host + "/" + i.path}
	if i.registry != host {
		out = append(out, i.registry+"/"+i.path)
	}
	if host == "docker.io" {
		if official, ok := strings.CutPrefix(i.path, "library/"); ok {
			out = append(out, host+"/"+official)
		} else if !strings.Contains(i.path, "/") {
			out = append(out, host+"/library/"+i.path)
		}
	}
	return out
}

// selectedBy tells whether a pattern means the image, in any spelling: who writes a digest, or
// a host in other letters, does not escape a rule (docs/images.md). Of a digest nobody knows which
// tags it has, so it may have any.
func (i image) selectedBy(patterns []string) bool {
	for _, pattern := range spelled(patterns) {
		for _, at := range i.repositories() {
			for _, text := range i.spellings(at) {
				if wildcard.Match(pattern, text) {
					return true
				}
			}
			if i.digest != "" && wildcard.Match(withoutTag(pattern), at) {
				return true
			}
		}
	}
	return false
}

// spellings are the image in a repository with its tag, with its digest, and with both.
func (i image) spellings(repository string) (out []string) {
	if i.tag != "" {
		out = append(out, repository+":"+i.tag)
	}
	if i.digest != "" {
		out = append(out, repository+"@"+i.digest)
	}
	if i.tag != "" && i.digest != "" {
		out = append(out, repository+":"+i.tag+"@"+i.digest)
	}
	return out
}

// spelled are patterns as they are, and with hosts in the one spelling that they have.
func spelled(patterns []string) []string {
	out := slices.Clone(patterns)
	for _, pattern := range patterns {
		host, path, found := strings.Cut(pattern, "/")
		if found && strings.ContainsAny(host, ".:") && hostOf(host) != host {
			out = append(out, hostOf(host)+"/"+path)
		}
	}
	return out
}

// withoutTag is a pattern of a repository: of one with a tag, what is in front of that.
func withoutTag(pattern string) string {
	at := strings.LastIndexByte(pattern, ':')
	if at <= strings.LastIndexByte(pattern, '/') || strings.Contains(pattern, "@") {
		return pattern
	}
	return pattern[:at]
}

// skips tells whether an entry leaves an image out: by Kyverno's own text, with the host as it
// is. It is an exemption, and so narrow.
func (e *imageEntry) skips(v *vars, i image) (bool, error) {
	canonical := i
	canonical.registry = i.host()
	for _, t := range e.skip {
		pattern, err := v.fillString(t)
		if err != nil {
			return false, err
		}
		if wildcard.Match(pattern, canonical.reference()) {
			return true, nil
		}
	}
	return false, nil
}

// pullReference is the image as a registry is asked for it. A host in one word has a port, or
// it would be read as the front of a path in Docker Hub.
func (i image) pullReference() string {
	if i.registry = i.host(); i.registry != "" && !strings.ContainsAny(i.registry, ".:") {
		i.registry += ":443"
	}
	return i.reference()
}
