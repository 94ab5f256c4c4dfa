package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kvap/kvap/interp"
)

// globals are the GlobalContextEntries of the cluster, each kept ready.
type globals struct {
	world *World

	mu      sync.RWMutex
	source  *watch // of the entries; nil where the cluster has no such kind
	entries map[string]*global
	// followed tells that the entries which were there at first are among the entries, and read
	// that each of these was read, or cannot be.
	followed, read bool
}

// A global is an entry: objects that are watched, or an answer that is fetched again
// and again.
type global struct {
	spec map[string]any
	stop context.CancelFunc

	objects *watch // nil of a call

	mu          sync.Mutex
	answer      any
	err         error
	projections map[string]string // name to expression
	projected   map[string]any
	asOf        int64
}

func newGlobals(w *World) *globals {
	return &globals{world: w, entries: map[string]*global{}}
}

// globalsInterval is how soon a change of the entries is seen.
const globalsInterval = time.Second

// run follows the entries.
func (g *globals) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		g.find(ctx)
		g.follow(ctx)
	}, globalsInterval)
}

// find watches the entries once the cluster has the kind.
func (g *globals) find(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.source != nil {
		return
	}
	for _, version := range []string{"v2", "v2beta1", "v2alpha1"} {
		at := schema.GroupVersionResource{Group: "kyverno.io", Version: version, Resource: "globalcontextentries"}
		if _, served := g.world.Kind(at.Group, at.Version, at.Resource); served {
			g.source = g.world.watches.start(ctx, apiPath{resource: at})
			return
		}
	}
}

// ready tells what rules cannot ask for yet; nil once each entry that was there at first was
// read, or cannot be. One that is made later is not waited for: whoever makes it must not end
// the readiness of all.
func (g *globals) ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.read:
		return nil
	case !g.followed:
		return errors.New("the global context entries are not read yet")
	}
	for _, name := range slices.Sorted(maps.Keys(g.entries)) {
		if g.entries[name].pending() {
			return fmt.Errorf("the global context entry %s is not read yet", name)
		}
	}
	g.read = true
	return nil
}

// pending tells that it is not known yet whether an entry can be read.
func (e *global) pending() bool {
	if e.objects != nil {
		return errors.Is(e.objects.unread(), errNotYet)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Is(e.err, errNotYet)
}

// follow starts and stops what the entries want.
func (g *globals) follow(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.source != nil && !g.source.synced() {
		return
	}
	g.followed = true
	if g.source == nil {
		return
	}
	there := map[string]bool{}
	for _, object := range g.source.objects() {
		o := unstructured.Unstructured{Object: object.(map[string]any)}
		spec, _ := o.Object["spec"].(map[string]any)
		there[o.GetName()] = true
		if old := g.entries[o.GetName()]; old != nil {
			if reflect.DeepEqual(old.spec, spec) {
				continue
			}
			old.stop()
		}
		g.entries[o.GetName()] = g.begin(ctx, spec)
	}
	for name, entry := range g.entries {
		if !there[name] {
			entry.stop()
			delete(g.entries, name)
		}
	}
}

var errNotYet = errors.New("it is not read yet")

// begin starts an entry.
func (g *globals) begin(ctx context.Context, spec map[string]any) *global {
	out := &global{spec: spec, err: errNotYet, projections: map[string]string{}}
	ctx, out.stop = context.WithCancel(ctx)
	list, _ := spec["projections"].([]any)
	for _, item := range list {
		p, _ := item.(map[string]any)
		out.projections[stringField(p, "name")] = stringField(p, "jmesPath")
	}
	if r, ok := spec["kubernetesResource"].(map[string]any); ok {
		at := schema.GroupVersionResource{Group: stringField(r, "group"), Version: stringField(r, "version"), Resource: stringField(r, "resource")}
		out.objects = g.world.watches.start(ctx, apiPath{resource: at, namespace: stringField(r, "namespace")})
		return out
	}
	if call, ok := spec["apiCall"].(map[string]any); ok {
		go out.refresh(ctx, g.world, call)
		return out
	}
	out.err = errors.New("it says neither what to watch nor what to ask")
	return out
}

func stringField(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// refresh asks again and again. An answer that does not come takes the place of the
// one before, which may be wrong by now.
func (e *global) refresh(ctx context.Context, w *World, call map[string]any) {
	interval, tries := rhythm(call)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		answer, err := persist(ctx, tries, func() (any, error) { return callEntry(ctx, w, call) })
		e.mu.Lock()
		defer e.mu.Unlock()
		e.answer, e.err, e.projected = answer, err, nil
	}, interval)
}

