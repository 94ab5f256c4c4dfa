package convert

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cmd/kvap/internal/folder"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// carriers are the documents of Open Cluster Management that carry policies. They are written with
// what becomes of these in the place of each:
//
//	object-templates:
//	- complianceType: musthave
//	  objectDefinition: {kind: ValidatingAdmissionPolicy, …}
//	- complianceType: musthave
//	  objectDefinition: {kind: ValidatingAdmissionPolicyBinding, …}
type carriers struct {
	policies []*policy.Policy
	objects  map[*policy.Policy][]any
	left     map[*policy.Policy][]leftPolicy
}

// carried are the policies that documents carry; none where policies share objects, which belong to
// no document then.
func (done *Compilation) carried() []*policy.Policy {
	if done.shared {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(done.Policies), func(p *policy.Policy) bool { return p.Carrier == nil })
}

func (c *carriers) has(p *policy.Policy) bool { return p != nil && slices.Contains(c.policies, p) }

// add adds a file for each document.
func (c *carriers) add(to *folder.Folder, names *fileNames) error {
	var written []*policy.Node
	for _, p := range c.policies {
		if slices.Contains(written, p.Carrier) {
			continue
		}
		written = append(written, p.Carrier)
		doc, err := c.filled(p.Carrier)
		if err != nil {
			return err
		}
		meta := p.Carrier.Get("metadata")
		base := strings.TrimPrefix(textOf(meta.Get("namespace"))+"."+textOf(meta.Get("name")), ".")
		if !policy.IsSubdomain(base) {
			base = "unnamed"
		}
		to.Add(names.add(p.Carrier, base, textOf(p.Carrier.Get("kind")))+".yaml", policy.Marshal(doc))
	}
	return nil
}

// filled is a part of a document with what becomes of the policies in it.
func (c *carriers) filled(n *policy.Node) (*policy.Node, error) {
	out := *n
	switch n.Kind {
	case policy.Map:
		out.Fields = slices.Clone(n.Fields)
		for i, f := range out.Fields {
			value, err := c.filled(f.Value)
			if err != nil {
				return nil, err
			}
			out.Fields[i].Value = value
		}
	case policy.List:
		out.Items = nil
		for _, item := range n.Items {
			entries, err := c.entries(item)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, entries...)
		}
	default:
	}
	return &out, nil
}

// entries are what stands in the place of an entry of a list. A policy with an error stays.
func (c *carriers) entries(item *policy.Node) ([]*policy.Node, error) {
	at := slices.IndexFunc(c.policies, func(p *policy.Policy) bool { return p.Source == item.Get("objectDefinition") })
	if at < 0 {
		one, err := c.filled(item)
		return []*policy.Node{one}, err
	}
	p := c.policies[at]
	if len(c.objects[p]) == 0 && len(c.left[p]) == 0 {
		return []*policy.Node{item}, nil
	}
	with := func(definition *policy.Node) *policy.Node {
		entry := *item
		entry.Fields = slices.Clone(item.Fields)
		for i, f := range entry.Fields {
			if f.Key == "objectDefinition" {
				entry.Fields[i].Value = definition
			}
		}
		return &entry
	}
	native, err := c.nodes(p)
	if err != nil {
		return nil, err
	}
	var out []*policy.Node
	if item.Get("complianceType") == nil && len(native) > 0 { // a template of a Policy, which takes policies of the hub alone
		native = []*policy.Node{configuration(p.Name, native)}
	}
	for _, n := range native {
		out = append(out, with(n))
	}
	for _, one := range c.left[p] {
		docs, _ := policy.Documents("", one.data) // which was written a moment ago
		for _, doc := range docs {
			if item.Get("complianceType") != nil {
				doc = escaped(doc)
			}
			out = append(out, with(doc))
		}
	}
	return out, nil
}

// nodes are the objects of a policy.
func (c *carriers) nodes(p *policy.Policy) ([]*policy.Node, error) {
	text, err := vap.Marshal(c.objects[p]...)
	if err != nil {
		return nil, err
	}
	docs, _ := policy.Documents("", text) // as above
	for i := range docs {
		docs[i] = escaped(docs[i])
	}
	return docs, nil
}

// configuration is a ConfigurationPolicy with some objects.
func configuration(name string, objects []*policy.Node) *policy.Node {
	text := func(s string) *policy.Node { return &policy.Node{Kind: policy.String, Str: s} }
	object := func(fields ...policy.Field) *policy.Node { return &policy.Node{Kind: policy.Map, Fields: fields} }
	templates := &policy.Node{Kind: policy.List}
	for _, o := range objects {
		templates.Items = append(templates.Items, object(policy.Field{Key: "complianceType", Value: text("musthave")}, policy.Field{Key: "objectDefinition", Value: o}))
	}
	return object(
		policy.Field{Key: "apiVersion", Value: text("policy.open-cluster-management.io/v1")}, policy.Field{Key: "kind", Value: text("ConfigurationPolicy")},
		policy.Field{Key: "metadata", Value: object(policy.Field{Key: "name", Value: text(name)})},
		policy.Field{Key: "spec", Value: object(
			policy.Field{Key: "remediationAction", Value: text("enforce")}, policy.Field{Key: "severity", Value: text("low")}, policy.Field{Key: "object-templates", Value: templates},
		)},
	)
}

// escaped has the braces of variables written so that the templates of a ConfigurationPolicy let them
// be.
func escaped(n *policy.Node) *policy.Node {
	out := *n
	switch n.Kind {
	case policy.String:
		out.Str = strings.ReplaceAll(n.Str, "{{", `{{ "{{" }}`)
	case policy.List:
		out.Items = slices.Clone(n.Items)
		for i, item := range n.Items {
			out.Items[i] = escaped(item)
		}
	case policy.Map:
		out.Fields = slices.Clone(n.Fields)
		for i, f := range n.Fields {
			out.Fields[i].Value = escaped(f.Value)
		}
	default:
	}
	return &out
}

func textOf(n *policy.Node) string {
	if n == nil {
		return ""
	}
	return n.Str
}
