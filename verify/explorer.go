package verify

import (
	"context"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A Subject is what requests are made about: policies, exceptions from them, and data that they
// compare with, such as params.
type Subject struct {
	Policies   []*policy.Policy
	Exceptions []*policy.Exception
	Data       []map[string]any
}

// An Explorer makes requests that a subject is likely to care for, and goes on from those that
// showed something new. The same seed makes the same requests.
type Explorer struct {
	about  []*policy.Policy
	make   *generator
	chance *rand.Rand
	queue  [][]byte // decisions that made something new
}

// An Attempt is a request, with the decisions that it was made from.
type Attempt struct {
	*Request
	made []byte
}

// NewExplorer reads what the subject is about.
func NewExplorer(about Subject, schemas *schema.Set, seed uint64) *Explorer {
	return &Explorer{about: about.Policies, make: newGenerator(about, schemas), chance: rand.New(rand.NewPCG(seed, 0x6b766170))}
}

// Next makes one more request.
func (e *Explorer) Next() Attempt {
	c := e.next()
	r := e.make.request(c)
	return Attempt{r, c.made()}
}

// Keep has later requests go on from one that showed something new.
func (e *Explorer) Keep(a Attempt) { e.queue = append(e.queue, a.made) }

// next are the decisions for one more request: new ones, or those of one that
// showed something new, changed in some places.
func (e *Explorer) next() *choice {
	if len(e.queue) == 0 || e.chance.IntN(3) == 0 {
		return follow(nil, e.chance)
	}
	// the later ones needed more luck to find
	from := e.queue[max(e.chance.IntN(len(e.queue)), e.chance.IntN(len(e.queue)))]
	list := append([]byte{}, from...)
	for range 1 + e.chance.IntN(4) {
		if len(list) == 0 {
			break
		}
		at := e.chance.IntN(len(list))
		switch e.chance.IntN(6) {
		case 0:
			list = list[:at]
		case 1:
			list = append(list[:at], list[at+1:]...)
		default:
			list[at] = byte(e.chance.IntN(256))
		}
	}
	return follow(list, e.chance)
}

// Shrink makes a request smaller while it shows the same: first the decisions that it was made
// from, then the objects in it. It asks at most tries times.
func (e *Explorer) Shrink(ctx context.Context, a Attempt, tries int, same func(*Request) bool) *Request {
	sh := &shrinker{make: e.make, ctx: ctx, same: same, smallest: a.Request, left: tries, most: tries}
	sh.decisions(append([]byte{}, a.made...))
	sh.request()
	return sh.smallest
}

// Worlds are the sets of objects that the policies look up: those that are given, with sets of the
// ConfigMaps that are not, made by the seed. Where none is missing there is one set.
func (e *Explorer) Worlds(given []*unstructured.Unstructured, seed uint64) [][]*unstructured.Unstructured {
	return configMaps(e.about, given, e.make.hints, seed)
}

// hints are what the sources talk about.
func (s Subject) hints() *hints {
	var sources []*policy.Node
	for _, p := range s.Policies {
		sources = append(sources, p.Source)
	}
	for _, e := range s.Exceptions {
		sources = append(sources, e.Source)
	}
	h := readHints(sources...)
	for _, data := range s.Data {
		h.value(data)
	}
	return h
}

// About are the resources that the subject names, sorted.
func (e *Explorer) About() []string {
	var out []string
	for _, t := range e.make.targets[:e.make.named] {
		name := t.resource.Group + "/" + t.resource.Plural
		if t.sub != nil {
			name += "/" + t.sub.Name
		}
		out = add(out, name)
	}
	slices.Sort(out)
	return out
}
