package background

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A Cluster is what work reads and writes. Its errors are those of the API server,
// as package k8s.io/apimachinery/pkg/api/errors tells them apart.
type Cluster interface {
	interp.ObjectReader
	// Page is a part of what List gives, behind the one that gave from; next is empty for
	// the last. There may be any number of objects in all.
	Page(ctx context.Context, apiVersion, kind, namespace string, selector labels.Selector, from string) (objects []map[string]any, next string, err error)
	// Find is the object of a kind with a UID, for those whose name is not known. The
	// namespace is empty for kinds without.
	Find(ctx context.Context, apiVersion, kind, namespace string, uid types.UID) (object map[string]any, found bool, err error)
	// Create makes an object that is not there. Like Update and Apply it tells the
	// resource version that the object then has.
	Create(ctx context.Context, object map[string]any) (version string, err error)
	// Update puts an object in the place of the one with its resource version, at a
	// subresource if that is not empty.
	Update(ctx context.Context, object map[string]any, subresource string) (version string, err error)
	// Apply gives an object the fields of this one, by server-side apply, also those
	// that others have set.
	Apply(ctx context.Context, object map[string]any) (version string, err error)
	// Label gives an object labels, and takes those that are nil. Nothing is written
	// where that is so already.
	Label(ctx context.Context, object interp.ObjectReference, labels map[string]*string) error
	// Delete removes an object, if it still has the UID of this one.
	Delete(ctx context.Context, object map[string]any) error
}

// Requests are the GenerateRequests of the cluster.
type Requests interface {
	// Get finds a request; nil comes back where it is gone.
	Get(ctx context.Context, name string) (*v1alpha1.GenerateRequest, error)
	// Create makes a request, unless it is there.
	Create(ctx context.Context, r *v1alpha1.GenerateRequest) error
	// SetStatus writes the status.
	SetStatus(ctx context.Context, r *v1alpha1.GenerateRequest) error
	// Delete removes a request whose work is done.
	Delete(ctx context.Context, r *v1alpha1.GenerateRequest) error
}

// A Watcher tells of objects, by calling Seen of a Worker.
type Watcher interface {
	// Watch has these watched from now on, and nothing else.
	Watch(list []Watched)
}

// A Watched is a kind of objects whose changes are told of: those that were generated,
// or those that were copied.
type Watched struct {
	v1alpha1.KindReference
	Namespace string // empty for all
	Sources   bool
}

// A Notice is what the readers of events are told of a policy.
type Notice struct {
	Policy  v1alpha1.PolicyReference
	Changes bool                     // it is about a rule that changes objects that are there
	About   v1alpha1.ObjectReference // what the rule was asked about; zero where that is nothing
	Warning bool
	Reason  string
	Note    string
}

// Applied is work that wrote objects, and no failure.
type Applied struct {
	Policy  v1alpha1.PolicyReference
	Rule    string
	Changes bool                     // the objects were there before
	Trigger v1alpha1.ObjectReference // without a name where it is known by its UID
	Objects []v1alpha1.ObjectReference
}

// A May tells whether this process may do something with objects of a kind, in a
// namespace, or in all if it is empty. It may with a kind that nobody serves.
type May func(ctx context.Context, verb string, k v1alpha1.KindReference, namespace string) (bool, error)

// A Missing is what a policy needs for its work: a permission, or what the work waits for.
type Missing struct {
	Policy  v1alpha1.PolicyReference
	Message string
	Reason  string // why a rule does nothing, as that of a Notice; empty where work only waits
}

// Missing are the permissions that the rules of the policies need and lack, as far as
// their text tells: a kind or namespace that is a variable is known only later.
func (w *Worker) Missing(ctx context.Context, may May) ([]Missing, error) {
	current := w.current.Load()
	if current == nil {
		return nil, nil
	}
	var out []Missing
	for _, p := range current.policies {
		for _, r := range p.rules {
			lacks, err := lacking(ctx, w.needs(r), may)
			if err != nil {
				return nil, err
			}
			if len(lacks) > 0 {
				out = append(out, Missing{p.Of, fmt.Sprintf("rule %s: kvap may not %s; %s", r.name, strings.Join(lacks, ", nor "), grantIt), reasonForbidden})
			}
		}
	}
	slices.SortFunc(out, func(a, b Missing) int {
		return strings.Compare(keyOf(a.Policy)+a.Message, keyOf(b.Policy)+b.Message)
	})
	return out, nil
}

// An accessNeed is what a rule does with objects of a kind.
type accessNeed struct {
	v1alpha1.KindReference
	namespace string
	verbs     []string
}

// lacking are the needs of a rule that are not granted.
func lacking(ctx context.Context, needs []accessNeed, may May) ([]string, error) {
	var out []string
	for _, n := range needs {
		var verbs []string
		for _, verb := range n.verbs {
			ok, err := may(ctx, verb, n.KindReference, n.namespace)
			if err != nil {
				return nil, err
			}
			if !ok {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			text := strings.Join(verbs, ", ") + " " + n.APIVersion + "/" + n.Kind
			if n.namespace != "" {
				text += " in the namespace " + n.namespace
			}
			out = append(out, text)
		}
	}
	return out, nil
}

// verbsOf are what is done with objects that are made.
func verbsOf(synchronize, apply bool) []string {
	out := []string{"get", "create"}
	if synchronize {
		out = append(out, "list", "watch", "update", "delete")
	}
	if apply {
		out = append(out, "patch")
	}
	return out
}

// needsOf are what a rule does with what it makes and with what it copies.
func needsOf(g *policy.Generate, apply bool) []accessNeed {
	makes := verbsOf(g.Synchronize, apply)
	var out []accessNeed
	for _, t := range targetsOf(g) {
		one := []*policy.GenerateTarget{t}
		for _, k := range literalKinds(one) {
			out = append(out, accessNeed{k, literal(t.Namespace.Value), makes})
		}
		if t.Clone != nil {
			out = append(out, accessNeed{v1alpha1.KindReference{APIVersion: t.APIVersion.Value, Kind: t.Kind.Value}, literal(t.Clone.Namespace.Value), []string{"get", "patch"}})
		}
		if t.CloneList != nil {
			for _, k := range literalKinds(one) {
				out = append(out, accessNeed{k, literal(t.CloneList.Namespace.Value), []string{"get", "list", "patch"}})
			}
		}
	}
	return out
}

// literal is a text without variables; empty for one with some.
func literal(text string) string {
	if strings.Contains(text, "{{") {
		return ""
	}
	return text
}
