package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// adopt has the policy in kvap's kind in place of Kyverno's.
func (g Goal) adopt(w PolicyState) (*Move, error) {
	if err := w.refuseStopped(); err != nil {
		return nil, err
	}
	switch {
	case w.doing(Adopt): // which was not refused when it began
	case w.outOfShadow():
		return nil, fmt.Errorf("Kyverno's policy is gone, and that of kvap.dev is all there is; kvap migrate enforce %s notes that, and there is nothing to adopt then", w.Title()) //nolint:staticcheck // a name
	case w.Stage() != v1alpha1.StageEnforced && w.Stage() != v1alpha1.StageAdopted && w.closed():
		return nil, fmt.Errorf("it is %s, and nobody enforces it; kvap migrate enforce %s does, from a policy of kvap.dev, and there is nothing to adopt then", w.Stage(), w.Title())
	case w.Stage() != v1alpha1.StageEnforced && w.Stage() != v1alpha1.StageAdopted:
		return nil, fmt.Errorf("it is %s, and Kyverno enforces it; kvap migrate enforce %s comes first", w.Stage(), w.Title())
	case w.status().Way == v1alpha1.WayReplace && !w.closed():
		return nil, fmt.Errorf("some of its rules are carried out by nothing but Kyverno, and stay there; kvap.dev has the others already")
	case w.status().Way == v1alpha1.WayAdmission && w.Carrier != nil && w.Stage() != v1alpha1.StageAdopted:
		return nil, fmt.Errorf("kvap.dev has a policy of this name already, which no migration has made; rename or delete it")
	}
	if w.doing(Adopt) || w.Stage() == v1alpha1.StageAdopted {
		if err := w.sameAsRecorded(Adopt); err != nil {
			return nil, err
		}
	}
	if w.Source != nil {
		if m, err := w.orphan("adopt-1-kvap"); m != nil || err != nil {
			return m, err
		}
	}
	if m, err := w.carry("adopt-1-kvap", v1alpha1.ModeEnforce); m != nil || err != nil {
		return m, err
	}
	if w.Source != nil {
		if m := w.noteUnderWay(w.Carrier, "adopt-1-kvap"); m != nil {
			return m, nil
		}
		does := "delete the policy of Kyverno's kind, which is in the record"
		if KyvernoHasRest(w.Source) {
			does += "; nobody carries out " + strings.Join(RuleNames(w.Source), ", ") + " any more"
		}
		return &Move{Does: does, Part: "adopt-2-kyverno-gone", Delete: w.Source}, nil
	}
	if w.SourceStatus.Exists {
		return &Move{Does: "see that only the new one is left", Wait: "the controller still judges by the old one", Optional: true}, nil
	}
	return nil, nil
}

// An Adoption is a file whose policies have become those of kvap.dev.
type Adoption struct {
	Data     []byte
	Policies []*policy.Policy // that were changed, as they were
	Already  []*policy.Policy // of kvap.dev
	Left     []*policy.Policy // for which kvap.dev has no kind
}

// AdoptFile changes apiVersion of the policies in a file, and nothing else: comments
// and order stay as they are.
func AdoptFile(name string, data []byte) (Adoption, error) {
	f, found := policy.Parse(name, data)
	out := Adoption{Data: data}
	if err := found.Err(); err != nil {
		return out, err
	}
	lines := strings.SplitAfter(string(data), "\n")
	for _, p := range f.Policies {
		group, _, _ := strings.Cut(p.APIVersion, "/")
		switch {
		case group == v1alpha1.Group:
			out.Already = append(out.Already, p)
			continue
		case !CanCarry(v1alpha1.PolicyReference{Group: group, Kind: p.Kind}):
			out.Left = append(out.Left, p)
			continue
		}
		at := p.Source.Get("apiVersion").Pos
		if at.Line < 1 || at.Line > len(lines) || !replaceAt(&lines[at.Line-1], at.Col-1, p.APIVersion, v1alpha1.GroupVersion().String()) {
			return out, fmt.Errorf("%s:%d: apiVersion of %s is not where it is read; change it by hand to %s", name, at.Line, p.Name, v1alpha1.GroupVersion())
		}
		out.Policies = append(out.Policies, p)
	}
	out.Data = []byte(strings.Join(lines, ""))
	return out, nil
}

// replaceAt replaces a text at a place of a line, or behind a quotation mark there.
func replaceAt(line *string, at int, old, with string) bool {
	if at < 0 || at >= len(*line) {
		return false
	}
	if slices.Contains([]byte{'"', '\''}, (*line)[at]) {
		at++
	}
	rest, ok := strings.CutPrefix((*line)[at:], old)
	if ok {
		*line = (*line)[:at] + with + rest
	}
	return ok
}
