package schema

// MatchPattern is for the fuzz test.
func MatchPattern(pattern, text string) bool { return matchPattern(pattern, text) }
