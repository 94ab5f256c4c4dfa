package live

import (
	"context"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A long list has a page of one object for each number, of which some are asked for too
// late.
type long struct {
	client.Client
	pages int
	late  string
}

func (*long) IsObjectNamespaced(runtime.Object) (bool, error) { return true, nil }

func (l *long) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	if o.Continue == l.late && l.late != "" {
		err := apierrors.NewResourceExpired("the list is too old")
		err.ErrStatus.Continue = "0" + o.Continue
		return err
	}
	at, _ := strconv.Atoi(o.Continue)
	out := list.(*unstructured.UnstructuredList)
	out.Items = make([]unstructured.Unstructured, 1)
	out.Items[0].SetUnstructuredContent(map[string]any{"metadata": map[string]any{"name": strconv.Itoa(at)}})
	if at+1 < l.pages {
		out.SetContinue(strconv.Itoa(at + 1))
	}
	return nil
}

// Page after page leads through any number of objects; one that is asked for too late
// is asked for anew where the API server says. A list as a whole is bounded.
func TestPage(t *testing.T) {
	c := &Client{client: &long{pages: maxListed + 7, late: "9"}}
	seen, from := 0, ""
	for {
		page, next, err := c.Page(t.Context(), "v1", "ConfigMap", "", labels.Everything(), from)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(page)
		if from = next; next == "" {
			break
		}
	}
	if seen != maxListed+7 {
		t.Errorf("%d objects", seen)
	}
	if list, err := c.List(t.Context(), "v1", "ConfigMap", "", labels.Everything()); err == nil {
		t.Errorf("a list of %d", len(list))
	}
}
