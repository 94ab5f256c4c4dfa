package background

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
)

// A scanCursor is how far the objects that a rule may be about were looked at: up to a page
// of a kind. The zero place is the beginning.
type scanCursor struct {
	kind ObjectKind
	from string
}

// each visits the objects of a kind that a selector selects, however many there are.
func (w *Worker) each(ctx context.Context, k ObjectKind, namespace string, selector labels.Selector, visit func(map[string]any)) error {
	for from := ""; ; {
		page, next, err := w.options.Cluster.Page(ctx, k.APIVersion, k.Kind, namespace, selector, from)
		if err != nil {
			return err
		}
		for _, object := range page {
			visit(object)
		}
		if from = next; from == "" {
			return nil
		}
	}
}
