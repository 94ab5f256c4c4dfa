// Package anchor reads the keys of patterns:
//
//	(image): "*:latest"     Conditional, image
//	=(hostPath): "null"     Equality, hostPath
//	image: "*:latest"       Plain, image
//
// In: a key as it is written. Out: the kind of its anchor, and the field. What an anchor
// means is the pattern's to say, in package translate.
package anchor
