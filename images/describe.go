package images

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Describe is what a registry knows of an image: image, resolvedImage, registry, repository,
// identifier, manifest, configData and, of several platforms, manifestList.
func (r Registry) Describe(ctx context.Context, reference string) (map[string]any, error) {
	ref, err := name.ParseReference(reference, r.options()...)
	if err != nil {
		return nil, fmt.Errorf("failed to parse image reference: %s: %w", reference, err)
	}
	return Describe(reference, ref, remote.WithContext(ctx), remote.WithTransport(r.transport()))
}

// Describe asks as options say.
func Describe(reference string, ref name.Reference, options ...remote.Option) (map[string]any, error) {
	descriptor, err := remote.Get(ref, options...)
	if err != nil {
		return nil, fmt.Errorf("failed to fetch image reference: %s: %w", reference, err)
	}
	one, err := descriptor.Image()
	if err != nil {
		return nil, fmt.Errorf("failed to resolve image reference: %s: %w", reference, err)
	}
	manifest, err := one.RawManifest()
	if err != nil {
		return nil, fmt.Errorf("failed to fetch manifest for image reference: %s: %w", reference, err)
	}
	config, err := one.RawConfigFile()
	if err != nil {
		return nil, fmt.Errorf("failed to fetch config for image reference: %s: %w", reference, err)
	}
	out := map[string]any{
		"image": reference, "resolvedImage": ref.Context().Name() + "@" + descriptor.Digest.String(),
		"registry": ref.Context().RegistryStr(), "repository": ref.Context().RepositoryStr(), "identifier": ref.Identifier(),
	}
	parts := map[string][]byte{"manifest": manifest, "configData": config}
	if descriptor.MediaType.IsIndex() {
		parts["manifestList"] = descriptor.Manifest
	}
	for key, data := range parts {
		var value any
		if err := kjson.Unmarshal(data, &value); err != nil {
			return nil, fmt.Errorf("the registry's %s of %s is no JSON: %w", key, reference, err)
		}
		out[key] = value
	}
	return out, nil
}
