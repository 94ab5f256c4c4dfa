package background

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
)

// patience is how long a request may take from here to the store: as long as the API
// server lets any request take, and a little. What comes to less could be done before
// the request is through, and be lost.
const patience = 65 * time.Second

// A found trigger is the object that the work is about.
type foundTrigger struct {
	object map[string]any // as it is stored, or as it was before it went
	gone   bool
	ending bool   // it is being deleted, and something holds it
	why    string // there is nothing to do; empty where there is
	forged bool   // the API server did not send the request
}

// find reads the trigger as the request has left it. It waits until the object is gone, or
// about to, or is what the request made of it.
func (w *Worker) find(ctx context.Context, j job) (foundTrigger, error) {
	request := cmp.Or(j.request, &v1alpha1.CapturedRequest{})
	object, err := objectOf(request.Object)
	if err != nil {
		return foundTrigger{}, err
	}
	old, err := objectOf(request.OldObject)
	if err != nil {
		return foundTrigger{}, err
	}
	operation := request.Operation
	if object != nil && operation != "DELETE" { // of a connection or a subresource
		return foundTrigger{object: object}, nil
	}
	live, found, err := w.live(ctx, j.trigger)
	if err != nil {
		return foundTrigger{}, err
	}
	if !found && (operation == "UPDATE" || operation == "DELETE") {
		if forged, err := w.isOlder(ctx, j); forged || err != nil {
			return notWhatWas(operation), err
		}
	}
	ending := metaText(live, "deletionTimestamp") != ""
	switch deletes := operation == "DELETE"; {
	case deletes && old == nil:
		return foundTrigger{}, fmt.Errorf("the request does not have the object that it deleted")
	case deletes && (!found || ending):
		return foundTrigger{object: old, gone: true}, nil
	case deletes && j.age < patience:
		return foundTrigger{}, errEarly
	case deletes:
		return foundTrigger{why: "the object was not deleted"}, nil
	case !found && operation == "CREATE" && j.age < patience:
		return foundTrigger{}, errEarly
	case !found && j.remove && old != nil:
		return foundTrigger{object: old, gone: true}, nil
	case !found:
		return foundTrigger{why: "the object is not there"}, nil
	case operation == "CREATE" && !j.created(live), operation == "UPDATE" && (j.trigger.UID == "" || old != nil && metaText(old, "uid") != string(j.trigger.UID)):
		return notWhatWas(operation), nil
	case operation == "UPDATE" && !request.Unchanged && old != nil && metaText(live, "resourceVersion") == metaText(old, "resourceVersion") && j.age < patience:
		return foundTrigger{}, errEarly
	}
	return foundTrigger{object: live, ending: ending}, nil
}

// notWhatWas is a trigger that no API server told of.
func notWhatWas(operation string) foundTrigger {
	did := map[string]string{"CREATE": "created just then", "UPDATE": "changed", "DELETE": "deleted"}[operation]
	return foundTrigger{
		why:    "the object that is there is not the one that the request says was " + did + ", so nothing is done for the request; who reaches the webhook?",
		forged: true,
	}
}

// maxSkew is how far the clocks of two API servers may be apart.
const maxSkew = time.Minute

// created tells that an object is the one that the request has created: by its UID and
// its time, and by when the request came. Whoever reaches the webhook could ask in the
// name of the API server and of any user; but what they say to be created is not, or
// was long before.
func (j job) created(live map[string]any) bool {
	at := metaText(live, "creationTimestamp")
	if j.trigger.UID == "" || at != j.request.Created {
		return false
	}
	if at == "" { // of a server that keeps no times
		return true
	}
	made, err := time.Parse(time.RFC3339, at)
	return err == nil && j.begun.Sub(made) <= patience+maxSkew
}

// isOlder tells of another object of the trigger's name that was there before the request: so
// the trigger was not.
func (w *Worker) isOlder(ctx context.Context, j job) (bool, error) {
	if j.trigger.Name == "" {
		return false, nil
	}
	another, found, err := w.options.Cluster.Get(ctx, j.trigger.APIVersion, j.trigger.Kind, j.trigger.Namespace, j.trigger.Name)
	if err != nil || !found || metaText(another, "uid") == string(j.trigger.UID) {
		return false, err
	}
	made, err := time.Parse(time.RFC3339, metaText(another, "creationTimestamp"))
	return err == nil && made.Add(maxSkew).Before(j.begun), nil
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
