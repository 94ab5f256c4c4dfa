package notice

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/kvap/kvap/api/v1alpha1"
)

// longest is how many bytes a note has at most: the API server takes 1 kB.
const longest = 1000

// A Recorder makes Events.
type Recorder struct{ events events.EventRecorder }

// By makes them by a recorder that there is.
func By(recorder events.EventRecorder) Recorder { return Recorder{recorder} }

// New makes them in the name of a component, until the context ends.
func New(ctx context.Context, client kubernetes.Interface, component string) (Recorder, error) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return Recorder{}, err
	}
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return Recorder{broadcaster.NewRecorder(runtime.NewScheme(), component)}, nil
}

// Tell makes an Event about an object, and what else has to do with it, which may be nothing. A
// warning is of what somebody should look at.
func (r Recorder) Tell(about, related corev1.ObjectReference, warning bool, reason, action, note string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	if len(note) > longest {
		note = strings.ToValidUTF8(note[:longest], "") + "…"
	}
	var other runtime.Object // nil, and not a nil of a type
	if related.Name != "" {
		other = &related
	}
	r.events.Eventf(&about, other, kind, reason, action, "%s", note)
}

// OfPolicy is a reference to a policy, which users' tools find by the version that its kind has. By
// default that is the one of policies which rule requests.
func OfPolicy(p v1alpha1.PolicyReference, version string) corev1.ObjectReference {
	switch {
	case version != "":
	case p.Group == v1alpha1.Group:
		version = v1alpha1.Version
	default:
		version = "v1"
	}
	return corev1.ObjectReference{
		APIVersion: apischema.GroupVersion{Group: p.Group, Version: version}.String(), Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, UID: p.UID,
	}
}
