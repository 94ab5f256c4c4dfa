package controller

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A follower is a replica that does not write: it serves what the API server may ask
// any replica, until it is elected. It serves every rule that a webhook could be asked
// for, so that it lacks none whatever the one who writes is about to do.
type follower struct {
	passer  *passer
	bell    *bell
	elected <-chan struct{}
}

// NeedLeaderElection is false: followers are those who were not elected.
func (f *follower) NeedLeaderElection() bool { return false }

// Start follows until the replica is elected.
func (f *follower) Start(ctx context.Context) error {
	rung := f.bell.listen()
	for {
		err := f.passer.mirror(ctx)
		retry := make(<-chan time.Time)
		if err != nil {
			if ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "following")
			}
			retry = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.elected:
			return nil
		case <-rung:
			time.Sleep(settleDelay)
		case <-retry:
		}
	}
}

// mirror reads and compiles as a pass does, serves, and writes nothing.
func (p *passer) mirror(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	in, schemas, _, err := p.read(ctx)
	if err != nil {
		return err
	}
	rules := rulesByPolicy(p.compiler.compile(in, schemas))
	wide := p.webhooks.wideOf(Remaining{Exceptions: in.exceptions, ExcludeNamespaces: p.options.ExcludeNamespaces}, in.sources, rules)
	if _, err := p.webhooks.fallback.Serve(ctx, wide); err != nil {
		return err
	}
	p.begun.Store(true)
	return nil
}

// An everywhere runs on each replica.
type everywhere func(context.Context) error

// Start runs it.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection is false.
func (e everywhere) NeedLeaderElection() bool { return false }
