package jsonpatch

import (
	"maps"
	"slices"
	"strconv"

	"github.com/kvap/kvap/interp/internal/datum"
)

// Diff is a patch that makes after of before. Lists of another length are replaced
// from the first element on that differs.
func Diff(before, after any) Patch {
	var p Patch
	p.diff("", before, after)
	return p
}

func (p *Patch) diff(path string, before, after any) {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			p.diffMaps(path, b, a)
			return
		}
	case []any:
		if a, ok := after.([]any); ok {
			p.diffLists(path, b, a)
			return
		}
	}
	if !datum.Equal(before, after) {
		*p = append(*p, Operation{Op: "replace", Path: path, Value: after})
	}
}

func (p *Patch) diffMaps(path string, before, after map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, has := after[key]; !has {
			*p = append(*p, Operation{Op: "remove", Path: path + "/" + escaped(key)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		at := path + "/" + escaped(key)
		if was, had := before[key]; had {
			p.diff(at, was, after[key])
		} else {
			*p = append(*p, Operation{Op: "add", Path: at, Value: after[key]})
		}
	}
}

func (p *Patch) diffLists(path string, before, after []any) {
	both := min(len(before), len(after))
	for i := range both {
		p.diff(path+"/"+strconv.Itoa(i), before[i], after[i])
	}
	for i := len(before) - 1; i >= both; i-- {
		*p = append(*p, Operation{Op: "remove", Path: path + "/" + strconv.Itoa(i)})
	}
	for i := both; i < len(after); i++ {
		*p = append(*p, Operation{Op: "add", Path: path + "/" + strconv.Itoa(i), Value: after[i]})
	}
}
