package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// The times of a watch. What is not watched, such as params, is looked at again
// after rereadAfter.
const (
	retryDelay  = 2 * time.Second
	gatherDelay = 300 * time.Millisecond // one change is seldom alone
	rereadAfter = 10 * time.Second
)

// awaitChange returns when something has changed of what was listed, or it is time
// to look again.
func (r *statusReader) awaitChange(ctx context.Context) {
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
