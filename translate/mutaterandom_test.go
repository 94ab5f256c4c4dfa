package translate_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/mutating"
)

var (
	mutateSeed = flag.Uint64("mutate.seed", 1, "the seed of TestRandomMutateRules")
	mutateFor  = flag.Duration("mutate.for", 0, "how long TestRandomMutateRules looks; 0 for a fixed number of rules")
)

// A mutateMaker makes small random mutate rules on Pods, and Pods.
type mutateMaker struct{ *rand.Rand }

func (m mutateMaker) oneOf(list ...string) string { return list[m.IntN(len(list))] }

func (m mutateMaker) often() bool { return m.IntN(3) > 0 }

// key puts an anchor around a key, now and then.
func (m mutateMaker) key(name string) string {
	switch m.IntN(6) {
	case 0:
		return "+(" + name + ")"
	case 1:
		return "(" + name + ")"
	}
	return name
}

func (m mutateMaker) text() string {
	return m.oneOf("a", "b", "x*", "?*", "{{ request.object.metadata.name }}", "{{ request.object.metadata.labels.app }}", "v-{{ request.userInfo.username }}", "{{ request.object.metadata.labels.none || 'c' }}")
}

func (m mutateMaker) pairs() map[string]any {
	out := map[string]any{}
	for range 1 + m.IntN(3) {
		name := m.key(m.oneOf("app", "team", "x.io/y", "a~b"))
		switch {
		case m.IntN(8) == 0:
			out[name] = nil
		case strings.HasPrefix(name, "("):
			out[name] = m.oneOf("a", "b*", "?*", "!a", "a | b")
		default:
			out[name] = m.text()
		}
	}
	return out
}

func (m mutateMaker) container() map[string]any {
	out := map[string]any{}
	switch m.IntN(4) {
	case 0:
		out["name"] = m.oneOf("a", "b", "side")
	case 1:
		out["(name)"] = m.oneOf("*", "?*", "a", "b*", "!a")
	case 2:
		out["(image)"] = m.oneOf("*:latest", "i*", "?*", "!i*")
	case 3:
		out["<(image)"] = m.oneOf("*:latest", "i*", "q*")
	}
	for range 1 + m.IntN(2) {
		switch m.IntN(7) {
		case 0:
			out[m.key("imagePullPolicy")] = m.oneOf("Always", "Never")
		case 1:
			out[m.key("tty")] = m.often()
		case 2:
			out["env"] = []any{map[string]any{"name": m.oneOf("A", "B", "C"), "value": m.text()}}
		case 3:
			out["securityContext"] = map[string]any{m.key("privileged"): m.often(), "capabilities": map[string]any{"drop": []any{"ALL"}}}
		case 4:
			out[m.key("args")] = []any{"x", "y"}
		case 5:
			out["resources"] = map[string]any{"limits": map[string]any{m.key("cpu"): m.oneOf("1", "500m")}}
		case 6:
			out["image"] = m.text()
		}
	}
	return out
}

func (m mutateMaker) spec() map[string]any {
	out := map[string]any{}
	for range 1 + m.IntN(3) {
		switch m.IntN(10) {
		case 0:
			out[m.key("hostNetwork")] = m.often()
		case 1:
			out[m.key("terminationGracePeriodSeconds")] = int64(m.IntN(100))
		case 2:
			out[m.key("nodeSelector")] = m.pairs()
		case 3:
			out[m.key("securityContext")] = map[string]any{m.key("runAsUser"): int64(m.IntN(9)), m.key("runAsNonRoot"): true}
		case 4:
			out[m.key("tolerations")] = []any{map[string]any{"key": m.text(), "operator": "Exists"}}
		case 5:
			out["imagePullSecrets"] = []any{map[string]any{"name": m.oneOf("s", "t", "u")}}
		case 6:
			out["volumes"] = []any{map[string]any{"name": m.oneOf("v", "w"), "emptyDir": map[string]any{"medium": "Memory"}}}
		case 7:
			out["volumes"] = []any{map[string]any{"<(emptyDir)": map[string]any{}}}
		default:
			out["containers"] = []any{m.container()}
			if m.IntN(4) == 0 {
				out["containers"] = []any{m.container(), m.container()}
			}
		}
	}
	return out
}

