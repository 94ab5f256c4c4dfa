package controller

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	builtin "github.com/kvap/kvap/schema"
)

// paged is an API server that has two pages of definitions, and writes them into what
// it is given as clients do: what the second page does not say stays as it was.
type paged struct {
	client.Client
	asked []string
}

func (p *paged) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	p.asked = append(p.asked, o.Continue)
	if len(p.asked) > 2 {
		return fmt.Errorf("asked %q", p.asked)
	}
	text := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList","metadata":{"continue":"more"},"items":[]}`
	if o.Continue != "" {
		text = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList","metadata":{},"items":[]}`
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	_, _, err = serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode([]byte(text), nil, list)
	return err
}

// Definitions come in pages, of which the last ends it.
func TestPagesOfDefinitionsEnd(t *testing.T) {
	set, err := builtin.Builtin("1.36")
	if err != nil {
		t.Fatal(err)
	}
	types := &clusterTypes{builtin: set, direct: &paged{}}
	if err := types.read(t.Context(), nil, "s"); err != nil {
		t.Error(err)
	}
}
