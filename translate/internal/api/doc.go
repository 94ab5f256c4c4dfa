// Package api is what the callers of package translate say and are told: Options, and what
// became of each rule. Package translate gives these types its own name; the rooms below
// it, which it imports, speak of them here.
//
// In: nothing. Out: types. What must hold: the zero Options are the defaults, but for the
// release and the schemas.
package api
