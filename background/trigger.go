package background

import (
	"context"
	"fmt"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
)

// patience is how long a request may take from here to the store: as long as the API
// server lets any request take, and a little. What comes to less could be done before
// the request is through, and be lost. An update that changes nothing is waited for as
// long: nobody can tell it from one that is not stored yet.
const patience = 65 * time.Second

// A found trigger is the object that the work is about.
type foundTrigger struct {
	object map[string]any // as it is stored, or as it was before it went
	gone   bool
	ending bool   // it is being deleted, and something holds it
	why    string // there is nothing to do; empty where there is
}

// find reads the trigger as the request has left it.
func (w *Worker) find(ctx context.Context, j job) (foundTrigger, error) {
	var object, old map[string]any
	operation := ""
	if j.request != nil {
		var err error
		if object, err = objectOf(j.request.Object); err != nil {
			return foundTrigger{}, err
		}
		if old, err = objectOf(j.request.OldObject); err != nil {
			return foundTrigger{}, err
		}
		operation = j.request.Operation
	}
	if object != nil && operation != "DELETE" { // of a connection or a subresource
		return foundTrigger{object: object}, nil
	}
	live, found, err := w.live(ctx, j.trigger)
	if err != nil {
		return foundTrigger{}, err
	}
	if operation == "DELETE" {
		return deleted(j, live, found, old)
	}
	return asStored(j, live, found, old, operation)
}

// deleted waits until the object is gone, or about to.
func deleted(j job, live map[string]any, found bool, old map[string]any) (foundTrigger, error) {
	switch {
	case old == nil:
		return foundTrigger{}, fmt.Errorf("the request does not have the object that it deleted")
	case !found || metaText(live, "deletionTimestamp") != "":
		return foundTrigger{object: old, gone: true}, nil
	case j.age < patience:
		return foundTrigger{}, errEarly
	}
	return foundTrigger{why: "the object was not deleted"}, nil
}

// asStored waits until the object is what the request made of it.
func asStored(j job, live map[string]any, found bool, old map[string]any, operation string) (foundTrigger, error) {
	switch {
	case !found && operation == "CREATE" && j.age < patience:
		return foundTrigger{}, errEarly
	case !found && j.remove && old != nil:
		return foundTrigger{object: old, gone: true}, nil
	case !found:
		return foundTrigger{why: "the object is not there"}, nil
	case operation == "UPDATE" && old != nil && metaText(live, "resourceVersion") == metaText(old, "resourceVersion") && j.age < patience:
		return foundTrigger{}, errEarly
	}
	return foundTrigger{object: live, ending: metaText(live, "deletionTimestamp") != ""}, nil
}

// live is the object that is meant, and no other of its name.
func (w *Worker) live(ctx context.Context, at v1alpha1.ObjectReference) (map[string]any, bool, error) {
	if at.Name == "" {
		return w.options.Cluster.Find(ctx, at.APIVersion, at.Kind, at.Namespace, at.UID)
	}
	object, found, err := w.options.Cluster.Get(ctx, at.APIVersion, at.Kind, at.Namespace, at.Name)
	if found && at.UID != "" && metaText(object, "uid") != string(at.UID) {
		return nil, false, nil
	}
	return object, found, err
}

func metaText(object map[string]any, key string) string {
	meta, _ := object["metadata"].(map[string]any)
	s, _ := meta[key].(string)
	return s
}
