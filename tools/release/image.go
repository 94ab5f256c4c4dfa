package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	inside   = "/usr/local/bin/"
	nobody   = "65532:65532" // as distroless calls its user without rights
	noBase   = "none"
	scheme   = "org.opencontainers.image."
	licensed = "Apache-2.0"
)

// image is an index of an image for each Linux program, each a layer on the base.
func image(ctx context.Context, base, name, version string, programs map[platform][]byte, s workTree) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		program, ok := programs[platform{"linux", arch}]
		if !ok {
			continue
		}
		on := v1.Platform{OS: "linux", Architecture: arch}
		under, err := baseImage(ctx, base, on)
		if err != nil {
			return nil, err
		}
		made, err := layered(under, on, name, version, program, s)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{Platform: &on}})
	}
	return index, nil
}

func baseImage(ctx context.Context, base string, on v1.Platform) (v1.Image, error) {
	if base == noBase {
		return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), nil
	}
	ref, err := name.ParseReference(base)
	if err != nil {
		return nil, err
	}
	img, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(on), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, fmt.Errorf("the base image, which -base=none does without: %w", err)
	}
	return img, nil
}

// layered is the base with the program, which runs as a user without rights.
func layered(base v1.Image, on v1.Platform, name, version string, program []byte, s workTree) (v1.Image, error) {
	var layer bytes.Buffer
	path := inside + name
	if err := tarred(&layer, map[string][]byte{path[1:]: program}, path[1:], s.time); err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	made, err := mutate.Append(base, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: s.time}, CreatedBy: name + " " + version}})
	if err != nil {
		return nil, err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = on.OS, on.Architecture, v1.Time{Time: s.time}
	config.Config.Entrypoint, config.Config.Cmd, config.Config.User = []string{path}, nil, nobody
	config.Config.Labels = map[string]string{
		scheme + "source": home, scheme + "version": version, scheme + "revision": s.commit, scheme + "licenses": licensed,
		scheme + "created": s.time.Format(time.RFC3339),
	}
	return mutate.ConfigFile(made, config)
}

// writeImage writes the layout, and pushes the image where that is asked for.
func writeImage(ctx context.Context, dir, push, version string, index v1.ImageIndex) error {
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	if push == "" {
		return nil
	}
	ref, err := name.ParseReference(push + ":" + version)
	if err != nil {
		return err
	}
	return remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}
