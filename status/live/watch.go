package live

import (
	"bytes"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/kvap/kvap/internal/cluster"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/status"
)

// The times of a watch. What is not watched, such as params, is looked at again
// after rereadAfter.
const (
	retryDelay  = 2 * time.Second
	gatherDelay = 300 * time.Millisecond // one change is seldom alone
	rereadAfter = 10 * time.Second
)

// Watch shows the status whenever it has changed, until the context ends. Where it
// could be read once, warn is told of what goes wrong later, and it is read again.
func Watch(ctx context.Context, c *cluster.Connection, counts func(namespace string) bool, filter status.Filter,
	show func(r *Reader, found report.Status, first bool) error, warn func(error)) error {
	var last []byte
	for ctx.Err() == nil {
		read, err := Read(ctx, c, counts)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && last == nil:
			return err
		case err != nil: // it may come back
			warn(err)
			pause(ctx, retryDelay)
			continue
		}
		found := read.Status(filter)
		var text bytes.Buffer
		if err := found.WriteJSON(&text); err != nil {
			return err
		}
		if !bytes.Equal(text.Bytes(), last) {
			if err := show(read, found, last == nil); err != nil {
				return err
			}
			last = text.Bytes()
		}
		read.awaitChange(ctx)
	}
	return nil
}

// awaitChange returns when something has changed of what was listed, or it is time
// to look again.
func (r *Reader) awaitChange(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, rereadAfter)
	defer cancel()
	config := *r.Config
	config.Timeout = 0 // which would end the watch
	client, err := dynamic.NewForConfig(&config)
	if err != nil {
		pause(ctx, rereadAfter)
		return
	}
	changed := make(chan struct{}, 1)
	for resource, version := range r.versions {
		w, err := client.Resource(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			pause(ctx, retryDelay) // the list is too old, or the server has gone
			return
		}
		defer w.Stop()
		go tellFirst(ctx, w, changed)
	}
	select {
	case <-changed:
		pause(ctx, gatherDelay)
	case <-ctx.Done():
	}
}

// tellFirst tells of the first change, or of the end of the watch.
func tellFirst(ctx context.Context, w watch.Interface, changed chan<- struct{}) {
	select {
	case <-w.ResultChan():
		select {
		case changed <- struct{}{}:
		default:
		}
	case <-ctx.Done():
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
