package interp

import (
	"context"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/interp/internal/expr"
)

// environment is what ValidatingPolicies are compiled with: those of the cluster, or
// of a namespace. Each is made once.
func (in *Interpreter) environment(namespace string) (*environment.EnvSet, error) {
	in.celMu.Lock()
	defer in.celMu.Unlock()
	if set, ok := in.celSets[namespace]; ok {
		return set, nil
	}
	set, err := withKyverno(cellib.Options(celWorld{in.world, in.limits, namespace}))
	if err != nil {
		return nil, err
	}
	if in.celSets == nil {
		in.celSets = map[string]*environment.EnvSet{}
	}
	in.celSets[namespace] = set
	return set, nil
}

// withKyverno is the environment of the API server with more in it.
func withKyverno(options []cel.EnvOption) (*environment.EnvSet, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	return base.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options})
}

// A celWorld is the World as functions of CEL ask it.
type celWorld struct {
	world  World
	limits Limits
	// namespace confines what the API server is asked for; "" does not.
	namespace string
}

// API implements cellib.World.
func (w celWorld) API(ctx context.Context, path string) ([]byte, error) {
	if w.namespace != "" && !inNamespace(path, w.namespace) {
		return nil, fmt.Errorf("the policy of namespace %s cannot ask for %q; only paths below that namespace are allowed", w.namespace, path)
	}
	return w.world.API(ctx, path, nil)
}

// Service implements cellib.World.
func (w celWorld) Service(ctx context.Context, url string, headers map[string]string, data []byte) ([]byte, error) {
	call := ServiceCall{Method: "GET", URL: url, Headers: headers, Data: data}
	if data != nil {
		call.Method = "POST"
	}
	return w.world.Service(ctx, call)
}

// Global implements cellib.World.
func (w celWorld) Global(ctx context.Context, name string) (any, error) {
	return w.world.Global(ctx, name)
}

// Metadata implements cellib.World.
func (w celWorld) Metadata(ctx context.Context, reference string) (map[string]any, error) {
	return w.world.Image(ctx, reference, nil)
}

// Image implements cellib.World.
func (w celWorld) Image(reference string) (cellib.Image, error) {
	img, err := parseImage(reference, w.limits.registry())
	return cellib.Image{Registry: img.registry, Repository: img.path, Tag: img.tag, Digest: img.digest}, err
}

// Call implements cellib.World.
func (w celWorld) Call(name string, args ...any) (any, error) {
	return expr.Call(context.Background(), name, args, expr.Surroundings{World: w.world})
}

// Now implements cellib.World.
func (w celWorld) Now() time.Time { return w.world.Now() }
