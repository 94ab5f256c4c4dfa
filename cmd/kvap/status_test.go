package main

import (
	"errors"
	"testing"

	"github.com/kvap/kvap/status"
)

// That the cluster has no policies is said only where that is so.
func TestNothingToShow(t *testing.T) {
	some := status.Cluster{Sources: []*status.Source{{}}}
	forbidden := leftOut{left: []error{errors.New("forbidden")}}
	for _, tt := range []struct {
		of   statusReader
		want string
	}{
		{statusReader{}, "the cluster has no policies"},
		{statusReader{cluster: some}, "none of the cluster's policies is asked for; kvap status -A lists all"},
		{statusReader{leftOut: forbidden}, "there is no policy that you may read"},
		{statusReader{cluster: some, leftOut: forbidden}, "none of the cluster's policies is asked for; kvap status -A lists all"},
	} {
		if got := tt.of.nothing(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
