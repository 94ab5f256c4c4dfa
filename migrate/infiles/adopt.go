package infiles

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/internal/folder"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
)

// An Adopted is what files become once their policies are of kvap's kinds.
type Adopted struct {
	Handover report.Handover
	Already  int               // policies that are of kvap's kinds
	changed  map[string][]byte // by where it is written
	sources  []input.Source
}

// Adopt changes apiVersion of the policies in files, which are to be written where they
// were, or into a folder.
func Adopt(sources []input.Source, folder string) (Adopted, error) {
	out := Adopted{Handover: report.Handover{Verb: migrate.Adopt, Folder: folder}, changed: map[string][]byte{}, sources: sources}
	for _, s := range sources {
		adopted, err := migrate.AdoptFile(s.Name, s.Data)
		if err != nil {
			return out, err
		}
		out.Already += len(adopted.Already)
		out.Handover.Policies = append(out.Handover.Policies, adoptedOf(s.Name, adopted)...)
		if !bytes.Equal(adopted.Data, s.Data) || folder != "" && len(adopted.Policies) > 0 {
			name := s.Name
			if folder != "" {
				name = filepath.ToSlash(s.Below)
			}
			out.changed[name] = adopted.Data
		}
	}
	return out, nil
}

// adoptedOf says what became of the policies of a file.
func adoptedOf(file string, a migrate.Adoption) (out []report.HandedOverPolicy) {
	row := func(p *policy.Policy) report.HandedOverPolicy {
		return report.HandedOverPolicy{Kind: p.Kind, Namespace: p.Within(), Name: p.Name, From: "file", To: "file"}
	}
	for _, p := range a.Policies {
		one := row(p)
		one.To = string(v1alpha1.StageAdopted)
		one.Moves = []report.HandoverMove{{Does: "apiVersion: " + v1alpha1.GroupVersion().String() + " in " + file}}
		out = append(out, one)
	}
	for _, p := range a.Left {
		one := row(p)
		one.Left = "kvap.dev has no kind that it could become; it stays as it is"
		out = append(out, one)
	}
	return out
}

// Write writes files where they were, or into the folder.
func (a Adopted) Write(force bool) error {
	if a.Handover.Folder == "" {
		for name, data := range a.changed {
			info, err := os.Stat(name)
			if err != nil {
				return input.PathError(err)
			}
			if err := os.WriteFile(name, data, info.Mode().Perm()); err != nil {
				return input.PathError(err)
			}
		}
		return nil
	}
	to, err := folder.Open(a.Handover.Folder, a.sources)
	if err != nil {
		return err
	}
	defer to.Close()
	for name, data := range a.changed {
		to.Add(name, data)
	}
	if _, err := to.Write(force); err != nil {
		return err
	}
	return to.Finish()
}
