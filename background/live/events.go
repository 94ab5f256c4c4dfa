package live

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/kvap/kvap/background"
)

// longestNote is what a note of an event has at most, in bytes.
const longestNote = 1000

// Events tells users by events about policies, until the context ends.
func Events(ctx context.Context, config *rest.Config) (func(background.Notice), error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, err
	}
	recorder := broadcaster.NewRecorder(runtime.NewScheme(), FieldManager)
	return func(n background.Notice) {
		about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: n.Policy.Namespace, Name: n.Policy.Name, UID: n.Policy.UID}}
		about.SetGroupVersionKind(schema.GroupVersionKind{Group: n.Policy.Group, Version: "v1", Kind: n.Policy.Kind})
		kind, note := corev1.EventTypeNormal, n.Note
		if n.Warning {
			kind = corev1.EventTypeWarning
		}
		if len(note) > longestNote {
			note = strings.ToValidUTF8(note[:longestNote], "") + "…"
		}
		recorder.Eventf(about, nil, kind, n.Reason, "Generate", "%s", note)
	}, nil
}