// The bounds of how often a call is made, whatever its entry says.
const (
	usualRefresh   = 10 * time.Minute
	soonestRefresh = time.Second
	fewestTries    = 3
	mostTries      = 10
)

// betweenTries is a pause in which a server may come back: without one all tries are
// over at once, and the next are an interval away.
const betweenTries = time.Second

// persist asks until there is an answer, as often as it may.
func persist(ctx context.Context, tries int64, ask func() (any, error)) (answer any, err error) {
	for {
		if answer, err = ask(); err == nil || tries <= 1 {
			return answer, err
		}
		tries--
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(betweenTries):
		}
	}
}

// rhythm is how long after an answer a call is made again, and how often it is tried.
func rhythm(call map[string]any) (interval time.Duration, tries int64) {
	interval, err := time.ParseDuration(stringField(call, "refreshInterval"))
	if err != nil || interval <= 0 {
		interval = usualRefresh
	}
	tries, _ = call["retryLimit"].(int64)
	return max(interval, soonestRefresh), min(max(tries, fewestTries), mostTries)
}

// callEntry makes the call of an entry.
func callEntry(ctx context.Context, w *World, call map[string]any) (any, error) {
	var body []byte
	if stringField(call, "method") == "POST" {
		data := map[string]any{}
		list, _ := call["data"].([]any)
		for _, item := range list {
			pair, _ := item.(map[string]any)
			data[stringField(pair, "key")] = pair["value"]
		}
		var err error
		if body, err = kjson.Marshal(data); err != nil {
			return nil, err
		}
	}
	var answer []byte
	var err error
	if service, ok := call["service"].(map[string]any); ok {
		out := interp.ServiceCall{Method: "GET", URL: stringField(service, "url"), CABundle: stringField(service, "caBundle"), Headers: map[string]string{}, Data: body}
		if body != nil {
			out.Method = "POST"
		}
		headers, _ := service["headers"].([]any)
		for _, item := range headers {
			h, _ := item.(map[string]any)
			out.Headers[stringField(h, "key")] = stringField(h, "value")
		}
		var said interp.ServiceAnswer
		if said, err = w.Service(ctx, out); err == nil {
			answer, err = said.Success()
		}
	} else {
		answer, err = w.API(ctx, stringField(call, "urlPath"), body)
	}
	if err != nil {
		return nil, err
	}
	var value any
	return value, kjson.Unmarshal(answer, &value)
}

// Global is the data of an entry, or of one of its projections.
func (w *World) Global(ctx context.Context, name string) (any, error) {
	key, projection, _ := strings.Cut(name, ".")
	w.globals.mu.RLock()
	entry := w.globals.entries[key]
	w.globals.mu.RUnlock()
	if entry == nil {
		return nil, fmt.Errorf("failed to fetch entry key=%s: %w", key, interp.ErrNotFound)
	}
	value, err := entry.value(ctx, w, projection)
	if err != nil {
		return nil, fmt.Errorf("failed to fetch entry key=%s: %w", key, err)
	}
	return value, nil
}

// value is the entry's data or a projection, which is made once for each state.
func (e *global) value(ctx context.Context, w *World, projection string) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.objects != nil {
		if err := e.objects.unread(); err != nil {
			return nil, err
		}
		e.reread()
	} else if e.err != nil {
		return nil, e.err
	}
	if projection == "" {
		return e.answer, nil
	}
	expression, ok := e.projections[projection]
	if !ok {
		return nil, fmt.Errorf("projection %q not found", projection)
	}
	if found, ok := e.projected[projection]; ok {
		return found, nil
	}
	found, err := interp.Query(ctx, expression, e.answer, w)
	if err != nil {
		return nil, fmt.Errorf("projection %q: %w", projection, err)
	}
	if found == nil {
		return nil, errors.New("no data available")
	}
	if e.projected == nil {
		e.projected = map[string]any{}
	}
	e.projected[projection] = found
	return found, nil
}

// reread takes the objects as they are, if they changed.
func (e *global) reread() {
	e.objects.mu.Lock()
	version := e.objects.version
	e.objects.mu.Unlock()
	if e.answer != nil && version == e.asOf {
		return
	}
	e.answer, e.asOf, e.projected = e.objects.objects(), version, nil
}
