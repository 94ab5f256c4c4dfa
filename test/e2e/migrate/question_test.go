//go:build e2e

package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/test/e2e/attempt"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A question is a request of a fixture that is put again and again.
type question struct {
	*attempt.Attempt
	fixture string
	client  dynamic.Interface
	denied  bool // is the answer that it must have
}

// A questioner makes questions, in a cluster that has no policies yet.
type questioner struct {
	*cluster
	store attempt.Store
	taken map[string]bool     // places and names
	left  map[string][]string // by reason: the requests that are not made
}

func (c *cluster) questioner(t *testing.T) *questioner {
	t.Helper()
	unjudged, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &questioner{cluster: c, store: attempt.Store{Interface: unjudged}, taken: map[string]bool{}, left: map[string][]string{}}
}

// questions are those of some fixtures, with all that they start from.
func (q *questioner) questions(t *testing.T, all []*member) (out []*question) {
	t.Helper()
	for _, m := range all {
		q.store.Context(t, m.Fixture)
	}
	for _, m := range all {
		for _, c := range m.Cases {
			one, why := q.question(t, m, c)
			if why != "" {
				q.left[why] = append(q.left[why], m.Name+": "+c.Note)
				continue
			}
			out = append(out, one)
		}
	}
	return out
}

// question makes one of a case; why tells that it cannot be put.
func (q *questioner) question(t *testing.T, m *member, c fixtures.Case) (_ *question, why string) {
	t.Helper()
	if why := attempt.New(t, c).Impossible(); why != "" {
		return nil, why
	}
	if c.Object["kind"] == "Lease" {
		return nil, "Kyverno's filters leave it out, and the native policy judges it, of which KV316 tells"
	}
	if c.Groups == nil {
		c.Groups = []string{"system:authenticated"}
	}
	c.Groups = append(append([]string{}, c.Groups...), m.table())
	a := attempt.New(t, q.apart(c))
	if err := a.Prepare(t, q.store); err != nil {
		return nil, "the API server refuses the object that is to be there already: " + short(err)
	}
	one := &question{Attempt: a, fixture: m.Name, client: a.As(t, q.Config)}
	if _, err := one.put(t.Context(), t); err != nil {
		return nil, "the API server refuses it by itself: " + short(err)
	}
	return one, ""
}

// apart gives a case a namespace of its own where that has labels, and names of their own
// to objects that are stored: all cases are put at once.
func (q *questioner) apart(c fixtures.Case) fixtures.Case {
	c.Object, c.OldObject = runtime.DeepCopyJSON(c.Object), runtime.DeepCopyJSON(c.OldObject)
	change := func(field string, to func(string) string) {
		for _, o := range []map[string]any{c.Object, c.OldObject} {
			if meta, ok := o["metadata"].(map[string]any); ok && meta[field] != nil {
				meta[field] = to(fmt.Sprint(meta[field]))
			}
		}
	}
	if len(c.NamespaceLabels) > 0 {
		change("namespace", func(name string) string { return fmt.Sprintf("%s-%d", name, len(q.taken)) })
		q.taken[fmt.Sprint("namespace ", len(q.taken))] = true
	}
	if c.OldObject != nil {
		change("name", func(name string) string {
			key := fmt.Sprint(c.OldObject["apiVersion"], c.OldObject["kind"], " ", name)
			if q.taken[key] || c.OldObject["kind"] == "Namespace" {
				name = fmt.Sprintf("%s-%d", name, len(q.taken))
			}
			return name
		})
		q.taken[fmt.Sprint(c.OldObject["apiVersion"], c.OldObject["kind"], " ", nameOf(c.OldObject))] = true
	}
	return c
}

func nameOf(o map[string]any) string {
	meta, _ := o["metadata"].(map[string]any)
	return fmt.Sprint(meta["name"])
}

