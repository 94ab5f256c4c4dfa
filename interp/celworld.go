package interp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/interp/internal/expr"
)

// environment is what policies of a kind are compiled with: those of the cluster, or
// of a namespace. Each is made once.
func (in *Interpreter) environment(kind cellib.PolicyKind) (*environment.EnvSet, error) {
	in.celMu.Lock()
	defer in.celMu.Unlock()
	if set, ok := in.celSets[kind]; ok {
		return set, nil
	}
	set, err := withKyverno(cellib.Options(kind, celWorld{in.world, kind.Namespace}))
	if err == nil {
		set, err = set.Extend(celNames(!kind.Images), authorizerNames())
	}
	if err == nil && kind.Mutating {
		set, err = set.Extend(patchTypes())
	}
	if err != nil {
		return nil, err
	}
	if in.celSets == nil {
		in.celSets = map[cellib.PolicyKind]*environment.EnvSet{}
	}
	in.celSets[kind] = set
	return set, nil
}

// withKyverno is the environment of the API server with more in it.
func withKyverno(options []cel.EnvOption) (*environment.EnvSet, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	return base.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options, ProgramOptions: []cel.ProgramOption{budget.Texts()}})
}

// A celWorld is the World as functions of CEL ask it.
type celWorld struct {
	world World
	// namespace confines what the API server is asked for; "" does not.
	namespace string
}

// API implements cellib.World.
func (w celWorld) API(ctx context.Context, path string, body []byte) (answer []byte, found bool, err error) {
	if w.namespace != "" && !inNamespace(path, w.namespace) {
		return nil, false, fmt.Errorf("the policy of namespace %s cannot ask for %q; only paths below that namespace are allowed", w.namespace, path)
	}
	answer, err = w.world.API(ctx, path, body)
	if errors.Is(err, ErrNotFound) {
		return nil, false, nil
	}
	return answer, true, err
}

// Resource implements cellib.World.
func (w celWorld) Resource(ctx context.Context, apiVersion, kind string) (string, error) {
	return w.world.Resource(ctx, apiVersion, kind)
}

// Service implements cellib.World.
func (w celWorld) Service(ctx context.Context, c cellib.Call) (status int, answer []byte, err error) {
	call := ServiceCall{Method: "GET", URL: c.URL, Headers: c.Headers, CABundle: c.CABundle, Data: c.Data}
	if c.Data != nil {
		call.Method = "POST"
	}
	said, err := w.world.Service(ctx, call)
	if err == nil && said.Mocked {
		said.Body, err = withBody(said.Body)
	}
	return said.Status, said.Body, err
}

// withBody is an answer that has itself as its body too.
func withBody(answer []byte) ([]byte, error) {
	var body any
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, err
	}
	out, isMap := body.(map[string]any)
	if !isMap {
		return answer, nil // which stands in body anyway
	}
	out = maps.Clone(out)
	out["body"] = body
	return json.Marshal(out)
}

// Global implements cellib.World.
func (w celWorld) Global(ctx context.Context, name string) (data any, found bool, err error) {
	data, err = w.world.Global(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil, false, nil
	}
	return data, true, err
}

// Metadata implements cellib.World.
func (w celWorld) Metadata(ctx context.Context, reference string) (map[string]any, error) {
	return w.world.Image(ctx, reference, Access{Namespace: w.namespace})
}

// Call implements cellib.World.
func (w celWorld) Call(name string, args ...any) (any, error) {
	return expr.Call(context.Background(), name, args, expr.Surroundings{World: w.world})
}

// Now implements cellib.World.
func (w celWorld) Now() time.Time { return w.world.Now() }
