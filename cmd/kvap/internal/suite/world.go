package suite

import (
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
)

// answers are what a suite, its values or its context mock. The type has a name of its
// own so that the parts of a file can embed it.
type answers = judge.Answers

// world is what the interpreter asks: the objects that rules may look up, each at
// its own path of the API and in the lists of its kind, and the answers that are
// mocked.
func (r *run) world(objects []map[string]any) *interp.Offline {
	w := judge.World(objects, r.runner.Schemas)
	w.Images, w.Complete, w.Metadata = r.images, true, r.runner.Metadata
	w.Proofs = r.runner.Registry
	w.Answers, w.Globals, w.Mocked = judge.Published(r.definitions), map[string]any{}, map[string]int{}
	for _, a := range r.answers {
		a.Give(w)
	}
	return w
}
