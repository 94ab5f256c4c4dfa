package policy

import (
	"strings"

	"github.com/kvap/kvap/diag"
)

// Documents are the objects of a file of any kind, with their places: a document of
// it, or an item of a list. They are read as kubectl and the API server read them.
func Documents(file string, data []byte) ([]*Node, diag.List) {
	docs, ds := documents(file, data)
	var out []*Node
	for _, d := range docs {
		ds = append(ds, d.ds...)
		out = append(out, itemsOf(d.root)...)
	}
	return out, ds
}

func itemsOf(n *Node) []*Node {
	items, kind := n.Get("items"), n.Get("kind")
	if n.Kind == Map && items != nil && items.Kind == List && kind != nil && strings.HasSuffix(kind.Str, "List") {
		var out []*Node
		for _, item := range items.Items {
			out = append(out, itemsOf(item)...)
		}
		return out
	}
	return []*Node{n}
}
