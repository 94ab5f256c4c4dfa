package background

import (
	"sync"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
)

// calm is after how long without a repair the next one is done at once again.
const calm = 2 * time.Minute

// A repairBackoff remembers what the Worker wrote lately, so that it does not react to its own
// writes. Where somebody else changes an object again and again, the Worker repairs it later
// and later.
type repairBackoff struct {
	now func() time.Time

	mu       sync.Mutex
	versions map[v1alpha1.ObjectReference]string // that were written, without the UID
	repairs  map[triggerTask]repairs
}

type repairs struct {
	times int
	last  time.Time
}

func newRepairBackoff(now func() time.Time) *repairBackoff {
	return &repairBackoff{now: now, versions: map[v1alpha1.ObjectReference]string{}, repairs: map[triggerTask]repairs{}}
}

// wrote remembers a version of an object.
func (p *repairBackoff) wrote(at v1alpha1.ObjectReference, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.UID = ""
	p.versions[at] = version
}

// isOwn tells that the version of an object was written here.
func (p *repairBackoff) isOwn(at v1alpha1.ObjectReference, version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.UID = ""
	return version != "" && p.versions[at] == version
}

// repaired remembers that a task had something to write.
func (p *repairBackoff) repaired(t triggerTask) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.repairs[t]
	if p.now().Sub(r.last) > calm+waitAfter(r.times) {
		r.times = 0
	}
	p.repairs[t] = repairs{r.times + 1, p.now()}
}

// wait is how long the next repair waits.
func (p *repairBackoff) wait(t triggerTask) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.repairs[t]
	if r.times < 3 || p.now().Sub(r.last) > calm+waitAfter(r.times) {
		return 0
	}
	return waitAfter(r.times - 2)
}

// forget lets go of what is long past.
func (p *repairBackoff) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.versions)
	for t, r := range p.repairs {
		if p.now().Sub(r.last) > calm+longestWait {
			delete(p.repairs, t)
		}
	}
}
