package live

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/interp"
)

// A wide client has objects in no namespace only, and counts what it is asked.
type wide struct {
	client.Client
	asked int
}

func (*wide) IsObjectNamespaced(runtime.Object) (bool, error) { return false, nil }

func (w *wide) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	w.asked++
	return nil
}

func (w *wide) List(context.Context, client.ObjectList, ...client.ListOption) error {
	w.asked++
	return nil
}

func (w *wide) Create(context.Context, client.Object, ...client.CreateOption) error {
	w.asked++
	return nil
}

func (w *wide) Update(context.Context, client.Object, ...client.UpdateOption) error {
	w.asked++
	return nil
}

func (w *wide) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	w.asked++
	return nil
}

func (w *wide) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	w.asked++
	return nil
}

// Who is confined to a namespace reaches no object that is in none.
func TestOutside(t *testing.T) {
	const version, kind, in = "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "shop"
	asked := &wide{}
	c := &Client{client: asked}
	object := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "all", "namespace": in}}
	for verb, do := range map[string]func() error{
		"get":    func() error { _, _, err := c.Get(t.Context(), version, kind, in, "all"); return err },
		"create": func() error { _, err := c.Create(t.Context(), object); return err },
		"update": func() error { _, err := c.Update(t.Context(), object, ""); return err },
		"apply":  func() error { _, err := c.Apply(t.Context(), object); return err },
		"delete": func() error { return c.Delete(t.Context(), object) },
		"label": func() error {
			one := ""
			return c.Label(t.Context(), interp.ObjectReference{APIVersion: version, Kind: kind, Namespace: in, Name: "all"}, map[string]*string{"a": &one})
		},
	} {
		if err := do(); err == nil || asked.asked != 0 {
			t.Errorf("%s: %v, and %d requests", verb, err, asked.asked)
		}
		asked.asked = 0
	}
	list, err := c.List(t.Context(), version, kind, in, labels.Everything())
	_, found, findErr := c.Find(t.Context(), version, kind, in, "u")
	if len(list) > 0 || err != nil || found || findErr != nil || asked.asked != 0 {
		t.Errorf("%v %v, %t %v, and %d requests", list, err, found, findErr, asked.asked)
	}
}
