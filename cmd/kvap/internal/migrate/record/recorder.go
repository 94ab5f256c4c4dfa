package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"sync"
	"sync/atomic"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Options are the choices of a recorder. Mask and To must be there; other zero fields
// have their defaults.
type Options struct {
	Mask *Masker
	To   Sink
	// Sample is the share of requests that is recorded; all of them where it is 0 or 1.
	Sample float64
	// Namespace is a Namespace as an object, which is not changed; nil where nobody knows.
	Namespace func(name string) map[string]any
	// Queue and QueueBytes are how much may wait to be written; 8192, and 64 MiB.
	Queue      int
	QueueBytes int64
	// MaxBytes is how large a review may be; 8 MiB.
	MaxBytes int64
}

// A Sink takes lines, one after the other. Files are one.
type Sink interface {
	Write(line []byte) error
	Close() error
}

// Counts are what a recorder has done.
type Counts struct {
	Asked    int64 // reviews that came
	PassedBy int64 // not in the sample
	Recorded int64
	Dropped  int64 // the queue was full
	TooLarge int64
	Failed   int64 // could not be read or written
}

// Lost is how many of those that were to be recorded are not.
func (c Counts) Lost() int64 { return c.Dropped + c.TooLarge + c.Failed }

// A Recorder answers AdmissionReviews and keeps them.
type Recorder struct {
	options Options
	queue   chan []byte
	waiting atomic.Int64 // bytes
	written sync.WaitGroup

	asked, passedBy, recorded, dropped, tooLarge, failed atomic.Int64

	mu      sync.RWMutex
	trouble error // the last
	closed  bool
}

// New makes a recorder, which writes until Close.
func New(o Options) *Recorder {
	o.Queue = cmp.Or(o.Queue, 8192)
	o.QueueBytes = cmp.Or(o.QueueBytes, 64<<20)
	o.MaxBytes = cmp.Or(o.MaxBytes, 8<<20)
	if o.Namespace == nil {
		o.Namespace = func(string) map[string]any { return nil }
	}
	r := &Recorder{options: o, queue: make(chan []byte, o.Queue)}
	r.written.Go(r.write)
	return r
}

// Counts are what was done so far.
func (r *Recorder) Counts() Counts {
	return Counts{r.asked.Load(), r.passedBy.Load(), r.recorded.Load(), r.dropped.Load(), r.tooLarge.Load(), r.failed.Load()}
}

// Trouble is the last thing that went wrong; nil where nothing did.
func (r *Recorder) Trouble() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.trouble
}

// Close writes what is waiting, and ends the sink. Who asks later is admitted, and not
// recorded.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.closed = true
	close(r.queue)
	r.mu.Unlock()
	r.written.Wait()
	return r.options.To.Close()
}

// ServeHTTP admits, and hands the review over to be written. It waits for nothing but
// the review itself.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.asked.Add(1)
	data, err := io.ReadAll(io.LimitReader(req.Body, r.options.MaxBytes+1))
	if err != nil {
		r.fail(fmt.Errorf("reading a review: %w", err))
		http.Error(w, "the review cannot be read", http.StatusBadRequest)
		return
	}
	if int64(len(data)) > r.options.MaxBytes {
		r.tooLarge.Add(1)
		http.Error(w, "the review is too large", http.StatusRequestEntityTooLarge)
		return
	}
	var review struct {
		APIVersion string `json:"apiVersion"`
		Request    struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.Unmarshal(data, &review); err != nil || review.Request.UID == "" {
		r.fail(errors.New("something was sent that is no AdmissionReview"))
		http.Error(w, "this is no AdmissionReview", http.StatusBadRequest)
		return
	}
	if r.wants(review.Request.UID) {
		r.enqueue(data)
	} else {
		r.passedBy.Add(1)
	}
	answer, err := json.Marshal(map[string]any{
		"apiVersion": review.APIVersion, "kind": "AdmissionReview",
		"response": map[string]any{"uid": review.Request.UID, "allowed": true},
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // whoever is gone does not need it
}

// wants tells whether a request is in the sample. It depends on its uid alone.
func (r *Recorder) wants(uid string) bool {
	if r.options.Sample <= 0 || r.options.Sample >= 1 {
		return true
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // never fails
	return float64(mixed(h.Sum64())) < r.options.Sample*float64(math.MaxUint64)
}

// mixed spreads a sum over all values: those of similar texts are near each other.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// enqueue hands over or drops.
func (r *Recorder) enqueue(data []byte) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.waiting.Add(int64(len(data))) <= r.options.QueueBytes && !r.closed {
		select {
		case r.queue <- data:
			return
		default:
		}
	}
	r.waiting.Add(-int64(len(data)))
	r.dropped.Add(1)
}

// write masks and writes what was handed over.
func (r *Recorder) write() {
	for data := range r.queue {
		line, err := r.line(data)
		if err == nil {
			err = r.options.To.Write(line)
		}
		r.waiting.Add(-int64(len(data)))
		switch {
		case errors.Is(err, ErrTooLarge):
			r.tooLarge.Add(1)
		case err != nil:
			r.fail(err)
		default:
			r.recorded.Add(1)
		}
	}
}

func (r *Recorder) fail(err error) {
	r.failed.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble = err
}

// line is a review as kvap eval reads it, masked.
func (r *Recorder) line(data []byte) ([]byte, error) {
	var review map[string]any
	if err := kjson.Unmarshal(data, &review); err != nil {
		return nil, err
	}
	request, ok := review["request"].(map[string]any)
	if !ok {
		return nil, errors.New("a review has no request")
	}
	r.options.Mask.Request(request)
	out := map[string]any{"id": request["uid"], "request": request}
	if name, _ := request["namespace"].(string); name != "" {
		if namespace := r.options.Namespace(name); namespace != nil {
			out["namespaceObject"] = r.options.Mask.Namespace(namespace)
		}
	}
	line, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return append(line, '\n'), nil
}
