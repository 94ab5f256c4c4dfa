package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

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
	for _, d := range found {
		if d.Severity.String() == "error" {
			return out, d
		}
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
