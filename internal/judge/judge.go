package judge

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// A ClusterState is what the judges know besides the policies.
type ClusterState struct {
	// Objects are ConfigMaps, Namespaces and others that rules look up.
	Objects []map[string]any
	// Schemas tell what a field is, the paths of kinds, for API calls, and the kinds of
	// resources; nil of none, or with Compile those of the translation.
	Schemas *schema.Set
	// World is what the interpreter asks; nil is one that has the Objects.
	World interp.World
	// Deployed are native objects that are there already. Those that were made from the
	// policies are judged in place of their translation; the others too, by
	// themselves. In passes them over.
	Deployed Deployed
	// Mutations are the same of policies that mutate: those that were made from all mutate rules
	// of a policy take the place of their translation.
	Mutations DeployedMutations
	// AllNamespaces tells that a namespace which is not among the Objects has no labels but
	// its name. Otherwise nobody knows which it has, and rules that select by them are Unknown.
	AllNamespaces bool
}

// Judges are both judges of some policies: their native translation and the
// interpreter. They are safe for concurrent use.
type Judges struct {
	// Compiled is what the policies were translated to.
	Compiled compile.Result
	// Rules are the rules as Kyverno reports them, in its order, so with one for each
	// group of pod controllers that a rule is expanded for. Behind them are the rules of
	// deployed objects of which no source is there.
	Rules []*compile.Form

	standings    []ruleStanding // of the Rules
	natives      []nativeJudge  // those of the translation, and those that are deployed
	interpreters []interpreter
	mutation     *interp.Interpreter // of the policies with mutate rules; nil if there are none
	changing     []changingPolicy    // those of which the mutate rules are native
	exceptions   []*policy.Exception
	namespaces   map[string]*corev1.Namespace // that are known
	all          bool                         // of which the labels count: no others have any
	world        interp.World
}

// A ruleStanding tells how a rule is judged.
type ruleStanding struct {
	compared bool // natively and by the interpreter
	deployed bool // natively by deployed objects
	// readsNamespace tells of more than its name and labels, in the rule as written.
	readsNamespace bool
	// whole are the rules that are summed up: a deployed policy that says nothing of
	// rules is compared with all those of the policy of its name.
	whole []int
}

// A nativeJudge judges by native policies that are in a cluster together: of each name one.
type nativeJudge struct {
	*apiserver.Judge
	members   map[string]members // by policy
	selecting *apiserver.Judge   // of those that labels of namespaces select (Deployed.selecting)
}

// members say which rules a native policy enforces.
type members struct {
	rules   []int // places in Judges.Rules, by member; -1 for one that is not there
	text    vap.Translation
	leftOut []string // namespaces that its bindings leave out
	open    bool     // its failure policy is Ignore
	// readNamespace tells which rules read more of the namespace than its name and labels.
	readNamespace []bool
}

func newMembers(p *admissionregistrationv1.ValidatingAdmissionPolicy, text vap.Translation) members {
	return members{
		text: text, readNamespace: apiserver.MembersReadingNamespace(p, text),
		open: p.Spec.FailurePolicy != nil && *p.Spec.FailurePolicy == admissionregistrationv1.Ignore,
	}
}

// An interpreter judges by one policy.
type interpreter struct {
	policy *policy.Policy
	*interp.Interpreter
	rules map[string][]int // places in Judges.Rules, by name: several where long names are cut to the same
}

// Compile compiles policies for both judges. Namespaces are not excluded: that
// belongs to a cluster, not to a rule.
func Compile(in compile.Input, o compile.Options, c ClusterState) (*Judges, error) {
	o.Emit.ExcludeNamespaces = []string{}
	if c.Schemas == nil {
		c.Schemas = o.Translate.Schemas
	}
	return New(compile.Policies(in, o), in.Exceptions, c)
}

// New makes judges of policies that are compiled, and of the exceptions from them.
// A rule that has no native form is judged by the interpreter only.
func New(compiled compile.Result, exceptions []*policy.Exception, c ClusterState) (*Judges, error) {
	j := &Judges{Compiled: compiled, Rules: inOrder(compiled.Rules), exceptions: exceptions, namespaces: namespacesOf(c.Objects), all: c.AllNamespaces}
	for _, f := range j.Rules {
		j.standings = append(j.standings, ruleStanding{
			compared: f.Rule.Target == translate.Native && (!f.Rule.Mutates() || isChange(f)), readsNamespace: readsNamespace(f),
		})
	}
	if err := j.deploy(&c.Deployed, c.Options()); err != nil {
		return nil, err
	}
	if err := j.translated(compiled.Objects, c.Options()); err != nil {
		return nil, err
	}
	return j, j.interpret(c)
}

