package convert

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/folder"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// A Destination is where the objects of a conversion go.
type Destination struct {
	Dir    string // "" for standard output
	Format string // yaml where empty, or json
	Silent bool   // nowhere
	Prune  bool   // what an earlier run wrote into the folder goes
	Force  bool   // files of others are replaced
	// Remainder is the group of what stays behind: kvap or kyverno.
	Remainder string
}

// Write writes the objects, and says what it did to a folder. sources are the input.
func (d Destination) Write(stdout io.Writer, done *Compilation, sources []input.Source) (said string, err error) {
	switch {
	case d.Silent:
		return "", nil
	case d.Dir != "":
		return d.writeFolder(done, sources)
	}
	all := group{objects: done.Objects, mutating: done.Mutating} // of native objects, those that validate before those that mutate
	if done.Kyverno != nil {
		for _, g := range done.kyvernoGroups() {
			all.kyverno = append(all.kyverno, g.kyverno...)
		}
	}
	data, err := d.marshal(all.all())
	if err != nil {
		return "", err
	}
	_, err = stdout.Write(data)
	return "", err
}

func (d Destination) marshal(objects []any) ([]byte, error) {
	if d.Format == "json" {
		return vap.MarshalJSON(objects...)
	}
	return vap.Marshal(objects...)
}

// writeFolder writes a file for each policy that has native objects, and one in
// remainder/ for each that has rules left.
func (d Destination) writeFolder(done *Compilation, sources []input.Source) (said string, err error) {
	to, err := folder.Open(d.Dir, sources)
	if err != nil {
		return "", err
	}
	defer to.Close()
	if err := d.addFiles(to, done); err != nil {
		return "", err
	}
	same, err := to.Write(d.Force)
	if err != nil {
		return "", err
	}
	said = fmt.Sprintf("wrote %s to %s\n", countFiles(to.Wrote()), d.Dir)
	if broken := done.broken(); broken > 0 {
		said += fmt.Sprintf("in no file: %s with an error; mend them and convert again\n", doc.Count(broken, "rule", "rules"))
	}
	if same > 0 {
		said += fmt.Sprintf("%s that kvap did not write would be the same, and stays as it is\n", countFiles(same))
	}
	switch {
	case d.Prune && done.Found.HasErrors(): // whose policies are not gone
		said += "nothing was removed, for some of the input could not be read\n"
	case d.Prune:
		removed, stays, err := to.Prune()
		if err != nil {
			return said, err
		}
		said += fmt.Sprintf("removed %s of policies that are gone\n", countFiles(removed))
		for _, line := range stays {
			said += line + "\n"
		}
	default:
		if stale := to.Stale(); stale > 0 {
			said += fmt.Sprintf("left there: %s of an earlier run; --prune removes what is not written again\n", countFiles(stale))
		}
	}
	return said, to.Finish()
}

// broken is how many rules, and cleanup policies that are converted, are in no file: they, or their
// policies, have an error.
func (done *Compilation) broken() (n int) {
	for _, r := range done.Rules {
		if r.Policy.Invalid || r.Source != nil && r.Source.Invalid {
			n++
		}
	}
	for _, of := range done.Cleanups {
		if done.Kyverno != nil && of.Invalid {
			n++
		}
	}
	return n
}

func countFiles(n int) string { return doc.Count(n, "file", "files") }

// Inputs are the sources that something was read of: what a search passed over is not
// among them, such as the native objects of an earlier run.
func Inputs(sources []input.Source) []input.Source {
	return slices.DeleteFunc(slices.Clone(sources), func(s input.Source) bool { return s.Found && !policy.MayHold(s.Data) })
}

func (d Destination) addFiles(to *folder.Folder, done *Compilation) error {
	names := namesOf(done.Policies, done.Unread)
	if done.Kyverno != nil {
		for _, c := range done.Cleanups {
			names.add(c, strings.TrimPrefix(c.Namespace+"."+c.Name, "."), c.Kind)
		}
	}
	inside := &carriers{policies: done.carried(), left: map[*policy.Policy][]leftPolicy{}, objects: map[*policy.Policy][]any{}}
	for _, group := range done.byPolicy() {
		if inside.has(group.policy) {
			inside.objects[group.policy] = group.all()
			continue
		}
		name, ok := names.of[group.policy]
		if group.cleanup != nil {
			name, ok = names.of[group.cleanup]
		}
		if !ok && len(group.objects) > 0 { // that policies share
			of := group.objects[0].Policy
			name = names.add(of, of.Name, "ValidatingAdmissionPolicy")
		} else if !ok {
			of := group.mutating[0].Policy
			name = names.add(of, of.Name, "MutatingAdmissionPolicy")
		}
		data, err := d.marshal(group.all())
		if err != nil {
			return err
		}
		to.Add(name+"."+cmp.Or(d.Format, "yaml"), data)
	}
	d.addRemainder(to, done, names, inside)
	return inside.add(to, names)
}

// addRemainder adds the policies of the rules that stay behind, and the
// exceptions from them; and what is not read, as it was written.
func (d Destination) addRemainder(to *folder.Folder, done *Compilation, names *fileNames, inside *carriers) {
	for _, u := range done.Unread {
		to.Add("remainder/"+names.of[u]+".yaml", u.Text)
	}
	var remaining []*policy.Policy
	rules := done.rulesOf()
	for _, p := range done.Policies {
		left := remainder(p, rules[p], d.Remainder)
		if len(left) == 0 {
			continue
		}
		remaining = append(remaining, p)
		if inside.has(p) {
			inside.left[p] = left
			continue
		}
		for _, one := range left {
			to.Add("remainder/"+names.of[p]+one.suffix+".yaml", one.data)
		}
	}
	for _, c := range done.cleanupsLeft() {
		to.Add("remainder/"+names.of[c]+".yaml", policy.Marshal(appliable(asVersion(c.Source, newest(c.Source.Get("apiVersion").Str, "v2")))))
	}
	for _, e := range done.Exceptions { // what stays behind needs them as much as the native half did
		if e.Invalid || !slices.ContainsFunc(remaining, e.IsFrom) {
			continue
		}
		name := names.add(e, "exception."+e.Namespace+"."+e.Name, "PolicyException")
		to.Add("remainder/"+name+".yaml", policy.Marshal(appliable(asVersion(e.Source, newest(e.Source.Get("apiVersion").Str, "v2")))))
	}
}

