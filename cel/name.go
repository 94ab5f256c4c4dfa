package cel

// isIdent tells that s has the form of a CEL identifier.
func isIdent(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return s != ""
}

// selectable tells that v.name can be written. CEL's reserved words can, since
// they are reserved as variables only; what the lexer takes for a literal or an
// operator cannot.
func selectable(name string) bool {
	switch name {
	case "in", "true", "false", "null":
		return false
	}
	return isIdent(name)
}

// reserved tells that name is a word that no variable may have: CEL's keywords.
func reserved(name string) bool {
	switch name {
	case "as", "break", "const", "continue", "else", "false", "for", "function", "if",
		"import", "in", "let", "loop", "namespace", "null", "package", "return", "true",
		"var", "void", "while":
		return true
	}
	return false
}

// Taken tells that a variable called name would hide something: a variable of the
// API server's environment, a type, the namespace of a library, or a macro.
func Taken(name string) bool {
	switch name {
	case "object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables",
		"Object", "JSONPatch":
		return true
	case "bool", "bytes", "double", "duration", "dyn", "int", "list", "map", "null_type",
		"optional_type", "string", "timestamp", "type", "uint", "google":
		return true
	case "base64", "cel", "cidr", "format", "ip", "jsonpatch", "lists", "math", "optional",
		"proto", "quantity", "regex", "semver", "sets", "strings", "url":
		return true
	case "has", "all", "exists", "exists_one", "existsOne", "filter", "size", "sortBy",
		"optMap", "optFlatMap", "transformList", "transformMap", "transformMapEntry":
		return true
	}
	return reserved(name)
}
