package verify

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

// maxShrinking bounds the requests that are tried to make a counterexample
// smaller. It is a number and no time, so that the same seed gives the same.
const maxShrinking = 3000

// shrink makes a disagreement smaller. What is left shows the same disagreement.
func (s *search) shrink(ctx context.Context, a Attempt, o judge.Opinion) (*Request, judge.Opinion) {
	smallest := s.explore.Shrink(ctx, a, maxShrinking, func(r *Request) bool {
		opinions, err := s.judges.Judge(ctx, r)
		if err != nil {
			return false
		}
		for _, other := range opinions {
			if other.Rule == o.Rule && other.Native == o.Native && other.Status == o.Status && other.Agree() == o.Agree() {
				o = other
				return true
			}
		}
		return false
	})
	return smallest, o
}

type shrinker struct {
	make       *generator
	ctx        context.Context
	same       func(*Request) bool // whether a request shows what the smallest shows
	smallest   *Request
	left, most int // how often it is asked
}

// try takes the request if it shows the same.
func (sh *shrinker) try(r *Request) bool {
	if sh.left <= 0 || sh.ctx.Err() != nil {
		return false
	}
	sh.left--
	if !sh.same(r) {
		return false
	}
	sh.smallest = r
	return true
}

// decisions leaves out decisions, and makes others the plainest, as long as what
// comes of them shows the disagreement.
func (sh *shrinker) decisions(list []byte) {
	works := func(list []byte) bool { return sh.try(sh.make.request(replay(list))) }
	for again := true; again && sh.left > sh.most/3; {
		again = false
		for size := max(len(list)/2, 1); size > 0; size /= 2 {
			for at := 0; at+size <= len(list); {
				without := slices.Delete(slices.Clone(list), at, at+size)
				zeroed := slices.Clone(list)
				clear(zeroed[at : at+size])
				switch {
				case works(without):
					list, again = without, true
				case !bytes.Equal(zeroed, list) && works(zeroed):
					list, again = zeroed, true
					at += size
				default:
					at += size
				}
			}
		}
	}
}

// request leaves out what of the request does not matter.
func (sh *shrinker) request() {
	for _, plainer := range []func(*Request){
		func(r *Request) { r.Groups = nil },
		func(r *Request) { r.User = "alice" },
		func(r *Request) { r.DryRun = false },
		func(r *Request) {
			if r.NamespaceLabels != nil {
				r.NamespaceLabels = map[string]string{namespaceName: r.Namespace}
			}
		},
		func(r *Request) { r.NamespaceAnnotations = nil },
		func(r *Request) {
			if r.Operation == "UPDATE" && r.Subresource == "" {
				r.Operation, r.OldObject = "CREATE", nil
			}
		},
		func(r *Request) {
			if r.Object != nil && r.OldObject != nil {
				r.OldObject = r.Object
			}
		},
	} {
		r := *sh.smallest
		plainer(&r)
		sh.try(&r)
	}
	for again := true; again && sh.left > 0; {
		again = sh.object(func(r *Request) *map[string]any { return &r.Object })
		again = sh.object(func(r *Request) *map[string]any { return &r.OldObject }) || again
	}
}

const namespaceName = "kubernetes.io/metadata.name"

// object leaves out parts of one of the objects, one after the other.
func (sh *shrinker) object(of func(*Request) *map[string]any) (smaller bool) {
	object := *of(sh.smallest)
	if object == nil {
		return false
	}
	for _, path := range pathsOf(object) {
		if len(path) == 1 && (path[0] == "kind" || path[0] == "apiVersion" || path[0] == "metadata") ||
			len(path) == 2 && path[0] == "metadata" && (path[1] == "name" || path[1] == "namespace") {
			continue
		}
		r := *sh.smallest
		without, ok := remove(*of(&r), path).(map[string]any)
		if !ok || !sh.make.fits(without, r.Kind) {
			continue
		}
		*of(&r) = without
		smaller = sh.try(&r) || smaller
	}
	return smaller
}

// pathsOf are the places in a value, the larger parts first. A step is a key or
// an index.
func pathsOf(v any) (out [][]any) {
	var walk func(v any, path []any)
	walk = func(v any, path []any) {
		below := func(step any) []any { return append(slices.Clone(path), step) }
		switch v := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				out = append(out, below(key))
				walk(v[key], below(key))
			}
		case []any:
			for i := len(v) - 1; i >= 0; i-- {
				out = append(out, below(i))
				walk(v[i], below(i))
			}
		}
	}
	walk(v, nil)
	return out
}

// remove is v without the part at a path, which may be gone already.
func remove(v any, path []any) any {
	switch v := v.(type) {
	case map[string]any:
		key, ok := path[0].(string)
		sub, present := v[key]
		if !ok || !present {
			return nil
		}
		out := maps.Clone(v)
		if len(path) == 1 {
			delete(out, key)
			return out
		}
		if out[key] = remove(sub, path[1:]); out[key] == nil {
			return nil
		}
		return out
	case []any:
		i, ok := path[0].(int)
		if !ok || i >= len(v) || len(path) == 1 && len(v) == 1 { // an empty list is not smaller than none, and a required one is not empty
			return nil
		}
		if len(path) == 1 {
			return slices.Delete(slices.Clone(v), i, i+1)
		}
		out := slices.Clone(v)
		if out[i] = remove(v[i], path[1:]); out[i] == nil {
			return nil
		}
		return out
	}
	return nil
}

// fits tells whether an API server could have the object: it has what its schema
// requires, and the form that the server gives it.
func (g *generator) fits(object map[string]any, kind schema.GVK) bool {
	if t := g.schemas.Type(kind); t.Missing(object) != "" {
		return false
	}
	same, err := apiserver.Canonical(object, apischema.GroupVersionKind(kind))
	return err == nil && reflect.DeepEqual(same, object)
}
