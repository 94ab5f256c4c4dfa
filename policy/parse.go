package policy

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// Parse reads a file of policies: YAML with one or more documents, or JSON. The
// File is never nil. What cannot be read is in the list, and what can is in the
// File: rules with errors are there too, marked Invalid.
func Parse(name string, data []byte) (*File, diag.List) {
	f := &File{Name: name}
	docs, ds := documents(name, unescaped(data))
	for _, doc := range docs {
		ds = append(ds, doc.ds...)
		ds = append(ds, f.document(doc.root, doc.text, doc.ds)...)
	}
	for _, d := range ds {
		if d.Code == diag.Template {
			// Nothing of a template is taken: what surrounds a document may be
			// a condition.
			return &File{Name: name}, diag.List{d}
		}
	}
	return f, ds.Sort()
}

// document adds what one document or one item of a list holds. text is what stands
// there, nil for an item; known is what is wrong with it already.
func (f *File) document(doc *Node, text []byte, known diag.List) diag.List {
	if doc.Kind == List {
		return diag.List{diag.Notef(doc.Pos, diag.OtherKind, "this document is a list and no Kubernetes object; it is passed over")}
	}
	if doc.Kind != Map {
		return diag.List{diag.Errorf(doc.Pos, diag.WrongType, "a document must be a map, not %s; is this file YAML?", article(doc.Kind))}
	}
	kind, apiVersion := doc.Get("kind").text(), doc.Get("apiVersion").text()
	if items := doc.Get("items"); strings.HasSuffix(kind, "List") && items != nil && items.Kind == List {
		var ds diag.List
		for _, item := range items.Items {
			ds = append(ds, f.document(item, nil, known)...)
		}
		return ds
	}
	group, version, _ := strings.Cut(apiVersion, "/")
	switch {
	case apiVersion == "" && (kind == "ClusterPolicy" || kind == "ValidatingPolicy" || kind == "MutatingPolicy" || kind == "GeneratingPolicy" || kind == "ImageValidatingPolicy"):
		return diag.List{diag.Errorf(doc.Pos, diag.Missing, "a %s needs an apiVersion, for instance kyverno.io/v1", kind)}
	case group == hubGroup:
		return f.carried(doc, known)
	case kind != "" && otherEngine(group, kind) != "":
		return f.unread(doc, text, group)
	case group != "kyverno.io" && group != "policies.kyverno.io" && (group != ownGroup || !slices.Contains(readKinds(ownGroup), kind)):
		return diag.List{otherKind(doc, kind, apiVersion)}
	case kind == "":
		return diag.List{diag.Errorf(doc.Pos, diag.Missing, "this document has apiVersion %s and no kind; name the kind, for instance ClusterPolicy", apiVersion)}
	}
	if d := readableKind(doc, group, version, kind); d != nil {
		return diag.List{*d}
	}
	if readVersions(group, kind) == nil {
		return f.unread(doc, text, group)
	}
	if d, ok := findTemplate(doc); ok {
		return diag.List{d}
	}
	return f.object(doc, kind, version, below(known, doc.Pos.Path))
}

func otherKind(doc *Node, kind, apiVersion string) diag.Diagnostic {
	switch {
	case kind == "":
		return diag.Notef(doc.Pos, diag.OtherKind, "this document has no kind and is no Kubernetes object; it is passed over")
	case apiVersion == "":
		return diag.Notef(doc.Pos, diag.OtherKind, "kvap does not convert the kind %s; this document is passed over", kind)
	}
	return diag.Notef(doc.Pos, diag.OtherKind, "kvap does not convert the kind %s of %s; this document is passed over", kind, apiVersion)
}

// readableKind says why an object of Kyverno's groups is not read, if so. A kind
// that looks misspelt is an error: nobody should believe that it was converted.
func readableKind(doc *Node, group, version, kind string) *diag.Diagnostic {
	versions := readVersions(group, kind)
	var d diag.Diagnostic
	switch guess := diag.Nearest(kind, readKinds(group)); {
	case slices.Contains(versions, version):
		return nil
	case versions != nil:
		d = diag.Errorf(doc.Get("apiVersion").Pos, diag.OutOfRange, "kvap does not read version %q of %s; it reads %s",
			version, kind, strings.Join(versions, ", "))
	case guess != "" && guess != kind:
		d = diag.Errorf(doc.Get("kind").Pos, diag.OutOfRange, "%s has no kind %q; did you mean %s?", group, kind, guess)
	case group == "policies.kyverno.io":
		return nil // all of its kinds are policies, or exceptions from them
	default:
		d = otherKind(doc, kind, group+"/"+version)
	}
	return &d
}

