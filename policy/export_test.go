package policy

// Read is the value of the first document of a file.
func Read(data []byte) (any, bool) {
	docs, ds := documents("test.yaml", data)
	if len(docs) == 0 || ds.HasErrors() || docs[0].ds.HasErrors() {
		return nil, false
	}
	return docs[0].root.Value(), true
}

// ReadNode is the first document of a file.
func ReadNode(data []byte) *Node {
	docs, _ := documents("test.yaml", data)
	if len(docs) == 0 {
		return nil
	}
	return docs[0].root
}
