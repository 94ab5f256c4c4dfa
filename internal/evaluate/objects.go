package evaluate

import (
	"encoding/json"
	"fmt"
	"maps"

	sigsjson "sigs.k8s.io/json"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
)

// readObjects reads what rules look up. A Context of the Kyverno command line
// counts as the objects in it, and as the answers.
func (e *Evaluation) readObjects() error {
	objects, sources, found, err := input.Manifests("--param", e.options.Lookups, e.options.Stdin)
	if err != nil {
		return err
	}
	e.Sources = append(e.Sources, sources...)
	e.Found = append(e.Found, found...)
	for _, o := range objects {
		if o.Kind() == "" || o.APIVersion() == "" {
			e.Found = append(e.Found, diag.Errorf(o.Pos, diag.BadRequest, "the object has no kind or no apiVersion; rules cannot look it up"))
			continue
		}
		if err := e.readObject(o); err != nil {
			e.Found = append(e.Found, diag.Errorf(o.Pos, diag.BadRequest, "%v", err))
		}
	}
	return nil
}

// readObject reads an object that rules look up, or a Context.
func (e *Evaluation) readObject(o manifest.Object) error {
	e.objects = append(e.objects, o.Objects()...)
	if !o.IsContext() {
		return nil
	}
	text, err := json.Marshal(o.Value["spec"])
	if err != nil {
		return err
	}
	var context judge.Context
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(text, &context); err != nil {
		return fmt.Errorf("the Context cannot be read: %w", err)
	}
	e.contexts = append(e.contexts, context)
	return nil
}

// world is what the interpreter asks.
func (e *Evaluation) world() *interp.Offline {
	w := judge.World(e.objects, e.schemas)
	w.Images = map[string]map[string]any{}
	if e.options.Registry != nil {
		w.Proofs, w.Metadata = e.options.Registry, e.options.Registry.Image
	}
	for _, c := range e.contexts {
		maps.Copy(w.Images, c.ImageData())
		c.Give(w)
	}
	return w
}