// fileNames are the names of files, by what is in them.
type fileNames struct {
	of    map[any]string
	taken map[string]bool
}

// add gives something a name: base, with its kind and a number behind where that is
// taken.
func (f *fileNames) add(of any, base, kind string) string {
	name := base
	for n := 1; f.taken[name]; n++ {
		name = base + "." + strings.ToLower(kind)
		if n > 1 {
			name += fmt.Sprintf("-%d", n)
		}
	}
	f.taken[name] = true
	f.of[of] = name
	return name
}

// namesOf names the files of each policy, and of each that is not read, as they are
// called themselves, with the namespace in front.
func namesOf(policies []*policy.Policy, unread []*policy.Unread) *fileNames {
	names := &fileNames{of: map[any]string{}, taken: map[string]bool{}}
	for _, p := range policies {
		names.add(p, strings.TrimPrefix(p.Within()+"."+p.Name, "."), p.Kind)
	}
	for _, u := range unread {
		// Nobody has checked these names.
		base, kind := strings.TrimPrefix(u.Namespace+"."+u.Name, "."), u.Kind
		if !policy.IsSubdomain(base) {
			base = "unnamed"
		}
		if !policy.IsLabel(strings.ToLower(kind)) {
			kind = "policy"
		}
		names.add(u, base, kind)
	}
	return names
}

// What --remainder-kind may be.
const (
	RemainderKvap    = "kvap"
	RemainderKyverno = "kyverno"
)

// A leftPolicy is a policy with only those of its rules that stay behind, as YAML.
type leftPolicy struct {
	suffix string // of the file's name
	data   []byte
}

// remainder is the policy with only those of its rules that stay behind. Of kvap.dev are
// those that kvap's webhook carries out; what nothing but Kyverno does stays its own, in a
// file for itself. What has an error is in neither half: it is to be mended first.
func remainder(p *policy.Policy, rules []*compile.Rule, kind string) (out []leftPolicy) {
	ofKvap, stays := map[int]bool{}, map[int]bool{}
	group, _, _ := strings.Cut(p.APIVersion, "/")
	moves := kind == RemainderKvap && migrate.IsLegacy(v1alpha1.PolicyReference{Group: group, Kind: p.Kind})
	for _, r := range rules {
		if r.Target == translate.Native {
			continue
		}
		if r.Source == nil {
			if p.Invalid {
				return nil
			}
			return []leftPolicy{{data: policy.Marshal(appliable(p.Source))}}
		}
		to := stays
		if moves && r.Target == translate.Webhook && r.NotServed() == "" {
			to = ofKvap
		}
		to[r.Source.Index] = !r.Source.Invalid
	}
	if p.ApplyOne && len(stays) > 0 { // its rules cannot be told apart
		maps.Copy(stays, ofKvap)
		ofKvap = nil
	}
	if doc := p.Only(func(r *policy.Rule) bool { return ofKvap[r.Index] }); doc != nil {
		out = append(out, leftPolicy{data: policy.Marshal(asVersion(doc, v1alpha1.GroupVersion().String()))})
	}
	if doc := p.Only(func(r *policy.Rule) bool { return stays[r.Index] && !ofKvap[r.Index] }); doc != nil {
		one := leftPolicy{data: policy.Marshal(asVersion(doc, newest(p.APIVersion, "v1")))}
		if moves {
			one.suffix = ".kyverno"
		}
		out = append(out, one)
	}
	return out
}

// newest is the version in which a cluster of today takes what was written for v2beta1,
// and has the same meaning.
func newest(apiVersion, version string) string {
	if apiVersion == "kyverno.io/v2beta1" {
		return "kyverno.io/" + version
	}
	return apiVersion
}

// asVersion is a document of another apiVersion.
func asVersion(doc *policy.Node, version string) *policy.Node {
	changed := *doc
	changed.Fields = slices.Clone(doc.Fields)
	for i, f := range changed.Fields {
		if f.Key == "apiVersion" {
			changed.Fields[i].Value = &policy.Node{Kind: policy.String, Pos: f.Value.Pos, Str: version}
		}
	}
	return &changed
}

// rulesOf are the rules of each policy.
func (done *Compilation) rulesOf() map[*policy.Policy][]*compile.Rule {
	rules := make(map[*policy.Policy][]*compile.Rule, len(done.Policies))
	for _, r := range done.Rules {
		rules[r.Policy] = append(rules[r.Policy], r)
	}
	return rules
}

// appliable is a document without what the API server wrote into it.
func appliable(doc *policy.Node) *policy.Node {
	doc = without(doc, "status")
	for i, f := range doc.Fields {
		if f.Key == "metadata" {
			doc.Fields[i].Value = without(f.Value, "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
		}
	}
	return doc
}

// without is a copy of a map that lacks some keys.
func without(n *policy.Node, keys ...string) *policy.Node {
	changed := *n
	changed.Fields = slices.DeleteFunc(slices.Clone(n.Fields), func(f policy.Field) bool {
		return slices.Contains(keys, f.Key)
	})
	return &changed
}