// short is what an API server has against an object, without what is particular to it.
func short(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return err.Error()
	}
	cause := status.Status().Details.Causes[0]
	return string(cause.Type) + " " + cause.Field
}

// put puts the question, and tells whether policies deny it. An error tells that somebody
// else has something against it.
func (q *question) put(ctx context.Context, t *testing.T) (denied bool, err error) {
	_, err = q.Send(ctx, t, q.client)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err): // which comes after admission
		return false, nil
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy '") || strings.Contains(err.Error(), "denied the request"):
		return true, err
	}
	return false, err
}

// String names it.
func (q *question) String() string { return q.fixture + ": " + q.Note }

// asked is how many questions are put at once.
const asked = 3

// answered has all questions answered until they are as the cases want, and notes those
// that are another way, by now. The reason of each is that policies are, on a cluster,
// about objects as the API server has them.
func answered(t *testing.T, all []*question) (otherwise []string) {
	t.Helper()
	open := all
	for deadline := time.Now().Add(15 * time.Second); len(open) > 0 && time.Now().Before(deadline); time.Sleep(time.Second) {
		open = unexpected(t, open)
	}
	for _, q := range open {
		otherwise = append(otherwise, fmt.Sprintf("%s (denied: %v)", q, q.denied))
	}
	return otherwise
}

// unexpected puts questions, notes the answers, and gives those that are another way than
// the case has it.
func unexpected(t *testing.T, all []*question) (out []*question) {
	t.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range asked {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				denied, err := all[i].put(t.Context(), t)
				if err != nil && !denied {
					t.Errorf("%s: %v", all[i], err)
				}
				all[i].denied = denied
			}
		})
	}
	group.Wait()
	for _, q := range all {
		want := false
		for _, status := range q.Want {
			want = want || status == "fail" || status == "error"
		}
		if q.denied != want {
			out = append(out, q)
		}
	}
	return out
}

// streamQuestions puts questions one after the other, all the time.
func (c *cluster) streamQuestions(t *testing.T, all []*question) *stream {
	t.Helper()
	s := &stream{}
	var next atomic.Int64
	put := func(ctx context.Context) {
		q := all[int(next.Add(1)-1)%len(all)]
		denied, err := q.put(ctx, t)
		if ctx.Err() != nil {
			return
		}
		if denied != q.denied || err != nil && !denied {
			s.wrong.Store(time.Now().Format(time.StampMilli)+" "+q.String(), fmt.Sprintf("denied should be %v: %v", q.denied, err))
		}
		if q.denied {
			s.bad.Add(1)
		} else {
			s.good.Add(1)
		}
		time.Sleep(20 * time.Millisecond) // others have work to do as well
	}
	var workers []func(context.Context)
	for range asked {
		workers = append(workers, put)
	}
	s.stop = testcluster.Repeat(t, workers...)
	return s
}

// during does something and sees that requests were judged rightly all the while, and
// that there were some; and then that each is.
func (s *stream) during(t *testing.T, what string, questions int, do func()) {
	t.Helper()
	before := s.good.Load() + s.bad.Load()
	do()
	after := s.good.Load() + s.bad.Load()
	s.check(t, what)
	if n := after - before; n < atLeast {
		t.Errorf("%s: %d requests meanwhile, want %d or more", what, n, atLeast)
	}
	testcluster.Soon(t, "a round of all requests", func() bool { return s.good.Load()+s.bad.Load() > after+int64(questions+asked) })
	s.check(t, "after "+what)
}

// after is a time that is over when enough requests were put as well, which a busy
// machine takes long for.
func (s *stream) after(t *testing.T, d time.Duration) <-chan struct{} {
	over, before := make(chan struct{}), s.good.Load()+s.bad.Load()
	go func() {
		defer close(over)
		for time.Sleep(d); t.Context().Err() == nil && s.good.Load()+s.bad.Load() < before+atLeast; {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return over
}

// atLeast is the floor under the requests that are put while a verb is at work.
const atLeast = 40