// object reads a document of a known kind. known are the errors in it so far.
func (f *File) object(doc *Node, kind, version string, known diag.List) diag.List {
	r := &reader{beta: version == "v2beta1"}
	var p *Policy
	switch kind {
	case "CleanupPolicy", "ClusterCleanupPolicy", "DeletingPolicy", "NamespacedDeletingPolicy":
		read := r.cleanup
		if strings.HasSuffix(kind, "DeletingPolicy") {
			read = r.deleting
		}
		c := read(doc)
		c.Invalid = known.HasErrors() || r.ds.HasErrors()
		f.Cleanups = append(f.Cleanups, c)
		return append(r.ds, diag.Warnf(doc.Pos, diag.OnSchedule,
			"a %s deletes on a schedule and judges no request, so nothing is written for it; apply it as it is: kvap-controller runs it where its mode is enforce", kind))
	case "PolicyException":
		read := r.exception
		if strings.HasPrefix(doc.Get("apiVersion").text(), "policies.kyverno.io/") {
			read = r.celException
		}
		e := read(doc)
		e.Invalid = known.HasErrors() || r.ds.HasErrors()
		f.Exceptions = append(f.Exceptions, e)
		return r.ds
	case "ValidatingPolicy", "NamespacedValidatingPolicy":
		p = r.celPolicy(doc, r.validatingSpec)
	case "ImageValidatingPolicy", "NamespacedImageValidatingPolicy":
		p = r.celPolicy(doc, r.imageValidatingSpec)
	case "MutatingPolicy", "NamespacedMutatingPolicy":
		p = r.celPolicy(doc, r.mutatingSpec)
	case "GeneratingPolicy", "NamespacedGeneratingPolicy":
		p = r.celPolicy(doc, r.generatingSpec)
	default:
		p = r.policy(doc)
	}
	p.markInvalid(known)
	p.markInvalid(r.ds)
	f.Policies = append(f.Policies, p)
	return r.ds
}

// below are the diagnostics of a document, of those of a list of documents.
func below(ds diag.List, path string) diag.List {
	if path == "" {
		return ds
	}
	var found diag.List
	for _, d := range ds {
		if within(d.Path, path) {
			found = append(found, d)
		}
	}
	return found
}

// readVersions are the versions of a kind that Parse reads, nil for other kinds.
func readVersions(group, kind string) []string {
	switch group + "/" + kind {
	case "kyverno.io/ClusterPolicy", "kyverno.io/Policy":
		return []string{"v1", "v2beta1"}
	case ownGroup + "/ClusterPolicy", ownGroup + "/Policy", ownGroup + "/ValidatingPolicy", ownGroup + "/NamespacedValidatingPolicy":
		return []string{"v1alpha1"}
	case "kyverno.io/CleanupPolicy", "kyverno.io/ClusterCleanupPolicy":
		return []string{"v2", "v2beta1", "v2alpha1"}
	case "kyverno.io/PolicyException":
		return []string{"v2", "v2beta1"}
	case "policies.kyverno.io/ValidatingPolicy", "policies.kyverno.io/MutatingPolicy", "policies.kyverno.io/GeneratingPolicy",
		"policies.kyverno.io/DeletingPolicy", "policies.kyverno.io/ImageValidatingPolicy", "policies.kyverno.io/PolicyException":
		return []string{"v1", "v1beta1", "v1alpha1"}
	case "policies.kyverno.io/NamespacedValidatingPolicy", "policies.kyverno.io/NamespacedMutatingPolicy",
		"policies.kyverno.io/NamespacedGeneratingPolicy", "policies.kyverno.io/NamespacedDeletingPolicy", "policies.kyverno.io/NamespacedImageValidatingPolicy":
		return []string{"v1", "v1beta1"}
	}
	return nil
}

// ownGroup has kinds with the spec of Kyverno's, for clusters where those are not
// installed. Its other kinds are no policies.
const ownGroup = "kvap.dev"

func readKinds(group string) []string {
	if group == ownGroup {
		return []string{"ClusterPolicy", "Policy", "ValidatingPolicy", "NamespacedValidatingPolicy"}
	}
	if group == "kyverno.io" {
		return []string{"ClusterPolicy", "Policy", "PolicyException", "CleanupPolicy", "ClusterCleanupPolicy"}
	}
	return []string{
		"ValidatingPolicy", "NamespacedValidatingPolicy", "MutatingPolicy", "NamespacedMutatingPolicy",
		"GeneratingPolicy", "NamespacedGeneratingPolicy", "DeletingPolicy", "NamespacedDeletingPolicy", "ImageValidatingPolicy", "NamespacedImageValidatingPolicy", "PolicyException",
	}
}

// text is a string's value, "" for anything else.
func (n *Node) text() string {
	if n == nil || n.Kind != String {
		return ""
	}
	return n.Str
}

// markInvalid finds for each error the rule it is in, by its field path. An error
// outside of all rules is the policy's, and so every rule's.
func (p *Policy) markInvalid(ds diag.List) {
	for _, d := range ds {
		if d.Severity != diag.Error {
			continue
		}
		found := false
		for _, rule := range p.Rules {
			if within(d.Path, rule.Pos.Path) {
				rule.Invalid, found = true, true
			}
		}
		if !found {
			p.Invalid = true
		}
	}
	for _, rule := range p.Rules {
		rule.Invalid = rule.Invalid || p.Invalid
	}
}

// within tells whether a field path is path or below it.
func within(inner, path string) bool {
	rest, ok := strings.CutPrefix(inner, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