func (m mutateMaker) merge() map[string]any {
	out := map[string]any{}
	if m.often() {
		out["spec"] = m.spec()
	}
	if m.often() || len(out) == 0 {
		out["metadata"] = map[string]any{m.oneOf("labels", "annotations"): m.pairs()}
	}
	return out
}

func (m mutateMaker) operation() string {
	path := m.oneOf("/metadata/labels/a", "/metadata/annotations/x.io~1y", "/spec/hostNetwork", "/spec/nodeSelector/k", "/spec/tolerations/-",
		"/spec/containers/0/env/-", "/spec/containers/0/securityContext/privileged", "/spec/securityContext/runAsUser", "/spec/dnsConfig/options/-", "/spec/volumes/-1")
	value := "x"
	switch {
	case strings.HasSuffix(path, "/-") || strings.HasSuffix(path, "/-1"):
		value = fmt.Sprintf(`{"name": "n%d", "value": "v"}`, m.Uint32()) // two of one name are told apart by nobody
		if strings.Contains(path, "tolerations") {
			value = `{"key": "k", "operator": "Exists"}`
		} else if strings.Contains(path, "volumes") {
			value = fmt.Sprintf(`{"name": "n%d", "emptyDir": {}}`, m.Uint32())
		}
	case strings.HasSuffix(path, "hostNetwork"), strings.HasSuffix(path, "privileged"):
		value = "true"
	case strings.HasSuffix(path, "runAsUser"):
		value = "7"
	}
	op := m.oneOf("add", "add", "add", "remove", "replace")
	if op == "remove" {
		return fmt.Sprintf("- {op: remove, path: %s}", path)
	}
	return fmt.Sprintf("- {op: %s, path: %s, value: %s}", op, path, value)
}

// rule is the mutate block of a rule.
func (m mutateMaker) rule() map[string]any {
	switch m.IntN(6) {
	case 0, 1:
		var ops []string
		for range 1 + m.IntN(3) {
			ops = append(ops, m.operation())
		}
		return map[string]any{"patchesJson6902": strings.Join(ops, "\n")}
	case 2:
		list := m.oneOf("request.object.spec.containers", "request.object.spec.initContainers[]", "request.object.spec.volumes[]", "request.object.spec.volumes")
		entry := map[string]any{"list": list}
		field := list[strings.LastIndexByte(strings.TrimSuffix(list, "[]"), '.')+1:]
		field = strings.TrimSuffix(field, "[]")
		switch m.IntN(3) {
		case 0:
			entry["patchStrategicMerge"] = map[string]any{"spec": map[string]any{field: []any{map[string]any{"name": "{{ element.name }}", "image": "r/{{ element.image }}"}}}}
		case 1:
			entry["patchStrategicMerge"] = map[string]any{"metadata": map[string]any{"annotations": map[string]any{"c/{{ element.name }}": "v"}}}
		case 2:
			entry["patchesJson6902"] = `- {op: add, path: "/spec/` + field + `/{{elementIndex}}/` + m.oneOf("env/-", "emptyDir/medium", "securityContext/privileged", "image") + `", value: ` + m.oneOf(`"x"`, "true", `{"name": "I", "value": "{{ element.name }}"}`) + `}`
		}
		if m.often() {
			entry["preconditions"] = map[string]any{"all": []any{map[string]any{"key": "{{ element.name }}", "operator": m.oneOf("Equals", "NotEquals"), "value": m.oneOf("a", "b", "v")}}}
		}
		return map[string]any{"foreach": []any{entry}}
	}
	return map[string]any{"patchStrategicMerge": m.merge()}
}

