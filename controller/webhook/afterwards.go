package webhook

import (
	"cmp"
	"context"
	"slices"

	"github.com/kvap/kvap/interp"
)

// Afterwards judges a request that was admitted by somebody else, given as the AdmissionRequest is in
// JSON, by all policies, wherever they are served. Record hears of what passes, is skipped or would
// change the object; nothing else follows.
func (s *Server) Afterwards(ctx context.Context, request map[string]any) error {
	current := s.current.Load()
	if current == nil {
		return errNotReady
	}
	r, err := readRequest(request)
	if err != nil {
		return err
	}
	policies := local(current.inOrder(), r.namespace)
	if len(policies) == 0 {
		return nil
	}
	req := &interp.Request{Admission: r.request, OwnConditions: true}
	if s.options.Roles != nil {
		if req.Roles, req.ClusterRoles, err = s.options.Roles(ctx, r.user, r.namespace); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	ctx, end := withNamespace(ctx)
	defer end()
	asked := r.object
	for _, p := range policies {
		m := p.engine.Mutate(p.within(ctx, req))
		s.mutated(p, r, m)
		if m.Changed() {
			r = r.with(m.After)
			next := *req
			next.Admission, next.Asked = r.request, asked
			req = &next
		}
	}
	verdicts := s.judge(ctx, policies, req)
	for i, p := range policies {
		if _, err := s.findings(ctx, p, r, verdicts[i]); err != nil {
			return err
		}
	}
	return nil
}

// inOrder are all policies, by their names.
func (s *snapshot) inOrder() (out []*servedPolicy) {
	for _, p := range s.policies {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *servedPolicy) int {
		return cmp.Or(cmp.Compare(a.FullName(), b.FullName()), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}
