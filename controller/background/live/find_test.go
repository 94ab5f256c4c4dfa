package live

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A store has objects of one kind, by name, and counts lists.
type store struct {
	client.Client
	uids  map[string]types.UID
	lists int
}

func (*store) IsObjectNamespaced(runtime.Object) (bool, error) { return true, nil }

func (s *store) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	uid, found := s.uids[key.Name]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	o.(*unstructured.Unstructured).SetUID(uid)
	return nil
}

func (s *store) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	s.lists++
	for name, uid := range s.uids {
		out := list.(*metav1.PartialObjectMetadataList)
		out.Items = append(out.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid}})
	}
	return nil
}

// Thousands of triggers are found with one list; one that is gone, or has come, or was
// made anew under its name, takes another.
func TestFind(t *testing.T) {
	s := &store{uids: map[string]types.UID{}}
	for i := range 2000 {
		s.uids[fmt.Sprint("n", i)] = types.UID(fmt.Sprint("u", i))
	}
	c := &Client{client: s, names: expiring.NewExpiring()}
	find := func(uid types.UID, want bool, lists int) {
		t.Helper()
		s.lists = 0
		_, found, err := c.Find(t.Context(), "v1", "ConfigMap", "shop", uid)
		if found != want || err != nil || s.lists != lists {
			t.Errorf("%s: found %t, %v, with %d lists", uid, found, err, s.lists)
		}
	}
	find("u0", true, 1)
	for i := range 2000 {
		find(types.UID(fmt.Sprint("u", i)), true, 0)
	}
	find("new", false, 1)
	s.uids["later"] = "new"
	find("new", true, 1)
	delete(s.uids, "n1")
	find("u1", false, 0)
	s.uids["n2"] = "again"
	find("u2", false, 0)
	find("again", true, 1)
}