// pod is a Pod as an API server may get it.
func (m mutateMaker) pod() map[string]any {
	meta := map[string]any{"name": "p", "namespace": "default"}
	if m.often() {
		meta["labels"] = map[string]any{"app": m.oneOf("a", "b", "bb"), "x.io/y": "z"}
	}
	if m.often() {
		meta["annotations"] = map[string]any{m.oneOf("team", "app", "a~b"): m.oneOf("a", "c")}
	}
	spec := map[string]any{}
	var containers []any
	for i, name := range []string{"a", "b", "c"}[:1+m.IntN(3)] {
		c := map[string]any{"name": name, "image": m.oneOf("i:latest", "j:1", "q")}
		if m.often() {
			c["env"] = []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B", "value": "2"}}
		}
		if m.often() {
			c["securityContext"] = map[string]any{"privileged": m.often()}
		}
		if m.IntN(3) == i {
			c["imagePullPolicy"], c["tty"], c["args"] = "Never", true, []any{"z"}
		}
		containers = append(containers, c)
	}
	spec["containers"] = containers
	if m.often() {
		spec["hostNetwork"], spec["terminationGracePeriodSeconds"] = true, int64(50)
		spec["volumes"] = []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}, map[string]any{"name": "w", "hostPath": map[string]any{"path": "/"}}}
	}
	if m.often() {
		spec["imagePullSecrets"] = []any{map[string]any{"name": "s"}, map[string]any{"name": "t"}}
		spec["initContainers"] = []any{map[string]any{"name": "i", "image": "i"}}
	}
	if m.often() {
		spec["nodeSelector"], spec["securityContext"] = map[string]any{"app": "a"}, map[string]any{"runAsUser": int64(3)}
		spec["tolerations"] = []any{map[string]any{"key": "q", "operator": "Exists"}}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
}

// request is that a Pod, or a controller of one, is created.
func (m mutateMaker) request() map[string]any {
	pod := m.pod()
	object, kind, group, resource := pod, "Pod", "", "pods"
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}, "spec": pod["spec"]}
	switch m.IntN(8) {
	case 0, 1:
		kind, group, resource = "Deployment", "apps", "deployments"
		object = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}, "template": template}
	case 2:
		kind, group, resource = "CronJob", "batch", "cronjobs"
		object = map[string]any{"schedule": "* * * * *", "jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
	}
	if kind != "Pod" {
		object = map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": pod["metadata"], "spec": object}
	}
	return map[string]any{
		"operation": "CREATE", "name": "p", "namespace": "default", "kind": map[string]any{"group": group, "version": "v1", "kind": kind},
		"resource": map[string]any{"group": group, "version": "v1", "resource": resource}, "userInfo": map[string]any{"username": "u"}, "object": object,
	}
}

// policy is a policy of a rule, or of two.
func (m mutateMaker) policy(t *testing.T) string {
	t.Helper()
	var rules []any
	for i := range 1 + m.IntN(5)/4 {
		rules = append(rules, map[string]any{
			"name": fmt.Sprintf("r%d", i), "match": map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"Pod"}}}}}, "mutate": m.rule(),
		})
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "p"}, "spec": map[string]any{"rules": rules}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sent is a request as text, and as it is read.
func sent(t *testing.T, request map[string]any) (text []byte, review *admissionv1.AdmissionRequest) {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &review); err != nil {
		t.Fatal(err)
	}
	return text, review
}

// Random rules that are native make of random Pods, and of what Deployments and CronJobs have of
// them, what the interpreter makes of them.
func TestRandomMutateRules(t *testing.T) {
	t.Parallel()
	m := mutateMaker{rand.New(rand.NewPCG(24, *mutateSeed))}
	rules, requests := 400, 4
	if testing.Short() {
		rules = 50
	}
	until := time.Now().Add(*mutateFor)
	if *mutateFor > 0 {
		rules, requests = math.MaxInt, 40
	}
	tried, native, asked, repeatable := 0, 0, 0, 0
	for n := 0; n < rules && (*mutateFor == 0 || time.Now().Before(until)); n++ {
		text := m.policy(t)
		p := translateText(t, text, setting{release: 36, mutations: true})
		tried++
		if len(p.result.Mutating) == 0 {
			continue
		}
		native++
		twice := !slices.ContainsFunc(p.result.Mutating, func(o mutating.Objects) bool { return !o.Draft.Repeatable })
		natives := mutator(t, p.result)
		for range requests {
			request, review := sent(t, m.request())
			asked++
			note := fmt.Sprintf("seed %d, rule %d\n%s\n%s", *mutateSeed, n, text, request)
			changeByBoth(t, note, p.result, natives, nil, review)
			if twice {
				repeatable++
				changeTwice(t, note, p.result, natives, review)
			}
			if t.Failed() {
				return
			}
		}
	}
	if *mutateFor == 0 && native < rules/4 {
		t.Errorf("%d of %d random policies are native", native, rules)
	}
	if repeatable < native {
		t.Errorf("of %d native policies only %d were held to be the same when they run twice, %d times each", native, repeatable, requests)
	}
	t.Logf("%d of %d random policies are native, which changed what is in %d requests, %d of these twice", native, tried, asked, repeatable)
}
