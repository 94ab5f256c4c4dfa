package policy

import (
	"regexp"

	"github.com/kvap/kvap/diag"
)

// hubGroup is that of Open Cluster Management, whose Policies carry objects to clusters:
//
//	kind: Policy
//	spec:
//	  policy-templates:
//	  - objectDefinition:
//	      kind: ConfigurationPolicy
//	      spec:
//	        object-templates:
//	        - complianceType: musthave
//	          objectDefinition: {apiVersion: kyverno.io/v1, kind: ClusterPolicy, …}
const hubGroup = "policy.open-cluster-management.io"

// carried reads the policies that an object of that group carries. The others that it carries are
// passed over, as they are in a file.
func (f *File) carried(doc *Node, known diag.List) (ds diag.List) {
	policies := len(f.Policies)
	before := policies + len(f.Exceptions) + len(f.Cleanups) + len(f.Unread)
	spec := doc.Get("spec")
	for _, key := range []string{"policy-templates", "object-templates"} {
		list := spec.Get(key)
		if list == nil || list.Kind != List {
			continue
		}
		for _, item := range list.Items {
			object := item.Get("objectDefinition")
			switch {
			case object == nil || object.Kind != Map:
			case item.Get("complianceType").text() == "mustnothave" || item.Get("complianceType").text() == "MustNotHave":
				ds = append(ds, diag.Notef(object.Pos, diag.OtherKind, "this object must not be in the cluster (complianceType: mustnothave); it is passed over"))
			default:
				ds = append(ds, f.document(object, nil, known)...)
			}
		}
	}
	if raw := spec.Get("object-templates-raw"); raw.Mentions(regexp.MustCompile(`\bkyverno\.io/`)) {
		ds = append(ds, f.unread(doc, nil, hubGroup)...)
	}
	if len(f.Policies)+len(f.Exceptions)+len(f.Cleanups)+len(f.Unread) == before && len(ds) == 0 {
		return diag.List{otherKind(doc, doc.Get("kind").text(), doc.Get("apiVersion").text())}
	}
	for _, p := range f.Policies[policies:] { // in the end it is the document
		p.Carrier = doc
	}
	if doc.Pos.Path == "" {
		ds = append(ds, diag.Notef(doc.Pos, diag.OtherKind, "the policies that this %s carries are read; a folder that is written has the objects that they become in their place", doc.Get("kind").text()))
	}
	return ds
}