// translated makes a judge of the objects of the policies of which nothing is
// deployed.
func (j *Judges) translated(objects []vap.Objects, o apiserver.JudgeOptions) error {
	var policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	at := make([]members, len(objects))
	asked := make([]bool, len(objects))
	for i, o := range objects {
		at[i] = newMembers(o.Policy, o.Draft.Translation())
		at[i].rules = slices.Repeat([]int{-1}, len(o.Draft.Members))
	}
	for place, f := range j.Rules {
		if j.standings[place].deployed {
			continue
		}
		for _, p := range f.Places {
			at[p.Object].rules[p.Member], asked[p.Object] = place, true
		}
	}
	by := map[string]members{}
	for i, o := range objects {
		if asked[i] {
			policies, bindings = append(policies, o.Policy), append(bindings, o.Bindings...)
			by[o.Policy.Name] = at[i]
		}
	}
	return j.add(policies, bindings, by, nil, o)
}

func (j *Judges) add(policies []*admissionregistrationv1.ValidatingAdmissionPolicy, bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding, by map[string]members, selecting *apiserver.Judge, o apiserver.JudgeOptions) error {
	judge, err := apiserver.NewJudge(policies, bindings, o)
	if err == nil {
		j.natives = append(j.natives, nativeJudge{judge, by, selecting})
	}
	return err
}

// Compared are the rules that both judges judge.
func (j *Judges) Compared() (out []*compile.Form) {
	for i, f := range j.Rules {
		if j.standings[i].compared || slices.ContainsFunc(j.changing, func(c changingPolicy) bool { return slices.Contains(c.places, i) }) {
			out = append(out, f)
		}
	}
	return out
}

// inOrder are the forms of rules as Kyverno goes through them: of each policy, those
// as written come first.
func inOrder(rules []*compile.Rule) []*compile.Form {
	var out, expanded []*compile.Form
	for i, r := range rules {
		for _, f := range r.Forms {
			if f.Source != nil && f.Source.Expansion != "" {
				expanded = append(expanded, f)
			} else {
				out = append(out, f)
			}
		}
		if i+1 == len(rules) || rules[i+1].Policy != r.Policy {
			out, expanded = append(out, expanded...), nil
		}
	}
	return out
}

// In are the same judges in another cluster. Nothing is compiled again.
func (j *Judges) In(c ClusterState) (*Judges, error) {
	other := *j
	other.natives, other.namespaces = nil, namespacesOf(c.Objects)
	for _, n := range j.natives {
		judge, err := n.With(c.Options())
		if err != nil {
			return nil, err
		}
		if n.selecting != nil {
			if n.selecting, err = n.selecting.With(c.Options()); err != nil {
				return nil, err
			}
		}
		other.natives = append(other.natives, nativeJudge{judge, n.members, n.selecting})
	}
	return &other, other.interpret(c)
}

// interpret makes an interpreter of each policy, which knows the places of its
// rules.
func (j *Judges) interpret(c ClusterState) (err error) {
	world := c.World
	if world == nil {
		world = World(c.Objects, c.Schemas)
	}
	rules := map[*policy.Policy]map[string][]int{}
	for i, f := range j.Rules {
		p := f.Rule.Policy
		if rules[p] == nil {
			rules[p] = map[string][]int{}
		}
		rules[p][f.Name] = append(rules[p][f.Name], i)
	}
	j.interpreters = nil
	for _, p := range j.Compiled.Policies {
		in := interp.New([]*policy.Policy{p}, j.exceptions, world, interp.Limits{})
		j.interpreters = append(j.interpreters, interpreter{p, in, rules[p]})
	}
	j.world, j.mutation = world, j.mutator(world, func(*policy.Policy) bool { return true })
	j.changing, err = j.changers(c, world)
	return err
}

// Options are what the native judge knows of the cluster.
func (c ClusterState) Options() apiserver.JudgeOptions {
	params := make([]*unstructured.Unstructured, 0, len(c.Objects))
	objects := stored(c.Objects)
	for _, object := range slices.Concat(objects, mirrored(objects)) {
		params = append(params, &unstructured.Unstructured{Object: object})
	}
	return apiserver.JudgeOptions{Params: params, Namespaces: namespacesOf(c.Objects)}
}

// stored are objects as an API server has them: what is empty is not there, as the data of a
// ConfigMap, and a Namespace has its name in a label.
func stored(objects []map[string]any) []map[string]any {
	out := slices.Clone(objects)
	for i, o := range out {
		u := unstructured.Unstructured{Object: o}
		if canonical, err := apiserver.Canonical(o, u.GroupVersionKind()); err == nil {
			o, out[i] = canonical, canonical
		}
		if o["kind"] != "Namespace" || o["apiVersion"] != "v1" {
			continue
		}
		out[i] = asNamespace(o)
	}
	return out
}
