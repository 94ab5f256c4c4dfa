package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/textdiff"
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
	mutator        *apiserver.Mutator
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
	var ps []*admissionregistrationv1.MutatingAdmissionPolicy
	var bs []*admissionregistrationv1.MutatingAdmissionPolicyBinding
	for _, o := range compiled.Mutating {
		ps, bs = append(ps, o.Policy), append(bs, o.Bindings...)
	}
	opts := apiserver.JudgeOptions{}
	for _, o := range objects {
		opts.Params = append(opts.Params, &unstructured.Unstructured{Object: o})
	}
	out.mutator, err = apiserver.NewMutator(ps, bs, opts)
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
	mc.Request = maps.Clone(mc.Request)
	for _, field := range []string{"object", "oldObject"} { // as an API server reads it
		if object, ok := mc.Request[field].(map[string]any); ok {
			if meta, ok := object["metadata"].(map[string]any); ok && object["kind"] == "Namespace" {
				meta = maps.Clone(meta)
				delete(meta, "namespace")
				object = maps.Clone(object)
				object["metadata"] = meta
				mc.Request[field] = object
			}
			if decoded, err := apiserver.Decoded(object); err == nil {
				mc.Request[field] = decoded
			}
		}
	}
	want := in.Mutate(context.Background(), mc.request())
	fails := slices.ContainsFunc(want.Rules, func(r interp.RuleMutation) bool { return r.Status == interp.Error })
	var request *admissionv1.AdmissionRequest
	text, err := json.Marshal(mc.Request)
	if err == nil {
		err = json.Unmarshal(text, &request)
	}
	if err != nil {
		n.wrong = append(n.wrong, "native: case "+mc.ID+": "+err.Error())
		return
	}
	object, verdicts, err := n.mutator.Mutate(context.Background(), request, mc.NamespaceLabels)
	if err != nil {
		n.wrong = append(n.wrong, "native: case "+mc.ID+": "+err.Error())
		return
	}
	var errs []string
	for _, v := range verdicts {
		if v.Outcome == apiserver.Error {
			errs = append(errs, v.Policy+": "+v.Message)
		}
	}
	after, err := apiserver.Decoded(want.After)
	fails = fails || err != nil // no API server takes what the rules made
	switch {
	case fails != (len(errs) > 0):
		n.wrong = append(n.wrong, fmt.Sprintf("native: case %s: the interpreter errs: %t; native: %s %v", mc.ID, fails, strings.Join(errs, "; "), messagesOf(want)))
		return
	case fails:
		n.agree++
		return
	}
	if want.Changed() {
		n.changed++
	}
	d := textdiff.Values(floats(after), floats(object))
	if d != "" && confused(mc.Request["object"]) {
		n.excused++
		n.agree++
		return
	}
	if d != "" {
		n.wrong = append(n.wrong, "native: case "+mc.ID+": object (-interpreter +native):\n"+d)
		return
	}
	n.agree++
}

// confused tells of an object with elements of a list that have the same name or path, or
// none. Kyverno's merge drops all but one of those of one name, in lists that a patch does
// not speak of too; natively they stay. No API server takes such elements but of env.
func confused(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if list, ok := item.([]any); ok && confusedList(key, list) || confused(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, confused)
	}
	return false
}

func confusedList(field string, list []any) bool {
	key, keyed := map[string]string{
		"containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "env": "name",
		"imagePullSecrets": "name", "volumeMounts": "mountPath", "volumeDevices": "devicePath", "finalizers": "",
	}[field]
	seen := map[any]bool{}
	for _, e := range list {
		id := e
		if m, ok := e.(map[string]any); ok {
			id = m[key]
		}
		if keyed && (id == nil || id == "" || seen[id]) {
			return true
		}
		if keyed {
			seen[id] = true
		}
	}
	return false
}

func messagesOf(m *interp.Mutation) (out []string) {
	for _, r := range m.Rules {
		if r.Status == interp.Error {
			out = append(out, r.Rule+": "+r.Message)
		}
	}
	return out
}
