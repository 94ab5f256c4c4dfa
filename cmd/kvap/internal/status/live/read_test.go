package live

import (
	"errors"
	"testing"

	"github.com/kvap/kvap/cmd/kvap/internal/status"
	"github.com/kvap/kvap/internal/cluster"
)

// That the cluster has no policies is said only where that is so.
func TestNothingToShow(t *testing.T) {
	some := status.Snapshot{Sources: []*status.Source{{}}}
	forbidden := cluster.LeftOut{Left: []error{errors.New("forbidden")}}
	for _, tt := range []struct {
		of   Reader
		want string
	}{
		{Reader{}, "the cluster has no policies"},
		{Reader{seen: some}, "none of the cluster's policies is asked for; kvap status -A lists all"},
		{Reader{LeftOut: forbidden}, "there is no policy that you may read"},
		{Reader{seen: some, LeftOut: forbidden}, "none of the cluster's policies is asked for; kvap status -A lists all"},
	} {
		if got := tt.of.Nothing(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
