package interp

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// Broken is which expressions of the policies do not compile, or call a function that does
// not exist; nil where there are none. A rule with such an expression errs on every request
// that gets there, so nobody needs to wait for one to know. What is compiled for it is what
// requests are judged by. It stops where the context ends, and says so.
func (in *Interpreter) Broken(ctx context.Context) error {
	var err error
	for _, p := range in.policies {
		err = errors.Join(err, p.broken(ctx, in))
	}
	return err
}

// BrokenAt is Broken for a GeneratingPolicy, of which Kyverno takes none that does not
// compile, and where the first such expression is.
func BrokenAt(p *policy.Policy, world World) (diag.Pos, error) {
	in := New([]*policy.Policy{p}, nil, world, Limits{})
	g := in.policies[0].making
	if g == nil || p.Invalid {
		return diag.Pos{}, nil
	}
	g.once.Do(func() { g.compile(in) })
	if g.at.Line == 0 {
		return p.Pos, g.err
	}
	return g.at, g.err
}

// broken is what the first rule, or form, says of which an expression does not compile.
func (c *compiledPolicy) broken(ctx context.Context, in *Interpreter) error {
	if err := c.tooLarge(); err != nil {
		return err
	}
	for _, f := range c.forms {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.once.Do(func() { f.compile(in) })
		if f.err != nil {
			return f.err
		}
	}
	for _, f := range c.changing {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.once.Do(func() { f.compile(in) })
		if f.err != nil {
			return f.err
		}
	}
	if g := c.making; g != nil && !c.Invalid {
		if g.once.Do(func() { g.compile(in) }); g.err != nil {
			return g.err
		}
	}
	for _, r := range c.Rules {
		if r.Invalid {
			continue
		}
		if bad := r.BadExpressions(); len(bad) > 0 {
			return fmt.Errorf("rule %s: %s", r.Name, bad[0].Message)
		}
		own := c.cel[r]
		if own == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		own.once.Do(own.compile)
		if own.broken != nil {
			return fmt.Errorf("rule %s: %w", r.Name, own.broken)
		}
	}
	return nil
}
