package main

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// mutations make MutatingAdmissionPolicies of policies, for the release that is asked for
// or the first that has them for good.
type mutations struct{ options translate.Options }

func newMutations(release string) (*mutations, error) {
	r, err := cel.ParseRelease(release)
	if err != nil {
		return nil, err
	}
	c, err := newCompiler(max(r, mutating.Stable).String())
	if err != nil {
		return nil, err
	}
	c.options.Mutations = true
	return &mutations{c.options}, nil
}

// nativeMutations is what the native form of a file made of its cases, held to what the
// interpreter makes of the same policies: of those of which all that mutates is native.
type nativeMutations struct {
	rules, natives int
	refused        []string // rules that are the webhook's, and why
	cases, agree   int
	changed        int
	excused        int // cases whose objects have elements that no key tells apart
	wrong          []string
	changer        *judge.Changer
	policies       []*policy.Policy // those that are native
}

// of translates policies.
func (m *mutations) of(policies []*policy.Policy, exceptions []*policy.Exception, objects []map[string]any) (out nativeMutations, err error) {
	compiled := compile.Policies(compile.Input{Policies: policies, Exceptions: exceptions}, compile.Options{
		Translate: m.options, Emit: vap.EmitOptions{ExcludeNamespaces: []string{}},
	})
	left := map[*policy.Policy]bool{}
	for _, r := range compiled.Rules {
		if !r.Mutates() {
			continue
		}
		out.rules++
		if r.Target != translate.Native {
			out.refused = append(out.refused, fmt.Sprintf("%s/%s: %v %s", r.Policy.Name, r.Name(), r.Codes, r.Reason))
			left[r.Policy] = true
			continue
		}
		out.natives++
	}
	for _, p := range policies {
		if !left[p] {
			out.policies = append(out.policies, p)
		}
	}
	opts := apiserver.JudgeOptions{}
	for _, o := range objects {
		opts.Params = append(opts.Params, &unstructured.Unstructured{Object: o})
	}
	out.changer, err = judge.NewChanger(compiled.Mutating, nil, opts)
	return out, err
}

func (n *nativeMutations) write(w io.Writer) {
	fmt.Fprintf(w, "    native: %d of %d rules; cases %d  changed %d  same %d  excused %d  different %d\n", n.natives, n.rules, n.cases, n.changed, n.agree-n.excused, n.excused, n.cases-n.agree)
	for _, why := range n.refused {
		fmt.Fprintf(w, "    webhook: %s\n", why)
	}
}

// judge holds what the native policies make of a case to what an interpreter of the same
// policies makes of it.
func (n *nativeMutations) judge(in *interp.Interpreter, mc mutateCase) {
	if operation := mc.Request["operation"]; n.natives == 0 || operation == "DELETE" || operation == "CONNECT" { // which no mutating webhook is asked about
		return
	}
	n.cases++
	changed := n.changer.By(in).Change(context.Background(), mc.request())
	if changed.Changed {
		n.changed++
	}
	if changed.Different != "" {
		n.wrong = append(n.wrong, "native: case "+mc.ID+": (-interpreter +native):\n"+changed.Different)
		return
	}
	n.agree++
	if changed.Confused {
		n.excused++
	}
}
