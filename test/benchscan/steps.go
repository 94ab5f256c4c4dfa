package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An outcome is what one step took.
type outcome struct {
	what     string
	took     time.Duration
	judged   int
	requests requests
	memory   memoryUse
}

// allSteps are the names of the steps, in their order: first and killed start the controller.
const allSteps = "first,rest,outage,watches,violations,killed"

// measure has an outcome for each step. What is written is counted until some seconds after it.
func (b *bench) measure(ctx context.Context, steps string) (rows []outcome, err error) {
	known := map[string]func(context.Context) (string, error){
		"first": b.firstRound, "rest": b.rest, "outage": b.outage, "watches": b.cutWatches, "violations": b.violations, "killed": b.killed,
	}
	for name := range strings.SplitSeq(steps, ",") {
		do, ok := known[name]
		if !ok {
			return rows, fmt.Errorf("there is no step %q", name)
		}
		r, err := b.measureOne(ctx, do)
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
		fmt.Fprintf(os.Stderr, "%+v\n", r)
	}
	return rows, nil
}

func (b *bench) measureOne(ctx context.Context, do func(context.Context) (string, error)) (r outcome, err error) {
	before := counts{}
	if b.controller != nil {
		b.controller.memory() // the peak begins
		if before, err = b.controller.counts(ctx); err != nil {
			return r, err
		}
	}
	was := b.controller
	if _, err := b.since(); err != nil {
		return r, err
	}
	b.began = time.Now()
	if r.what, err = do(ctx); err != nil {
		return r, fmt.Errorf("%s: %w", r.what, err)
	}
	r.took = time.Since(b.began)
	if err := b.profile(ctx, "heap", fmt.Sprintf("heap-%d.pb.gz", b.began.Unix())); err != nil {
		return r, err
	}
	if err := sleep(ctx, afterwards); err != nil {
		return r, err
	}
	if was != b.controller { // it counts anew
		before = counts{}
	}
	after, err := b.controller.counts(ctx)
	if err != nil {
		return r, err
	}
	r.judged, r.memory = after.judged-before.judged, b.controller.memory()
	r.requests, err = b.since()
	if after.errors > before.errors {
		r.what += fmt.Sprintf("; %d errors", after.errors-before.errors)
	}
	return r, err
}

// afterwards is how long after a step is looked for what still comes of it.
const afterwards = 5 * time.Second

// firstRound starts the controller.
func (b *bench) firstRound(ctx context.Context) (string, error) {
	what := "the first round"
	if err := b.start(ctx); err != nil {
		return what, err
	}
	c, err := b.controller.until(ctx, func(c counts) bool { return c.rounds == 1 && c.reports == b.violating })
	return fmt.Sprintf("%s; %.0f s of it are the round itself", what, c.took.Seconds()), err
}

// rest does nothing.
func (b *bench) rest(ctx context.Context) (string, error) {
	const minute = time.Minute
	return "nothing for a minute", sleep(ctx, minute)
}

// outage ends the API server, and starts it again.
func (b *bench) outage(ctx context.Context) (string, error) {
	what := "the API server ends, and is back after 5 s; an object comes"
	if err := b.plane.Interrupt(); err != nil {
		return what, err
	}
	if err := sleep(ctx, 5*time.Second); err != nil {
		return what, err
	}
	if err := b.plane.Resume(ctx); err != nil {
		return what, err
	}
	return what, b.probe(ctx, "outage")
}

// cutWatches ends all connections of the controller.
func (b *bench) cutWatches(ctx context.Context) (string, error) {
	n := b.proxy.cut()
	return fmt.Sprintf("all watches end (%d connections); an object comes", n), b.probe(ctx, "watches")
}

// probe makes an object that violates something, and returns when its report is there.
func (b *bench) probe(ctx context.Context, name string) error {
	if err := b.create(ctx, b.newConfigMap(name, 0, true)); err != nil {
		return err
	}
	b.violating++
	_, err := b.controller.until(ctx, func(c counts) bool { return c.reports == b.violating })
	return err
}

// violations makes many objects that violate something, and returns when each has a report.
func (b *bench) violations(ctx context.Context) (string, error) {
	const seconds = 10
	limit, begun := rate.NewLimiter(rate.Limit(b.rate), 1), time.Now()
	var made atomic.Int64
	err := each(b.rate*seconds, func(i int) error {
		if time.Since(begun) > 2*seconds*time.Second { // it takes no more
			return nil
		}
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		made.Add(1)
		return b.create(ctx, b.newConfigMap(fmt.Sprintf("violation-%05d", i), i, true))
	})
	took := time.Since(begun)
	what := fmt.Sprintf("%d objects come in %.0f s that violate something", made.Load(), took.Seconds())
	if err != nil {
		return what, err
	}
	before := b.violating
	b.violating += int(made.Load())
	c, err := b.controller.counts(ctx)
	if err != nil {
		return what, err
	}
	what += fmt.Sprintf("; %d of them have reports then", c.reports-before)
	_, err = b.controller.until(ctx, func(c counts) bool { return c.reports == b.violating })
	return what, err
}

// killed ends the controller within a first round, and starts it again.
func (b *bench) killed(ctx context.Context) (string, error) {
	what := "the controller is killed"
	if b.controller != nil {
		b.controller.kill()
	}
	if err := each(b.namespaces, func(i int) error {
		return b.metadata.Resource(reports()).Namespace(namespaceOf(i, b.namespaces)).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}); err != nil {
		return what, err
	}
	if err := b.start(ctx); err != nil {
		return what, err
	}
	if _, err := b.controller.until(ctx, func(c counts) bool { return c.reports >= b.violating/3 }); err != nil {
		return what, err
	}
	b.controller.kill()
	there, err := b.metadata.Resource(reports()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return what, err
	}
	if _, err := b.since(); err != nil { // what it did is not counted
		return what, err
	}
	what = fmt.Sprintf("the controller is started again that was killed in its first round; %d reports lack", b.violating-len(there.Items))
	b.began = time.Now()
	if err := b.start(ctx); err != nil {
		return what, err
	}
	_, err = b.controller.until(ctx, func(c counts) bool { return c.rounds == 1 && c.reports == b.violating })
	return what, err
}
